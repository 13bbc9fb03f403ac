"""Checkpoints that Tahoe writes: their contents and layout, short ones are never published, other readers read them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from tahoe.base.exceptions import TahoeError
from tahoe.log.checkpoints import checkpoint_writer as checkpoint_module
from tahoe.log.checkpoints.checkpoint_writer import write_checkpoint
from tahoe.log.files.last_checkpoint import LastCheckpoint, parse_last_checkpoint
from tahoe.log.files.live_files import add_files, remove_files
from tahoe.log.files.paths import LAST_CHECKPOINT, checkpoint_name, commit_name
from tahoe.log.replay import LogReader
from tahoe.log.segment import segment_for
from tahoe.protocol.actions import DomainMetadata, Metadata, Protocol, SetTransaction
from tahoe.protocol.config import TableConfig
from tahoe.schema.types import DecimalType, PrimitiveType, StructField, StructType
from tahoe.store.object_store import open_store
from tahoe.testing.log_builder import METADATA, PROTOCOL, Log, add, lines, memory_log, remove, vector

WEEK_MS = 7 * 86_400_000


def write(log: Log, now_ms: int = 2_000, **properties: str) -> LastCheckpoint:
    segment = segment_for(log.store)
    state = LogReader(log.store, segment).state()
    if properties:
        state = replace(state, metadata=replace(state.metadata, configuration=dict(properties)))
    files, tombstones = LogReader(log.store, segment).files(), LogReader(log.store, segment).tombstones()
    config = TableConfig(state.protocol, state.metadata, log.store.url)
    return write_checkpoint(log.store, segment.version, state, files, tombstones, config, now_ms=now_ms)


def rows(log: Log, version: int | None = None) -> pa.Table:
    data = log.store.get(checkpoint_name(log.version if version is None else version))
    return pq.read_table(pa.BufferReader(data))


def members(log: Log, action: str) -> list[Any]:
    return [value for value in rows(log).column(action).to_pylist(maps_as_pydicts="strict") if value is not None]


def test_all_of_the_state_is_in_it_and_nothing_else() -> None:
    log = memory_log()
    file = add("a b%20c", tags={"t": "1"}, deletion_vector=vector("v"), base_row_id=5, default_row_commit_version=1)
    log.begin(file, add("gone"), SetTransaction("app", 1, 9), DomainMetadata("d", "x"), DomainMetadata("old", "y"))
    log.commit(remove(add("gone")), DomainMetadata("old", "y", removed=True))
    hint = write(log)
    state, segment = log.state(), segment_for(log.store)
    assert segment.checkpoint is not None and segment.tail() == ()
    assert (state.protocol, state.metadata) == (PROTOCOL, METADATA)
    assert dict(state.transactions) == {"app": SetTransaction("app", 1, 9)}
    assert dict(state.domains) == {"d": DomainMetadata("d", "x")}
    assert log.live() == [replace(file, data_change=False)]
    assert [r.key for r in remove_files(LogReader(log.store, segment).tombstones())] == [("gone", None)]
    data = log.store.get(checkpoint_name(1))
    footer = data[-8 - int.from_bytes(data[-8:-4], "little") : -8]
    assert hint == LastCheckpoint(1, 6, None, len(data), 1, crc32(footer))
    assert rows(log).column_names == ["txn", "metaData", "protocol", "domainMetadata", "add", "remove"]
    assert rows(log).num_rows == 6


def test_expired_tombstones_and_transactions_are_left_out() -> None:
    log = memory_log()
    log.begin(
        add("a"), add("b"), add("c"), SetTransaction("old", 1, 10), SetTransaction("new", 1, WEEK_MS), SetTransaction("any", 1)
    )
    log.commit(remove(add("a"), 10), remove(add("b"), WEEK_MS), replace(remove(add("c")), deletion_timestamp=None))
    write(log, now_ms=WEEK_MS + 10, **{"delta.setTransactionRetentionDuration": "interval 7 days"})
    assert [actual["path"] for actual in members(log, "remove")] == ["b"]
    assert sorted(actual["appId"] for actual in members(log, "txn")) == ["any", "new"]


def test_statistics_are_written_as_text_and_as_struct_as_the_properties_ask() -> None:
    log = memory_log()
    log.begin(add("a", low=3, high=8))
    write(log)
    (actual,) = members(log, "add")
    assert actual["stats"] == add("a", low=3, high=8).stats
    assert actual["stats_parsed"]["minValues"] == {"id": 3, "name": "n3"}
    assert actual["partitionValues_parsed"] == {"part": "a"}
    write(log, **{"delta.checkpoint.writeStatsAsStruct": "false"})
    assert not {"stats_parsed", "partitionValues_parsed"} & set(members(log, "add")[0])
    write(log, **{"delta.checkpoint.writeStatsAsJson": "false"})
    assert "stats" not in members(log, "add")[0]


def test_statistics_that_only_a_struct_holds_come_back_as_text() -> None:
    log = memory_log()
    log.begin(add("a", low=3, high=8))
    write(log, **{"delta.checkpoint.writeStatsAsJson": "false"})
    expected = '{"numRecords":10,"minValues":{"id":3,"name":"n3"},"maxValues":{"id":8,"name":"n8"},"nullCount":{"id":0,"name":0}}'
    assert [file.stats for file in log.live()] == [expected]


def test_struct_statistics_of_an_older_checkpoint_are_carried_over_and_those_of_new_files_are_parsed() -> None:
    log = memory_log()
    log.begin(add("a", low=1), replace(add("none"), stats=None))
    write(log)
    log.commit(add("b", low=2), replace(add("broken"), stats="{"))
    write(log)
    actual = {each["path"]: each["stats_parsed"] for each in members(log, "add")}
    assert {path: stats and stats["minValues"] for path, stats in actual.items()} == {
        "a": {"id": 1, "name": "n1"},
        "b": {"id": 2, "name": "n2"},
        "none": None,
        "broken": None,
    }


def test_statistics_follow_a_schema_that_has_changed() -> None:
    log = memory_log()
    log.begin(add("a", low=1))
    write(log)
    schema = StructType((StructField("name", PrimitiveType("string")), StructField("x", PrimitiveType("date"))))
    log.commit(Metadata("a-table", schema.to_json()), add("b", partition_values={}, stats='{"minValues":{"x":"2020-01-01"}}'))
    write(log)
    actual = {each["path"]: each["stats_parsed"]["minValues"] for each in members(log, "add")}
    assert actual["a"] == {"name": "n1", "x": None}
    assert str(actual["b"]["x"]) == "2020-01-01"


def test_values_of_all_types_are_typed(tmp_path: Path) -> None:
    types = {
        "b": PrimitiveType("byte"),
        "f": PrimitiveType("float"),
        "c": DecimalType(20, 3),
        "d": PrimitiveType("date"),
        "t": PrimitiveType("timestamp"),
        "n": PrimitiveType("timestamp_ntz"),
        "bin": PrimitiveType("binary"),
        "yes": PrimitiveType("boolean"),
    }
    partitions = {"b": "5", "f": "1.5", "c": "7.125", "d": "2020-01-02", "t": "2020-01-01T00:00:00.000001Z", "yes": "true"}
    schema = StructType((*(StructField(n, t) for n, t in types.items()), *(StructField(f"p_{n}", types[n]) for n in partitions)))
    stats = (
        '{"numRecords":2,"minValues":{"b":-1,"f":0.5,"c":12345678901234567.125,"d":"2020-01-01","t":"2020-01-01T00:00:00.123Z",'
        '"n":"2020-01-01T00:00:00.123"},"nullCount":{"b":0,"bin":1,"yes":2},"tightBounds":false}'
    )
    log = Log(open_store(str(tmp_path)))
    names = tuple(f"p_{n}" for n in partitions)
    metadata = Metadata("a-table", schema.to_json(), partition_columns=names)
    features = frozenset({"timestampNtz", "deletionVectors"})
    values = {f"p_{n}": value for n, value in partitions.items()}
    log.commit(Protocol(3, 7, features, features), metadata, add("a", stats=stats, partition_values=values))
    write(log)
    (actual,) = members(log, "add")
    assert actual["stats_parsed"]["minValues"] == {
        "b": -1,
        "f": 0.5,
        "c": Decimal("12345678901234567.125"),
        "d": datetime(2020, 1, 1).date(),
        "t": datetime(2020, 1, 1, 0, 0, 0, 123_000, UTC),
        "n": datetime(2020, 1, 1, 0, 0, 0, 123_000),
    }
    assert actual["stats_parsed"]["nullCount"] | {"bin": 1, "yes": 2, "b": 0} == actual["stats_parsed"]["nullCount"]
    assert actual["stats_parsed"]["tightBounds"] is False
    parsed = actual["partitionValues_parsed"]
    assert (parsed["p_b"], parsed["p_f"], parsed["p_c"], parsed["p_yes"]) == (5, 1.5, Decimal("7.125"), True)
    assert parsed["p_t"] == datetime(2020, 1, 1, 0, 0, 0, 1, UTC)
    assert DeltaTable(str(tmp_path)).get_add_actions().num_rows == 1


def test_actions_other_than_files_have_their_own_row_groups_and_files_follow_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_module, "ROWS_IN_ROW_GROUP", 10)
    log = memory_log()
    log.begin(*(add(f"f{i}") for i in range(25)))
    log.commit(remove(add("f3")))
    write(log)
    metadata = pq.read_metadata(pa.BufferReader(log.store.get(checkpoint_name(1))))
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [2, 1, 10, 10, 4]
    assert [file.path for file in log.live()] == [f"f{i}" for i in range(25) if i != 3]


def test_an_empty_table_has_a_checkpoint_too() -> None:
    log = memory_log()
    log.begin()
    write(log)
    assert log.live() == []
    assert log.state().metadata == METADATA


def test_a_checkpoint_that_came_out_short_is_not_published(monkeypatch: pytest.MonkeyPatch) -> None:
    log = memory_log()
    log.begin(*(add(f"f{i}") for i in range(5)))
    whole = checkpoint_module.encode_checkpoint
    monkeypatch.setattr(
        checkpoint_module, "encode_checkpoint", lambda single, files, *rest: whole(single, files.slice(0, 3), *rest)
    )
    with pytest.raises(TahoeError, match="was not written, because it has") as caught:
        write(log)
    assert caught.value.code == "DELTA_CHECKPOINT_SNAPSHOT_MISMATCH"
    assert log.store.head(checkpoint_name(0)) is None and log.store.head(LAST_CHECKPOINT) is None


def test_the_hint_carries_its_checksum_and_never_goes_back() -> None:
    log = memory_log()
    log.begin(add("a"))
    log.commit(add("b"))
    written = write(log)
    assert parse_last_checkpoint(log.store.get(LAST_CHECKPOINT)) == replace(written, checksummed=True)
    segment = segment_for(log.store, 0)
    state, files = LogReader(log.store, segment).state(), LogReader(log.store, segment).files()
    config = TableConfig(state.protocol, state.metadata, log.store.url)
    write_checkpoint(log.store, 0, state, files, LogReader(log.store, segment).tombstones(), config, now_ms=1)
    assert parse_last_checkpoint(log.store.get(LAST_CHECKPOINT)).version == 1
    assert [file.path for file in log.live(0)] == ["a"]


def test_deltalake_reads_it_as_we_do(tmp_path: Path) -> None:
    log = Log(open_store(str(tmp_path)))
    plain = Protocol(1, 2)
    log.commit(plain, METADATA, *(add(f"part=a/f%20{i}", low=i) for i in range(30)))
    log.commit(*(remove(add(f"part=a/f%20{i}")) for i in range(0, 30, 3)), SetTransaction("app", 4))
    write(log)
    log.store.delete(commit_name(0))
    table = DeltaTable(str(tmp_path))
    theirs = pa.table(table.get_add_actions(flatten=True))
    assert sorted(theirs.column("path").to_pylist()) == sorted(file.path for file in log.live())
    assert sorted(theirs.column("min.id").to_pylist()) == [i for i in range(30) if i % 3]
    assert table.transaction_version("app") == 4


def test_a_foreign_row_of_the_same_commit_can_follow() -> None:
    log = memory_log()
    log.begin(add("a"))
    write(log)
    log.store.put(commit_name(1), lines([add("b")]))
    assert sorted(f.path for f in add_files(LogReader(log.store, segment_for(log.store)).files())) == ["a", "b"]
