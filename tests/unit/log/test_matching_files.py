"""A predicate pushed into the checkpoint's read keeps the same files as one put to all live files."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tahoe.expr.tree.predicate import And, Column, Comparison, In, IsNotNull, IsNull, Literal, Or, Predicate, StartsWith
from tahoe.log.checkpoints import checkpoint_writer as checkpoint_module
from tahoe.log.checkpoints.checkpoint_writer import write_checkpoint
from tahoe.log.checkpoints.parquet_source import RowGroup
from tahoe.log.files.live_files import add_files
from tahoe.log.files.paths import commit_name
from tahoe.log.replay import LogReader
from tahoe.log.segment import segment_for
from tahoe.protocol.actions import AddFile
from tahoe.protocol.config import TableConfig
from tahoe.protocol.skipping import keep
from tahoe.schema.types import PrimitiveType
from tahoe.testing.log_builder import METADATA, PROTOCOL, SCHEMA, Log, add, memory_log, remove, vector

LONG, STRING = PrimitiveType("long"), PrimitiveType("string")
ID, NAME, PART = Column(("id",)), Column(("name",)), Column(("part",))


def _checkpoint(log: Log) -> None:
    segment = segment_for(log.store)
    state = LogReader(log.store, segment).state()
    files, tombstones = LogReader(log.store, segment).files(), LogReader(log.store, segment).tombstones()
    config = TableConfig(state.protocol, state.metadata, log.store.url)
    write_checkpoint(log.store, log.version, state, files, tombstones, config, now_ms=2_000)


CHECKPOINTS = {
    "none": lambda log: None,
    "JSON statistics": lambda log: log.classic(),
    "both": _checkpoint,
    "struct statistics": _checkpoint,
    "sidecars": lambda log: log.v2("json", sidecars=3),
    "embedded in JSON": lambda log: log.v2("json", sidecars=0),
    "multi-part": lambda log: log.multi_part(2),
}


def _file(i: int, chance: random.Random) -> AddFile:
    low = chance.choice([i * 10, chance.randrange(400)])
    file = add(f"f%20{i}", part=chance.choice(["a", "b", None]), low=low, high=low + chance.randrange(15))
    match chance.randrange(12):
        case 0:
            return replace(file, stats=None)
        case 1:
            return replace(file, stats='{"numRecords":10}')
        case 2:
            return replace(file, stats="not JSON")
        case 3:
            return replace(file, deletion_vector=vector(f"v{i}"))
    return file


def _predicate(chance: random.Random, deep: bool = True) -> Predicate:
    value = chance.randrange(420)
    match chance.randrange(9 if deep else 7):
        case 0:
            return Comparison(chance.choice(["=", "<", ">=", "!="]), ID, Literal(value, LONG))
        case 1:
            return Comparison("=", PART, Literal(chance.choice(["a", "b", "c"]), STRING))
        case 2:
            return chance.choice([IsNull, IsNotNull])(chance.choice([PART, ID]))
        case 3:
            return In(ID, (Literal(value, LONG), Literal(value + 100, LONG)))
        case 4:
            return StartsWith(NAME, f"n{value}"[:2])
        case 5:
            return Comparison("=", NAME, Literal(f"n{value}", STRING))
        case 6:
            return Comparison("=", ID, Literal(value, LONG))
    return chance.choice([And, Or])((_predicate(chance, False), _predicate(chance, False)))


@pytest.mark.parametrize("kind", CHECKPOINTS)
@pytest.mark.parametrize("seed", range(2))
def test_pushing_a_predicate_down_changes_nothing(kind: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tahoe.log.matching_files._BATCH_ROWS", 7)
    monkeypatch.setattr(checkpoint_module, "ROWS_IN_ROW_GROUP", 13)
    chance = random.Random(seed)
    log = memory_log()
    properties = {"delta.checkpoint.writeStatsAsJson": "false"} if kind == "struct statistics" else {}
    log.commit(PROTOCOL, replace(METADATA, configuration=properties), *(_file(i, chance) for i in range(60)))
    CHECKPOINTS[kind](log)
    live = list(log.versions[-1].values())
    log.commit(*(_file(i, chance) for i in range(100, 110)), *(remove(file) for file in live[5:25:4]))
    log.checksum()
    segment = segment_for(log.store)
    files = LogReader(log.store, segment).files()
    for _ in range(14):
        predicate = _predicate(chance)
        expected = files.filter(keep(predicate, files, SCHEMA, ("part",)))
        actual = LogReader(log.store, segment_for(log.store)).scan(predicate, SCHEMA, ("part",))
        assert _paths(actual) == _paths(expected), str(predicate)
        if kind != "struct statistics":
            assert sorted(add_files(actual), key=repr) == sorted(add_files(expected), key=repr)
        assert _paths(LogReader(log.store, segment).scan(predicate, SCHEMA, ("part",), files=files)) == _paths(expected)


def _paths(files: object) -> list[str]:
    return sorted(files.column("path").to_pylist())  # type: ignore[attr-defined]


def test_row_groups_that_cannot_match_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_module, "ROWS_IN_ROW_GROUP", 10)
    log = memory_log()
    log.begin(*(add(f"f{i}", low=i * 10, high=i * 10 + 9) for i in range(100)))
    _checkpoint(log)
    reader = LogReader(log.store, segment_for(log.store))
    reader.state()
    read: set[int] = set()
    batches = RowGroup.batches
    monkeypatch.setattr(RowGroup, "batches", lambda self, *rest: (read.add(self.index), batches(self, *rest))[1])
    actual = reader.scan(Comparison("=", ID, Literal(555, LONG)), SCHEMA, ("part",))
    assert _paths(actual) == ["f55"]
    assert len(read) == 1


def test_a_commit_that_lost_lines_is_found_out_by_a_scan_too() -> None:
    log = memory_log()
    log.begin(*(add(f"f{i}") for i in range(5)))
    log.classic()
    log.commit(add("x"), add("y"))
    log.checksum()
    data = log.store.get(commit_name(1))
    log.store.put(commit_name(1), data[: data.rstrip(b"\n").rfind(b"\n") + 1])
    with pytest.raises(Exception, match=r"00000000000000000001\.crc"):
        LogReader(log.store, segment_for(log.store)).scan(Comparison("=", ID, Literal(1, LONG)), SCHEMA, ("part",))
