"""A committed statement is never reported as failed, even if a later step fails."""

from __future__ import annotations

import inspect
import logging
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tahoe.api.several_tables import transaction
from tahoe.api.table import Table
from tahoe.base.exceptions import StorageFailure
from tahoe.coordinator.sql_coordinator import SqlCoordinator
from tahoe.ops.rows.insert import WriteOptions
from tahoe.ops.rows.stream_batch import Batch, CommitsTable, commit_batch
from tahoe.ops.rows.truncate import stage_truncate
from tahoe.ops.write.writer import write_arrow
from tahoe.protocol.column_values.identity import identity_metadata
from tahoe.schema.arrow import from_arrow_schema
from tahoe.schema.types import PrimitiveType, StructField, StructType
from tahoe.store.log_store import Created, PutOutcome
from tahoe.store.object_store import open_store
from tahoe.testing.faulty_store import WrappedStore
from tahoe.txn.after_commit import logged_after_commit
from tahoe.txn.commit import RetryPolicy
from tahoe.txn.transaction import Operation

Answer = TypeVar("Answer")

SCHEMA = pa.schema({"id": pa.int64(), "p": pa.string(), "x": pa.int32()})
PROPERTIES = {
    "delta.checkpointInterval": "1",
    "delta.columnMapping.mode": "name",
    "delta.enableChangeDataFeed": "true",
    "delta.enableDeletionVectors": "true",
    "delta.enableRowTracking": "true",
    "delta.constraints.small": "x < 1000",
}


def rows(first: int, count: int = 3) -> pa.Table:
    return pa.table({"id": range(first, first + count), "p": ["a", "a", "b"][:count], "x": pa.array(range(count), pa.int32())})


class Broken(WrappedStore):
    """A store that fails after a number of commits.

    Args:
        commits: None to only count the commits.
        failure: the exception that it raises.
    """

    def __init__(self, inner: Any, commits: int | None = None, failure: type[Exception] = StorageFailure) -> None:
        super().__init__(inner)
        self.taken, self._most, self._failure = 0, commits, failure

    def put_if_absent(self, name: str, data: bytes) -> PutOutcome:
        outcome = super().put_if_absent(name, data)
        if isinstance(outcome, Created) and re.fullmatch(r"_delta_log/\d{20}\.json", name):
            self.taken += 1
        return outcome

    def _call(self, operation: str, name: str, run: Callable[[], Answer]) -> Answer:
        if self._most is not None and self.taken >= self._most:
            raise self._failure(f"the store is gone ({operation} {name})")
        return run()


def nothing(store: Any) -> Table:
    return Table(store.url, store=store)


def base(store: Any) -> Table:
    table = Table.create(store.url, SCHEMA, partition_by=["p"], properties=PROPERTIES, store=store)
    table.append(rows(0))
    table.append(rows(10))
    table.delete("id = 10")
    return table


def unpartitioned(store: Any) -> Table:
    table = Table.create(store.url, SCHEMA, properties={"delta.checkpointInterval": "1"}, store=store)
    table.append(rows(0))
    return table


def identity(store: Any) -> Table:
    column = StructField("id", PrimitiveType("long"), metadata=identity_metadata(1, 1, allow_explicit=True))
    table = Table.create(store.url, StructType((column, StructField("x", PrimitiveType("integer")))), store=store)
    table.append(pa.table({"id": [7], "x": pa.array([1], pa.int32())}))
    return table


def folder(store: Any) -> Table:
    sink = pa.BufferOutputStream()
    pq.write_table(rows(0), sink)
    store.put("some.parquet", sink.getvalue().to_pybytes())
    return nothing(store)


def without_a_file(store: Any) -> Table:
    table = base(store)
    lost = next(entry.name for entry in store.walk() if entry.name.endswith(".parquet") and "_delta_log" not in entry.name)
    store.delete(lost)
    return table


def without_statistics(store: Any) -> Table:
    table = unpartitioned(store)
    table.set_properties({"delta.dataSkippingNumIndexedCols": "0"})
    table.append(rows(20))
    table.set_properties({"delta.dataSkippingNumIndexedCols": "32"})
    return table


