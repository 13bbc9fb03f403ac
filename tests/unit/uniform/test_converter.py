"""Conversions against the Delta log: every shape of history, crashes, races, and another writer's hand."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from tahoe.clock import SeededClock
from tahoe.exceptions import CorruptTable, ForeignWriter, StorageFailure, TahoeError, Unsupported
from tahoe.log.checksum import checksum_of, write_checksum
from tahoe.log.files.commits import read_commit
from tahoe.log.files.paths import commit_name
from tahoe.protocol.actions import DeletionVectorDescriptor, SetTransaction
from tahoe.schema.types import StructType
from tahoe.store.log_store import Refused, Unanswered
from tahoe.testing.faulty_store import CrashingStore, Faults, FaultyStore, SimulatedCrash, TracingStore, WrappedStore
from tahoe.uniform.convert import converter, manifest_policy
from tahoe.uniform.convert.conversion import DeltaSide
from tahoe.uniform.convert.converter import Converter
from tahoe.uniform.convert.manifest_folder import ManifestFolder
from tahoe.uniform.formats import metadata
from tahoe.uniform.others.record import NAME
from tests.unit.uniform.deltalog import SCHEMA, UNIFORM, V2_DELETES, V3, DeltaLog, column
from tests.unit.uniform.verifier import dead_positions, live_entries, newest_document, verify


@pytest.fixture
def log() -> DeltaLog:
    return DeltaLog()


@pytest.fixture
def small_manifests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_policy, "LEAST_ENTRIES", 4)
    monkeypatch.setattr(manifest_policy, "MAX_SMALL", 3)


def manifests(log: DeltaLog) -> list[str]:
    """Paths of the current snapshot's manifests."""
    folder = ManifestFolder(log.store)
    return [
        manifest.path for manifest in folder.read_list(metadata.current_snapshot(newest_document(log.store))["manifest-list"])
    ]


def test_the_first_conversion_shows_every_live_file(log):
    log.change(["a1", "a2", "b1"])
    log.change(["c1"], ["a1"])
    result = log.convert()
    assert (result.kind, result.version, result.snapshots, result.files_added) == ("full", 2, 1, 3)
    assert result.metadata_location == f"{log.store.url}/metadata/v2.metadata.json"
    assert verify(log.store) == 2


def test_commits_since_become_one_snapshot(log):
    log.change(["a1"])
    log.convert()
    log.change(["b1", "b2"])
    log.change(["c1"], ["b1", "a1"])
    log.change([], [])
    result = log.convert()
    assert (result.kind, result.snapshots, result.files_added, result.files_removed) == ("incremental", 1, 2, 1)
    assert verify(log.store) == 4
    assert newest_document(log.store)["snapshots"][-1]["summary"]["operation"] == "overwrite"


def test_each_commit_becomes_a_snapshot_where_asked():
    log = DeltaLog(configuration={"delta.universalformat.config.iceberg.snapshot-per-commit": "true"})
    log.convert()
    log.change(["a1"])
    log.change(["b1"], ["a1"], data_change=False)
    log.commit(SetTransaction("app", 1))
    log.change([], ["b1"])
    assert log.convert().snapshots == 3
    verify(log.store)
    found = [(s["summary"]["delta-version"], s["summary"]["operation"]) for s in newest_document(log.store)["snapshots"]]
    assert found == [("0", "append"), ("1", "append"), ("2", "replace"), ("4", "delete")]


def test_a_commit_without_files_moves_the_version_without_a_snapshot(log):
    log.change(["a1"])
    log.convert()
    log.commit(SetTransaction("app", 1))
    assert log.convert().snapshots == 0
    document = newest_document(log.store)
    assert (document["properties"]["delta-version"], len(document["snapshots"])) == ("2", 1)


def test_a_version_converted_before_is_left_as_it_is(log):
    log.change(["a1"])
    log.convert()
    before = {entry.name: log.store.get(entry.name) for entry in log.store.walk("metadata")}
    assert log.convert().kind == "none"
    assert log.convert(version=0).kind == "none", "an older target changes nothing"
    assert {entry.name: log.store.get(entry.name) for entry in log.store.walk("metadata")} == before


def test_two_processes_write_the_same_bytes(log):
    log.change(["a1", "b1"])
    log.convert()
    log.change(["c1"], ["a1"])
    log.convert()
    one = {
        entry.name: log.store.get(entry.name)
        for entry in log.store.walk("metadata")
        if "v2" in entry.name or "avro" in entry.name
    }
    for name in ("metadata/v2.metadata.json", "metadata/version-hint.text", NAME):
        log.store.delete(name)
    log.convert()
    assert one == {name: log.store.get(name) for name in one}


