"""V2 checkpoints from the previous one and the commits since: their content equals a replay of the log, and unchanged sidecars are
reused."""

from __future__ import annotations

import logging
import random
from dataclasses import replace

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.clock import SeededClock
from tahoe.log.checkpoints import v2_writer
from tahoe.log.checkpoints.checkpoint_reader import open_checkpoint
from tahoe.log.files.last_checkpoint import read_last_checkpoint
from tahoe.log.files.live_files import add_files, remove_files
from tahoe.log.files.paths import LAST_CHECKPOINT, SIDECAR_FOLDER, commit_name
from tahoe.log.segment import Checkpoint, checkpoints_in
from tahoe.protocol.actions import Action, AddFile, SetTransaction, SidecarFile
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import LogStore
from tahoe.testing.log_builder import METADATA, PROTOCOL, Log, add, lines, live_paths, memory_log, remove, vector
from tahoe.txn.hooks import checkpoint_snapshot

WEEK_MS = 7 * 86_400_000
NOW_MS = 10 * WEEK_MS


def v2_log(*files: AddFile, **properties: str) -> Log:
    log = memory_log()
    configuration = {"delta.checkpointPolicy": "v2"} | properties
    log.commit(PROTOCOL, replace(METADATA, configuration=configuration), *files)
    return log


def write(log: Log, now_ms: int = NOW_MS, seed: int = 0) -> None:
    checkpoint_snapshot(Snapshot.at(log.store), SeededClock(log.version + 1_000 * seed, now_ms))


def newest_checkpoint(log: Log) -> Checkpoint:
    checkpoints = checkpoints_in(log.store.list_from("_delta_log"))
    return checkpoints[max(checkpoints)][-1]


def sidecars(log: Log) -> list[str]:
    """Return the files that the newest checkpoint names, in order."""
    return [a.path for a in open_checkpoint(log.store, newest_checkpoint(log)).single_actions if isinstance(a, SidecarFile)]


def holds_all(log: Log) -> None:
    """Check that the checkpoint alone, without any commit, has the version's state."""
    reader = open_checkpoint(log.store, newest_checkpoint(log))
    assert reader.checkpoint.version == log.version and reader.checkpoint.kind == "uuid"
    files = {file.key: file for file in add_files(reader.adds())}
    assert files == {key: replace(file, data_change=False) for key, file in log.versions[-1].items()}
    tombstones = {r.key for r in log.removed.values() if (r.deletion_timestamp or 0) > NOW_MS - WEEK_MS}
    assert {file.key for file in remove_files(reader.removes())} >= tombstones
    hint = read_last_checkpoint(log.store)
    assert hint is not None and hint.v2 is not None and hint.v2.path in newest_checkpoint(log).names[0]
    assert (hint.version, hint.size, hint.num_of_add_files) == (log.version, reader.num_actions, reader.num_adds)


def test_a_commit_of_new_files_leaves_the_sidecars_unchanged() -> None:
    log = v2_log(*(add(f"old-{number}") for number in range(100)))
    write(log)
    before = sidecars(log)
    log.commit(add("new"), SetTransaction("app", 1, NOW_MS))
    write(log)
    assert sidecars(log)[: len(before)] == before and len(sidecars(log)) == len(before) + 1
    holds_all(log)
    assert log.state().transactions["app"].version == 1


def test_a_log_without_files_has_no_sidecar() -> None:
    log = v2_log()
    write(log)
    assert sidecars(log) == []
    holds_all(log)
    log.commit(add("first"))
    write(log)
    holds_all(log)


def test_a_removed_file_rewrites_only_its_sidecar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(v2_writer, "ROWS_IN_SIDECAR", 10)
    files = [add(f"f{number:03d}") for number in range(40)]
    log = v2_log(*files)
    write(log)
    before = sidecars(log)
    assert len(before) == 4
    log.commit(remove(files[15], NOW_MS))
    write(log)
    after = sidecars(log)
    assert [after[0], *after[2:4]] == [before[0], *before[2:]] and before[1] not in after
    assert len(after) == 5, "the tombstone has a sidecar of its own"
    holds_all(log)