def uniform(store: Any) -> Table:
    properties = {"delta.enableIcebergCompatV2": "true", "delta.universalFormat.enabledFormats": "iceberg"}
    table = Table.create(store.url, SCHEMA, properties={**properties, "delta.columnMapping.mode": "name"}, store=store)
    table.append(rows(0))
    return table


def listed(store: Any) -> Table:
    properties = {"delta.compatibility.symlinkFormatManifest.enabled": "true"}
    return Table.create(store.url, SCHEMA, properties=properties, store=store)


def clone(table: Table) -> None:
    base(open_store(f"memory://{uuid.uuid4()}/source")).clone(table)


def stream_batch(table: Table) -> None:
    batch = Batch("a query", 1, from_arrow_schema(rows(0).schema))
    commits = CommitsTable(table.url, table.begin, table.commit)
    commit_batch(commits, batch, WriteOptions("append"), lambda _, config: write_arrow(config, table.store, rows(0), table.clock))


def truncate(table: Table) -> None:
    transaction = table.begin()
    table.commit_rows(transaction, stage_truncate(transaction))


def plain_commit(table: Table) -> None:
    table.commit(table.begin(), Operation("Empty Commit"))


def merge(table: Table) -> None:
    table.merge(rows(0), "target.id = source.id").when_matched_update_all().when_not_matched_insert_all().execute()


Case = tuple[str, Callable[[Any], Table], Callable[[Table], Any]]
CASES: list[Case] = [
    ("create", nothing, lambda table: Table.create(table.url, SCHEMA, store=table.store)),
    ("append", base, lambda table: table.append(rows(20))),
    ("append", base, lambda table: table.append(rows(20), app=("app", 1))),
    ("append", uniform, lambda table: table.append(rows(20))),
    ("append", listed, lambda table: table.append(rows(20))),
    ("overwrite", base, lambda table: table.overwrite(rows(20))),
    ("overwrite", base, lambda table: table.overwrite(rows(0, 1), replace_where="p = 'a'")),
    ("write", base, lambda table: table.write(rows(20), WriteOptions("append"))),
    ("delete", base, lambda table: table.delete("id = 1")),
    ("delete", base, lambda table: table.delete()),
    ("update", base, lambda table: table.update({"x": "x + 1"}, "id = 1")),
    ("merge", base, merge),
    ("commit_rows", base, truncate),
    ("commit", base, plain_commit),
    ("optimize", base, lambda table: table.optimize()),
    ("optimize", base, lambda table: table.optimize(zorder_by=["id"])),
    ("purge", base, lambda table: table.purge()),
    ("vacuum", base, lambda table: table.vacuum(0, retention_check=False, logs=True)),
    ("restore", base, lambda table: table.restore(1)),
    ("fsck", without_a_file, lambda table: table.fsck()),
    ("compute_statistics", without_statistics, lambda table: table.compute_statistics()),
    ("convert_to_delta", folder, lambda table: table.convert_to_delta()),
    ("clone", nothing, clone),
    ("a stream's batch", base, stream_batch),
    ("sync_identity", identity, lambda table: table.sync_identity("id")),
    ("cluster_by", unpartitioned, lambda table: table.cluster_by(["id"])),
    ("add_columns", base, lambda table: table.add_columns(pa.schema({"new": pa.string()}))),
    ("change_column", base, lambda table: table.change_column("x", comment="new")),
    ("rename_column", base, lambda table: table.rename_column("id", "number")),
    ("drop_columns", base, lambda table: table.drop_columns(["id"])),
    ("replace_columns", base, lambda table: table.replace_columns(pa.schema([*SCHEMA, pa.field("new", pa.string())]))),
    ("add_constraint", base, lambda table: table.add_constraint("large", "id >= 0")),
    ("drop_constraint", base, lambda table: table.drop_constraint("small")),
    ("set_properties", base, lambda table: table.set_properties({"a": "b"})),
    ("set_properties", base, lambda table: table.set_properties({"delta.columnMapping.mode": "none"})),
    ("unset_properties", base, lambda table: table.unset_properties(["delta.enableChangeDataFeed"])),
    ("unset_properties", base, lambda table: table.unset_properties(["delta.columnMapping.mode"])),
    ("add_feature", unpartitioned, lambda table: table.add_feature("deletionVectors")),
    ("upgrade_protocol", unpartitioned, lambda table: table.upgrade_protocol(1, 4)),
    ("drop_feature", base, lambda table: table.drop_feature("deletionVectors")),
    ("drop_feature", base, lambda table: table.drop_feature("rowTracking")),
    ("uniform.upgrade", unpartitioned, lambda table: table.uniform.upgrade(2)),
]
NOT_COMMITTED = {
    # These only read.
    *(
        "after_commit",
        "begin",
        "bytes_in_memory",
        "changes",
        "check",
        "column_statistics",
        "compat",
        "detail",
        "diff",
        "report",
        "storage_use",
        "exists",
        "files",
        "pinned_versions",
        "history",
    ),
    *("layout", "schema", "snapshot", "tail", "to_arrow", "to_batches", "to_duckdb", "to_pandas", "to_polars", "url", "version"),
    # These write files outside of the log, and must report failures.
    *("allow_shallow_clone", "checkpoint", "generate", "repair_log", "uniform"),
    # This is itself a hook.
    "compact_gently",
}
OTHERS = {"uniform.upgrade", "a stream's batch"}
IMPATIENT = RetryPolicy(deadline_seconds=1, storage_attempts=1)