def test_new_statistics_replace_a_file_s_entry(log):
    log.change(["a1", "a2"])
    log.convert()
    log.commit(log.add("a1", data_change=False, rows=77))
    log.convert()
    verify(log.store)
    entries = live_entries(log.store, newest_document(log.store)["snapshots"][-1])
    assert sorted(entry["data_file"]["record_count"] for entry in entries.values()) == [10, 77]


def test_a_restored_file_is_live_once(log):
    log.change(["a1", "a2"])
    log.convert()
    log.change([], ["a1"])
    log.convert()
    log.change(["a1"])
    log.convert()
    assert verify(log.store) == 3


def test_a_remove_of_a_file_that_is_not_there_is_no_error(log):
    log.change(["a1"])
    log.convert()
    log.change([], ["never"])
    log.convert()
    assert verify(log.store) == 2


def test_odd_paths_are_shown_decoded_and_removed_in_any_spelling(log):
    log.change(["a%20b%2520c/f.parquet", f"{log.store.url.replace(' ', '%20')}/abs.parquet"])
    log.convert()
    entries = live_entries(log.store, newest_document(log.store)["snapshots"][-1])
    assert set(entries) == {f"{log.store.url}/a b%20c/f.parquet", f"{log.store.url}/abs.parquet"}
    log.change([], ["abs.parquet"])
    log.convert()
    assert set(live_entries(log.store, newest_document(log.store)["snapshots"][-1])) == {f"{log.store.url}/a b%20c/f.parquet"}


def test_a_hole_in_the_log_is_bridged_by_a_rebuild(log):
    log.change(["a1", "a2"])
    log.convert()
    log.change(["b1"])
    log.change(["c1"], ["a1"])
    target = log.snapshot()
    target.files()
    log.store.delete(commit_name(2))
    result = Converter(DeltaSide(log.store, lambda at: log.snapshot(1), partial(read_commit, log.store))).convert(target)
    assert (result.kind, result.version) == ("full", 3)
    assert "commits after version 1" in result.reason
    paths = set(live_entries(log.store, newest_document(log.store)["snapshots"][-1]))
    assert paths == {f"{log.store.url}/{name}" for name in ("a2", "b1", "c1")}


def test_far_behind_is_rebuilt(log, monkeypatch):
    monkeypatch.setattr(converter, "MAX_PENDING_COMMITS", 2)
    log.change(["a1"])
    log.convert()
    for name in ("b1", "b2", "b3"):
        log.change([name])
    result = log.convert()
    assert result.kind == "full" and "3 versions behind" in result.reason
    assert verify(log.store) == 4


def test_uniform_off_and_on_again_is_rebuilt(log):
    log.change(["a1"])
    log.convert()
    off = {key: value for key, value in UNIFORM.items() if "universal" not in key}
    log.commit(replace(log.metadata, configuration=off))
    log.change(["b1"])
    log.commit(log.metadata)
    result = log.convert()
    assert result.kind == "full" and "UniForm was off at version 2" in result.reason
    assert verify(log.store) == 4


def test_another_partitioning_is_rebuilt_under_a_new_spec(log):
    log.change(["a1"])
    log.convert()
    log.commit(replace(log.metadata, partition_columns=()), log.remove("a1"), log.add("b1"))
    log.convert()
    verify(log.store)
    document = newest_document(log.store)
    assert (document["default-spec-id"], document["partition-specs"][1]["fields"]) == (1, [])


def test_a_new_column_makes_a_new_schema(log):
    log.change(["a1"])
    log.convert()
    wider = StructType((*SCHEMA, column("more", "double", 3)))
    log.commit(replace(log.metadata, schema_string=wider.to_json()))
    log.change(["a2"])
    log.convert()
    verify(log.store)
    document = newest_document(log.store)
    assert [snapshot["schema-id"] for snapshot in document["snapshots"]] == [0, 1]


def test_a_file_with_a_deletion_vector_stops_the_conversion_by_name(log):
    log.change(["a1"])
    log.convert()
    log.commit(replace(log.add("b1"), deletion_vector=DeletionVectorDescriptor("i", "x", 1, 1)))
    with pytest.raises(Unsupported, match="b1 has a deletion vector"):
        log.convert()
    assert newest_document(log.store)["properties"]["delta-version"] == "1"


