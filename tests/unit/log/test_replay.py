"""Action reconciliation: the state after the commits and checkpoints of a log."""

from __future__ import annotations

import random
from dataclasses import replace

import pyarrow as pa
import pytest

from tahoe.base.exceptions import CorruptTable
from tahoe.log.files.commits import parse_commit
from tahoe.log.files.live_files import FILES_SCHEMA, TOMBSTONES_SCHEMA, add_files, file_keys, files_table, key_of, remove_files
from tahoe.log.files.paths import commit_name
from tahoe.log.replay import LogReader, advance_files, advance_state
from tahoe.log.segment import segment_for
from tahoe.protocol.actions import (
    Action,
    AddCDCFile,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from tahoe.testing.log_builder import METADATA, PROTOCOL, Log, add, live_paths, memory_log, remove, vector
from tests.sampling import sampled

CHECKPOINTS = {
    "none": lambda log: None,
    "classic": lambda log: log.classic(),
    "multi-part": lambda log: log.multi_part(3),
    "V2 in JSON, with sidecars": lambda log: log.v2("json"),
    "V2 in JSON, without": lambda log: log.v2("json", sidecars=0),
    "V2 in Parquet, with sidecars": lambda log: log.v2("parquet"),
    "V2 in Parquet, without": lambda log: log.v2("parquet", sidecars=0),
    "V2 under a classic name": lambda log: log.v2("parquet", classic_name=True),
}


def _tombstones(log: Log) -> list[tuple[str, str | None]]:
    return sorted((r.key for r in remove_files(LogReader(log.store, segment_for(log.store)).tombstones())), key=str)


@pytest.mark.parametrize("kind", CHECKPOINTS)
def test_every_kind_of_checkpoint_equals_its_commits(kind: str) -> None:
    log = memory_log()
    a, b, c = add("a", tags={"t": "1"}), add("b", part=None), add("c", deletion_vector=vector("v"))
    log.begin(a, b, c, SetTransaction("app", 1, 5), DomainMetadata("mine", "one"), DomainMetadata("gone", "x"))
    log.commit(remove(a), SetTransaction("app", 2), DomainMetadata("gone", "x", removed=True))
    CHECKPOINTS[kind](log)
    log.commit(add("d"), remove(b), SetTransaction("other", 7), DomainMetadata("mine", "two"))
    assert sorted(log.live(), key=lambda f: f.path) == [c, add("d")]
    assert _tombstones(log) == [("a", None), ("b", None)]
    state = log.state()
    assert (state.protocol, state.metadata) == (PROTOCOL, METADATA)
    assert {app: actual.version for app, actual in state.transactions.items()} == {"app": 2, "other": 7}
    assert {name: actual.configuration for name, actual in state.domains.items()} == {"mine": "two"}
    assert state.transaction_id == "txn-2"


@pytest.mark.parametrize("kind", [kind for kind in CHECKPOINTS if kind != "none"])
def test_a_checkpoint_can_be_read_by_itself(kind: str) -> None:
    log = memory_log()
    log.begin(add("a"), add("b"))
    CHECKPOINTS[kind](log)
    log.commit(add("c"))
    assert sorted(file.path for file in log.files_of_checkpoint(0)) == ["a", "b"]


def test_the_newest_word_on_a_file_wins() -> None:
    log = memory_log()
    log.begin(add("a"), add("b"))
    log.commit(remove(add("a")))
    log.commit(add("a", size=7), replace(add("b"), stats=None, data_change=False))
    assert sorted((f.path, f.size, f.stats is None) for f in log.live()) == [("a", 7, False), ("b", 100, True)]
    assert _tombstones(log) == []


def test_a_file_with_another_deletion_vector_is_another_file() -> None:
    log = memory_log()
    log.begin(add("a"))
    first, two = add("a", deletion_vector=vector("x")), add("a", deletion_vector=vector("x", offset=9))
    log.commit(remove(add("a")), first)
    log.classic()
    log.commit(remove(first), two)
    assert log.live() == [two]
    assert _tombstones(log) == [("a", "ux@1"), ("a", None)]


@pytest.mark.parametrize("with_checkpoint", [False, True])
@pytest.mark.parametrize(
    "other",
    ["p=x%20y/f%2Da", "p=x%20y//f-a", "./p=x%20y/f-a", "/root/table/p=x%20y/f-a", "file:/root/table/p=x%20y/f-a"],
)
def test_a_file_is_known_in_every_spelling_of_its_path(other: str, with_checkpoint: bool) -> None:
    url = "file:///root/table"
    mine = add("p=x%20y/f-a")
    assert key_of(mine, url) == key_of(remove(add(other)), url)
    (batch,) = files_table([mine, add(other), add("p=x%20y/f-b")]).to_batches()
    keys = file_keys(batch, url).to_pylist()
    assert keys[0] == keys[1] != keys[2]
    log = memory_log()
    log.begin(mine, add("plain"))
    if with_checkpoint:
        log.classic()
    if "/root" not in other:
        log.commit(remove(add(other)))
        assert live_paths(log) == ["plain"]


def test_paths_outside_of_the_table_are_compared_without_being_followed() -> None:
    url = "file:///root/table"
    spellings = ["/some/with%20space/p@%23h", "file:/some/with%20space/p@%23h", "file:///some/with%20space/p@%23h"]
    assert len({key_of(add(path), url) for path in spellings}) == 1


MALFORMED = ["x\0y", "x%00y", "/other/x%00y", "/other/x%2500y", "p=%FF", "p=%FE", "p=%EF%BF%BD", "a\0uv@1"]


def test_paths_that_cannot_be_decoded_have_keys_of_their_own() -> None:
    url = "file:///root/table"
    files = [*map(add, MALFORMED), add("a", deletion_vector=vector("v")), add("x%2500y")]
    keys = [key_of(file, url) for file in files]
    assert len(set(keys)) == len(files)
    (batch,) = files_table(files).to_batches()
    assert file_keys(batch, url).to_pylist() == keys
    assert [key.count("\0") for key in keys] == [0] * len(MALFORMED) + [1, 0]


def test_partition_values_and_tags_come_back_as_they_were() -> None:
    log = memory_log()
    files = [add("a", part=None), add("b", part=""), add("c", part="ü/=%"), add("d", part=None, tags={"k": None})]
    log.begin(*files)
    assert log.live() == files
    log.classic()
    assert log.live() == files


def test_live_files_and_tombstones_have_the_columns_that_others_rely_on() -> None:
    log = memory_log()
    log.begin()
    segment = segment_for(log.store)
    assert LogReader(log.store, segment).files().schema == FILES_SCHEMA
    assert LogReader(log.store, segment).tombstones().schema == TOMBSTONES_SCHEMA


@pytest.mark.parametrize(
    "twice",
    [
        (add("a"), add("a")),
        (add("a"), remove(add("a"))),
        (remove(add("a")), remove(add("a"))),
        (add("a%2Db"), add("a-b")),
        (PROTOCOL, PROTOCOL),
        (METADATA, METADATA),
        (SetTransaction("app", 1), SetTransaction("app", 2)),
        (DomainMetadata("d", "1"), DomainMetadata("d", "2")),
    ],
)
@pytest.mark.parametrize("size", [0, 3_000])
def test_two_actions_of_one_commit_that_contradict_each_other_are_refused(twice: tuple[Action, ...], size: int) -> None:
    log = memory_log()
    log.begin()
    log.commit(*twice, *(add(f"more{i}") for i in range(size)))
    with pytest.raises(CorruptTable, match=commit_name(1)) as caught:
        log.live()
    assert caught.value.code == "DELTA_DUPLICATE_ACTIONS_FOUND"


def test_unknown_actions_and_those_outside_the_state_are_ignored() -> None:
    log = memory_log()
    log.begin(add("a"), AddCDCFile("_change_data/c", {"part": "a"}, 5))
    data = log.store.get(commit_name(0))
    log.store.put(commit_name(0), data + b'{"inventedAction":{"x":[1,{"y":"2020-01-01"}]}}\n{}\n')
    assert live_paths(log) == ["a"]


def _random_commit(log: Log, chance: random.Random) -> list[Action]:
    live = list(log.versions[-1].values())
    actions: list[Action] = []
    for _ in range(chance.randrange(6)):
        match chance.randrange(4):
            case 0 if live:
                actions.append(remove(live.pop(chance.randrange(len(live)))))
            case 1 if live:
                old = live.pop(chance.randrange(len(live)))
                new = replace(old, deletion_vector=vector(f"v{chance.random()}"), tags={"odd": "2020-01-01"})
                actions += [remove(old), new]
            case 2:
                actions.append(replace(add(f"gone {chance.randrange(3)}%"), path=f"old%20{chance.random()}"))
            case _:
                actions.append(
                    add(f"part={chance.randrange(3)}/f{chance.random()}", part=chance.choice(["a", None, "2020-01-01"]))
                )
    if chance.random() < 0.3:
        actions.append(SetTransaction(chance.choice("xy"), chance.randrange(9)))
    if chance.random() < 0.2:
        actions.append(DomainMetadata(chance.choice("de"), str(chance.random()), chance.random() < 0.4))
    return actions


@pytest.mark.parametrize("seed", sampled(range(40), 4))
def test_random_histories_give_the_same_by_every_way(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain folding, exact parsing, columns, checkpoints, compactions, and one commit after the other on top."""
    chance = random.Random(seed)
    log = memory_log()
    log.begin(add("first"))
    segment = segment_for(log.store)
    files, state = LogReader(log.store, segment).files(), LogReader(log.store, segment).state()
    for _ in range(chance.randrange(2, 15)):
        actions = _random_commit(log, chance)
        version = log.commit(*actions)
        written = parse_commit(commit_name(version), log.store.get(commit_name(version)), log.store.url)
        files, state = advance_files(files, written, log.store.url), advance_state(state, written)
        if chance.random() < 0.2:
            CHECKPOINTS[chance.choice(list(CHECKPOINTS))](log)
        if chance.random() < 0.2 and version > 2:
            log.compaction(1, version - 1)
        if chance.random() < 0.3:
            log.checksum()
    expected = sorted(log.versions[-1].values(), key=repr)
    assert sorted(add_files(files), key=repr) == expected
    for least in (0, 1 << 40):
        monkeypatch.setattr("tahoe.log.tail._BYTES_WORTH_COLUMNS", least)
        assert sorted(log.live(), key=repr) == expected
        # The id of the newest transaction is known only where its commit was read by itself.
        assert replace(log.state(), transaction_id=state.transaction_id) == state
        assert _tombstones(log) == sorted(log.removed, key=str)
    if segment_for(log.store).compactions:
        # They are read where commits are missing, and only there; a compaction is no smaller than versions 1 and 2.
        log.store.delete(commit_name(2))
        assert sorted(log.live(), key=repr) == expected
        assert _tombstones(log) == sorted(log.removed, key=str)


def test_an_action_of_a_later_commit_replaces_protocol_and_metadata() -> None:
    log = memory_log()
    log.begin(add("a"))
    log.classic()
    newer = replace(METADATA, configuration={"delta.appendOnly": "true"})
    log.commit(newer, Protocol(1, 2))
    assert log.state().metadata == newer
    assert log.state().protocol == Protocol(1, 2)


def test_the_in_commit_timestamp_is_that_of_the_versions_own_commit() -> None:
    log = memory_log()
    log.begin()
    log.commit(CommitInfo({"inCommitTimestamp": 77}), info=False)
    assert log.state().in_commit_timestamp == 77
    assert log.state(0).in_commit_timestamp is None


def test_actions_are_values_again_after_a_table() -> None:
    file = add(
        "a", deletion_vector=vector("v"), base_row_id=5, default_row_commit_version=2, clustering_provider="liquid", tags={}
    )
    assert add_files(files_table([file])) == [file]
    assert isinstance(add_files(files_table([file]))[0], AddFile) and isinstance(remove(file), RemoveFile)


def test_maps_of_files_become_dictionaries_in_each_slice_of_a_table() -> None:
    values = [{"a": "1", "b": None}, None, {}, {"a": "1", "b": None}, {"é": ""}]
    tags = [None, {"t": "x"}, {}, None, {"t": None}]
    adds = [AddFile(f"f{i}", value or {}, i, i, True, tags=tag) for i, (value, tag) in enumerate(zip(values, tags, strict=True))]
    table = files_table(adds)
    for start, stop in ((0, 5), (1, 4), (4, 5), (2, 2)):
        assert add_files(table.slice(start, stop - start)) == adds[start:stop]


def test_a_map_with_a_name_twice_is_an_error() -> None:
    table = files_table([AddFile("f", {"a": "1"}, 1, 1, True)])
    twice = pa.array([[("a", "1"), ("a", "2")]], table.schema.field("partitionValues").type)
    with pytest.raises(KeyError, match="twice"):
        add_files(table.set_column(1, table.schema.field("partitionValues"), twice))