def test_every_committing_method_of_a_table_is_covered_here() -> None:
    public = {name for name, _ in inspect.getmembers(Table) if not name.startswith("_")}
    assert public == {name for name, _, _ in CASES} - OTHERS | NOT_COMMITTED


@pytest.mark.parametrize("case", CASES, ids=[f"{name}-{number}" for number, (name, _, _) in enumerate(CASES)])
def test_a_store_failure_after_the_last_commit_fails_no_statement(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    _, prepare, act = case

    def attempted(commits: int | None, failure: type[Exception] = StorageFailure) -> tuple[int, Table]:
        """Run the case in a new table; return the number of its commits, and the table over the working store."""
        whole = open_store(f"memory://{uuid.uuid4()}/table")
        prepare(whole)
        store = Broken(whole, commits, failure)
        act(Table(whole.url, store=store, policy=IMPATIENT))
        return store.taken, Table(whole.url, store=whole)

    commits, there = attempted(None)
    assert commits
    for failure in (StorageFailure, RuntimeError):
        with caplog.at_level(logging.CRITICAL):
            taken, table = attempted(commits, failure)
        assert (taken, table.version()) == (commits, there.version())
        if prepare is not without_a_file:
            assert table.to_arrow().num_rows == there.to_arrow().num_rows


@pytest.mark.parametrize("failure", [StorageFailure, RuntimeError])
def test_a_store_failure_after_ratification_fails_no_statement(
    tmp_path: Path, failure: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    class Ratifying(SqlCoordinator):
        def ratify(self, *arguments: Any) -> PutOutcome:
            outcome = super().ratify(*arguments)
            for store in stores:
                store.taken = 1
            return outcome

    database = f"sqlite:///{tmp_path}/c.db"
    stores, tables = list[Broken](), list[Table]()
    for name in "ab":
        whole = open_store(f"memory://{uuid.uuid4()}/{name}")
        Table.create(
            whole.url,
            SCHEMA,
            store=whole,
            coordinator=SqlCoordinator(database),
            properties={"delta.feature.catalogManaged": "supported"},
        )
        stores.append(Broken(whole, 1, failure))
        tables.append(Table(whole.url, store=stores[-1], coordinator=Ratifying(database), policy=IMPATIENT))
    with caplog.at_level(logging.CRITICAL), transaction(*tables) as together:
        for table in tables:
            together[table].append(rows(0))
    assert set(together.versions.values()) == {1}
    for store in stores:
        whole = Table(store.url, store=store.inner, coordinator=SqlCoordinator(database))
        assert (whole.version(), whole.to_arrow().num_rows) == (1, 3)


def test_a_failure_after_a_commit_is_logged_with_its_stack(caplog: pytest.LogCaptureFixture) -> None:
    with logged_after_commit("version %d is committed, but not %s", 3, "this"):
        raise ValueError("the reason")
    (record,) = caplog.records
    assert record.getMessage() == "version 3 is committed, but not this"
    assert record.exc_info is not None and "the reason" in caplog.text


def test_an_interrupt_after_a_commit_still_ends_the_program() -> None:
    with pytest.raises(KeyboardInterrupt), logged_after_commit("not done"):
        raise KeyboardInterrupt