def test_expired_tombstones_are_dropped_without_rewriting_files(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [add(f"f{number}") for number in range(40)]
    log = v2_log(*files)
    log.commit(*(remove(file, NOW_MS - WEEK_MS + 5) for file in files[:3]))
    write(log)
    live, tombstones = sidecars(log)
    log.commit(SetTransaction("app", 1, NOW_MS))
    write(log)
    assert sidecars(log) == [live, tombstones]
    log.commit(SetTransaction("app", 2, NOW_MS))
    write(log, NOW_MS + 6)
    assert sidecars(log) == [live]
    assert open_checkpoint(log.store, newest_checkpoint(log)).removes().num_rows == 0


def test_random_histories_equal_a_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    """With vectors, differently encoded paths, files that return, and tombstones that expire."""
    monkeypatch.setattr(v2_writer, "ROWS_IN_SIDECAR", 8)
    for seed in range(3):
        chance = random.Random(seed)
        log, number, reused = v2_log(), 0, 0
        for _ in range(15):
            actions: list[Action] = []
            live = list(log.versions[-1].values())
            for file in chance.sample(live, min(len(live), chance.choice([0, 0, 1, 3]))):
                actions.append(remove(file, NOW_MS - chance.choice([1, 2 * WEEK_MS])))
                if chance.random() < 0.4:
                    actions.append(replace(file, deletion_vector=vector(f"v{number}")))
            gone = [r.path for r in log.removed.values() if r.deletion_vector is None and "%" not in r.path]
            taken = {a.path for a in actions if isinstance(a, AddFile)} | {file.path for file in live}
            actions += [add(path) for path in gone[:1] if chance.random() < 0.2 and path not in taken]
            for _ in range(chance.choice([0, 1, 4, 12])):
                number += 1
                actions.append(add(f"a%20b/{number}" if chance.random() < 0.1 else f"p/{number}"))
            log.commit(*actions)
            if chance.random() < 0.6:
                before = set(sidecars(log)) if checkpoints_in(log.store.list_from("_delta_log")) else set()
                write(log, seed=seed)
                reused += len(before & set(sidecars(log)))
                holds_all(log)
                assert live_paths(log) == log.expected()
        assert reused > 10


def test_a_differently_encoded_path_is_found_in_its_sidecar() -> None:
    log = v2_log(add("a b"), *(add(f"f{number}") for number in range(20)))
    write(log)
    log.store.put(commit_name(1), lines([replace(remove(add("a b"), NOW_MS), path="a%20b")]))
    write(log)
    reader = open_checkpoint(log.store, newest_checkpoint(log))
    assert reader.num_adds == 20 and reader.removes().num_rows == 1


def test_other_columns_rewrite_all_sidecars() -> None:
    log = v2_log(*(add(f"f{number}") for number in range(20)))
    write(log)
    before = sidecars(log)
    properties = {"delta.checkpointPolicy": "v2", "delta.checkpoint.writeStatsAsStruct": "false"}
    log.commit(replace(METADATA, configuration=properties))
    write(log)
    assert not set(before) & set(sidecars(log))
    holds_all(log)


def test_the_checkpoint_of_another_writer_is_not_reused() -> None:
    log = v2_log(*(add(f"f{number}") for number in range(20)))
    log.v2("json", sidecars=2)
    theirs = sidecars(log)
    log.commit(add("new"))
    write(log)
    assert not set(theirs) & set(sidecars(log))
    holds_all(log)


def test_a_visibly_corrupt_sidecar_is_not_reused(caplog: pytest.LogCaptureFixture) -> None:
    log = v2_log(*(add(f"f{number}") for number in range(20)))
    write(log)
    (sidecar,) = sidecars(log)
    body = bytearray(log.store.get(f"{SIDECAR_FOLDER}/{sidecar}"))
    body[-30] ^= 1
    log.store.put(f"{SIDECAR_FOLDER}/{sidecar}", bytes(body))
    log.commit(add("new"))
    with caplog.at_level(logging.WARNING):
        write(log)
    assert sidecar not in sidecars(log) and "is rebuilt from the live files" in caplog.text
    holds_all(log)


def test_a_checkpoint_that_contradicts_the_checksum_is_rebuilt() -> None:
    log = v2_log(*(add(f"f{number}") for number in range(20)))
    write(log)
    before = sidecars(log)
    log.commit(add("new"))
    log.checksum(numFiles=22)
    with pytest.raises(Exception, match="numFiles 22"):
        write(log)
    assert newest_checkpoint(log).version == 0 and sidecars(log) == before, "nothing was published"


class _Cleaning:
    """A store in which another process cleans the log while a checkpoint is written."""

    def __init__(self, store: LogStore, goes: str) -> None:
        self._store, self._goes = store, goes

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def put(self, name: str, data: bytes) -> None:
        self._store.put(name, data)
        if ".checkpoint." in name:
            self._store.delete(self._goes)


def test_sidecars_of_a_concurrently_deleted_checkpoint_are_not_reused() -> None:
    log = v2_log(*(add(f"f{number}") for number in range(20)))
    write(log)
    before = sidecars(log)
    log.commit(add("new"))
    store = _Cleaning(log.store, newest_checkpoint(log).names[0])
    checkpoint_snapshot(Snapshot.at(store), SeededClock(5, NOW_MS))  # type: ignore[arg-type]
    assert len(checkpoints_in(log.store.list_from("_delta_log"))[1]) == 1, "the checkpoint that relied on them is gone"
    assert not set(before) & set(sidecars(log))
    holds_all(log)


def test_the_hint_describes_the_last_of_two_checkpoints_of_one_version() -> None:
    log = v2_log(add("a"), add("b"))
    log.commit(remove(add("a"), NOW_MS))
    write(log, NOW_MS + 2 * WEEK_MS, seed=1)
    write(log, NOW_MS, seed=2)
    assert len(checkpoints_in(log.store.list_from("_delta_log"))[1]) == 2
    assert live_paths(log) == ["b"]


@pytest.mark.damages_tables
def test_a_missing_sidecar_of_tombstones_is_reported(memory_url: str) -> None:
    rows = pa.table({"id": [1]})
    properties = {"delta.checkpointInterval": "3", "delta.checkpointPolicy": "v2"}
    table = Table.create(memory_url, rows.schema, properties=properties)
    table.append(rows)
    table.append(rows)
    table.delete("id = 1")
    assert Table(memory_url).check() == []
    (gone,) = (entry.name for entry in table.store.list_from(SIDECAR_FOLDER))
    table.store.delete(gone)
    (violation,) = Table(memory_url).check()
    assert violation.code == "checkpoint" and gone in violation.message
    assert Table(memory_url).append(rows) == 4, "and no reader misses it"


def test_a_table_that_goes_back_to_classic_checkpoints_gets_them(memory_url: str) -> None:
    rows = pa.table({"id": [1]})
    table = Table.create(memory_url, rows.schema, properties={"delta.checkpointPolicy": "v2"})
    table.append(rows)
    table.checkpoint()
    table.set_properties({"delta.checkpointPolicy": "classic"})
    table.checkpoint()
    kinds = [c.kind for of_version in checkpoints_in(table.store.list_from("_delta_log")).values() for c in of_version]
    assert kinds == ["uuid", "classic"] and Table(memory_url).check() == []
    table.set_properties({"delta.checkpointPolicy": "v2"})
    table.checkpoint()
    assert Table(memory_url).check() == [] and Table(memory_url).to_arrow().num_rows == 1


def test_old_tables_get_v2_checkpoints_by_a_property(memory_url: str) -> None:
    rows = pa.table({"id": [1]})
    table = Table.create(memory_url, rows.schema, properties={"delta.checkpointInterval": "2"})
    for _ in range(2):
        table.append(rows)
    table.set_properties({"delta.checkpointPolicy": "v2"})
    assert "v2Checkpoint" in table.snapshot().config.features
    for _ in range(3):
        table.append(rows)
    assert [c.kind for v, cs in checkpoints_in(table.store.list_from("_delta_log")).items() for c in cs] == [
        "classic",
        "uuid",
        "uuid",
    ]
    assert Table(memory_url).check() == [] and table.store.head(LAST_CHECKPOINT)