def test_a_file_without_its_number_of_records_stops_the_conversion_by_name(log):
    log.commit(replace(log.add("b1"), stats='{"minValues":{}}'))
    with pytest.raises(CorruptTable, match="b1 has no number of records"):
        log.convert()
    assert newest_document(log.store) is None


def test_a_change_rewrites_only_the_manifests_it_touches(log, small_manifests):
    log.change([f"{letter}{i}" for letter in "abcde" for i in range(4)])
    log.convert()
    before = manifests(log)
    assert len(before) == 5, "each partition has a manifest of its own"
    log.change([], ["c2"])
    log.convert()
    after = manifests(log)
    assert len(set(before) & set(after)) == 4
    assert verify(log.store) == 2


def test_many_small_manifests_are_merged(log, small_manifests):
    log.convert()
    sizes = []
    for number in range(20):
        log.change([f"a{number:02d}"])
        log.convert()
        sizes.append(len(manifests(log)))
    assert max(sizes) <= 20 / 4 + 5
    verify(log.store)


def test_a_manifest_whose_files_are_all_gone_is_dropped(log, small_manifests):
    log.change(["a1", "a2", "a3", "a4", "b1", "b2", "b3", "b4"])
    log.convert()
    log.change([], ["a1", "a2", "a3", "a4"])
    log.convert()
    log.change(["c1"])
    log.convert()
    verify(log.store)
    assert len(manifests(log)) == 2


def test_the_cost_of_a_small_commit_does_not_grow_with_the_table(small_manifests):
    def calls(files: int) -> int:
        log = DeltaLog()
        log.change([f"{'abcdefgh'[i % 8]}{i}" for i in range(files)])
        log.convert()
        log.change(["z1"])
        traced = TracingStore(log.store)
        log.convert(store=traced)
        return sum(call.name.startswith("metadata") for call in traced.calls)

    assert calls(8) == calls(200)


def test_a_conversion_looks_at_the_iceberg_side_once(log):
    """Before the new metadata: one listing, one read of the newest metadata file, one of the hint, one of the record. After it, a listing of
    the metadata files alone and the hint again: another conversion may have ended meanwhile."""
    log.change(["a1"])
    log.convert()
    log.change(["a2"])
    traced = TracingStore(log.store)
    log.convert(store=traced)
    calls = of_iceberg_side(traced)
    put = calls.index(("put_if_absent", "metadata/v2.metadata.json"))
    hint = ("get", "metadata/version-hint.text")
    assert [call for call in calls[:put] if not call[1].endswith(".avro")] == [
        ("list_from", "metadata"),
        ("get", "metadata/v1.metadata.json"),
        ("get", NAME),
        hint,
    ]
    assert calls[put + 1 :] == [hint, hint, ("put", hint[1]), ("list_from", "metadata"), ("put", NAME)]


def of_iceberg_side(traced: TracingStore) -> list[tuple[str, str]]:
    return [(call.method, call.name) for call in traced.calls if call.name.startswith("metadata") or call.name == NAME]


def test_old_snapshots_expire_and_take_their_files_with_them():
    log = DeltaLog(configuration={"delta.deletedFileRetentionDuration": "interval 10 seconds"})
    times = iter(range(1_700_000_000_000, 1_800_000_000_000, 4000))

    def convert() -> None:
        target = log.snapshot()
        target.__dict__["timestamp_ms"] = next(times)
        Converter(log.delta(), log.caches).convert(target)

    convert()
    for number in range(12):
        log.change([f"a{number}"], [f"a{number - 3}"] if number > 2 else [])
        convert()
        verify(log.store)
    document = newest_document(log.store)
    assert 2 <= len(document["snapshots"]) <= 4
    named = {snapshot["manifest-list"] for snapshot in document["snapshots"]}
    folder = ManifestFolder(log.store)
    for url in tuple(named):
        named |= {manifest.path for manifest in folder.read_list(url)}
    there = {f"{log.store.url}/{entry.name}" for entry in log.store.walk("metadata") if entry.name.endswith(".avro")}
    assert there == named


def test_the_hint_never_goes_back(log):
    log.change(["a1"])
    log.change(["a2"])
    log.convert()
    log.convert(version=1)
    assert log.store.get("metadata/version-hint.text") == b"2"


def test_another_writer_stops_conversion_until_it_is_taken_back(log):
    log.change(["a1"])
    log.convert()
    foreign = newest_document(log.store)
    foreign["properties"]["owner"] = "another engine"
    log.store.put("metadata/v2.metadata.json", json.dumps(foreign).encode())
    log.store.put("metadata/version-hint.text", b"2")
    log.change(["a2"])
    with pytest.raises(ForeignWriter, match=r"v2\.metadata\.json"):
        log.convert()
    result = log.convert(rebuild=True)
    assert (result.kind, result.version) == ("full", 2)
    assert result.metadata_location.endswith("/v3.metadata.json"), "the other writer's file is left alone"
    assert verify(log.store) == 2
    log.change(["a3"])
    assert log.convert().kind == "incremental"
    assert verify(log.store) == 3


def test_a_damaged_manifest_list_is_healed_by_a_rebuild(log):
    log.change(["a1"])
    log.convert()
    current = newest_document(log.store)["snapshots"][-1]["manifest-list"].removeprefix(f"{log.store.url}/")
    log.store.put(current, b"not avro")
    log.caches.clear()
    log.change(["a2"])
    assert log.convert().kind == "full"
    entries = live_entries(log.store, newest_document(log.store)["snapshots"][-1])
    assert len(entries) == 2


def test_totals_that_differ_from_the_table_s_checksum_are_healed_by_a_rebuild(log):
    """A file that is added a second time as if it were new would be live twice."""
    log.change(["a1", "a2"])
    log.convert()
    log.change(["a1", "b1"])
    snapshot = log.snapshot()
    write_checksum(log.store, 2, checksum_of(snapshot.state, snapshot.files(), snapshot.config))
    result = log.convert()
    assert result.kind == "full"
    assert "4 files" in result.reason
    assert verify(log.store) == 2
    snapshot = log.snapshot(log.change(["b2"]))
    write_checksum(log.store, 3, checksum_of(snapshot.state, snapshot.files(), snapshot.config))
    assert log.convert().kind == "incremental"


class Racing(WrappedStore):
    """Lets another conversion go first, once, just before our metadata file is put."""

    def __init__(self, inner, other) -> None:
        super().__init__(inner)
        self.other = other

    def put_if_absent(self, name, data):
        other, self.other = self.other, None
        if other is not None:
            other()
        return super().put_if_absent(name, data)


@pytest.mark.parametrize("winner", [2, 3, 4])
def test_a_conversion_that_loses_the_race_goes_on_from_the_winner(log, winner):
    log.change(["a1"])
    log.convert()
    log.change(["b1"], ["a1"])
    log.change(["c1"])
    log.change(["d1"], ["b1"])
    racing = Racing(log.store, lambda: log.convert(version=winner))
    log.convert(version=3, store=racing)
    assert verify(log.store) == max(winner, 3)
    log.convert()
    assert verify(log.store) == 4


def test_converters_side_by_side_end_with_the_newest_version(log):
    log.change(["a0"])
    threads = []
    for number in range(1, 6):
        log.change([f"a{number}"], [f"a{number - 1}"])
    errors = []

    def run(version: int) -> None:
        try:
            log.convert(version=version)
        except TahoeError as error:
            errors.append(error)

    for version in (1, 3, 6, 2, 6, 5):
        threads.append(threading.Thread(target=run, args=(version,)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    log.convert()
    assert verify(log.store) == 6


def crash_points() -> int:
    log = DeltaLog()
    log.change(["a1", "b1"])
    log.convert()
    log.change(["c1"], ["a1"])
    traced = TracingStore(log.store)
    log.convert(store=traced)
    return len(traced.calls)


@pytest.mark.parametrize("after", [False, True])
def test_a_crash_at_any_moment_is_healed_by_the_next_conversion(after):
    for at in range(crash_points()):
        log = DeltaLog()
        log.change(["a1", "b1"])
        log.convert()
        log.change(["c1"], ["a1"])
        with suppress(SimulatedCrash):
            log.convert(store=CrashingStore(log.store, at, after=after))
        assert verify(log.store) in (1, 2), "readers see the old version or the new one"
        log.change(["d1"])
        log.convert()
        assert verify(log.store) == 3
        assert newest_document(log.store)["snapshots"][-1]["summary"]["total-data-files"] == "3"


class Losing(WrappedStore):
    """Answers every put-if-absent with silence after it was done, or refuses it."""

    def __init__(self, inner, outcome) -> None:
        super().__init__(inner)
        self.outcome = outcome

    def put_if_absent(self, name, data):
        if isinstance(self.outcome, Unanswered):
            super().put_if_absent(name, data)
        return self.outcome


def test_a_lost_answer_is_read_back(log):
    log.change(["a1"])
    result = log.convert(store=Losing(log.store, Unanswered("timeout")), clock=SeededClock())
    assert result.version == 1
    assert verify(log.store) == 1


def test_a_refusal_is_an_error_that_says_so(log):
    log.change(["a1"])
    with pytest.raises(StorageFailure, match="slow down"):
        log.convert(store=Losing(log.store, Refused("slow down")), clock=SeededClock())
    assert newest_document(log.store) is None


@pytest.mark.parametrize("seed", range(12))
def test_storage_that_fails_now_and_then_never_leaves_readers_with_a_wrong_table(seed):
    log = DeltaLog()
    faults = Faults(answer_lost=0.2, answered_taken=0.1, request_lost=0.1, refused=0.1, read_failed=0.05, write_failed=0.1)
    faulty = FaultyStore(log.store, faults, seed=seed)
    clock = SeededClock(seed)
    for number in range(8):
        log.change([f"a{number}"], [f"a{number - 2}"] if number > 1 else [])
        with suppress(StorageFailure):
            log.convert(store=faulty, clock=clock)
        if newest_document(log.store) is not None:
            verify(log.store)
    log.convert()
    assert verify(log.store) == 8


DEAD = st.sets(st.integers(0, 9)).map(BitMap64)
MARKS = st.lists(
    st.one_of(
        st.tuples(st.just("mark"), st.dictionaries(st.integers(0, 7), DEAD, max_size=4)),
        st.tuples(st.just("toggle"), st.sets(st.integers(0, 7), max_size=4), DEAD),
        st.tuples(st.just("convert"), st.booleans()),
    ),
    max_size=14,
)


@settings(max_examples=30)
@given(MARKS, st.sampled_from([V2_DELETES, V3]), st.booleans())
def test_any_history_of_vectors_is_shown_as_it_is(steps, properties, per_commit):
    """Vectors come, grow, shrink and go; files toggle between live and gone, with or without a vector; conversions come when they come."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_policy, "LEAST_ENTRIES", 3)
        patch.setattr(manifest_policy, "MAX_SMALL", 2)
        log = DeltaLog(
            configuration={**properties, "delta.universalFormat.config.iceberg.snapshot-per-commit": str(per_commit).lower()}
        )
        live: dict[str, BitMap64] = {}
        for step in steps:
            if step[0] == "convert":
                log.convert(rebuild=step[1])
            elif step[0] == "mark":
                marks = {f"{'abc'[n % 3]}{n}": dead for n, dead in step[1].items()}
                marks = {path: (live[path], dead) for path, dead in marks.items() if live.get(path, dead) != dead}
                log.mark(marks)
                live |= {path: dead for path, (_, dead) in marks.items()}
            else:
                touched = sorted(f"{'abc'[n % 3]}{n}" for n in step[1])
                log.commit(
                    *(log.remove(path, vector=live[path]) for path in touched if path in live),
                    *(log.add(path, vector=step[2]) for path in touched if path not in live),
                )
                for path in touched:
                    if live.pop(path, None) is None:
                        live[path] = step[2]
        log.convert()
        assert verify(log.store) == log.version
        current = metadata.current_snapshot(newest_document(log.store))
        found = {url.rpartition("/")[2]: BitMap64(dead) for url, dead in dead_positions(log.store, current).items()}
        assert found == {path: dead for path, dead in live.items() if dead}


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("change"), st.lists(st.integers(0, 11), max_size=4), st.booleans()),
        st.tuples(st.just("convert"), st.booleans()),
        st.tuples(st.just("empty")),
    ),
    max_size=14,
)


@settings(max_examples=60)
@given(STEPS, st.booleans())
def test_any_history_is_shown_as_it_is(steps, per_commit):
    """Files toggle between live and gone; conversions come when they come."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_policy, "LEAST_ENTRIES", 3)
        patch.setattr(manifest_policy, "MAX_SMALL", 2)
        log = DeltaLog(configuration={"delta.universalformat.config.iceberg.snapshot-per-commit": str(per_commit).lower()})
        live: set[str] = set()
        for step in steps:
            if step[0] == "change":
                touched = {f"{'abc'[number % 3]}{number}" for number in step[1]}
                log.change(sorted(touched - live), sorted(touched & live), data_change=step[2])
                live ^= touched
            elif step[0] == "convert":
                log.convert(rebuild=step[1] and log.version % 3 == 0)
            else:
                log.commit(SetTransaction("app", log.version))
        log.convert()
        assert verify(log.store) == log.version
        document = newest_document(log.store)
        current = metadata.current_snapshot(document)
        assert {url.rpartition("/")[2] for url in live_entries(log.store, current)} == live
