"""OPTIMIZE without Spark: the same rows in fewer files, beside any concurrent writer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.exceptions import DeltaConcurrentModificationException, InvalidRequest, StorageFailure
from tahoe.base.progress import Reported
from tahoe.ops.layout.bins import Bin
from tahoe.ops.layout.curves import CURVES
from tahoe.ops.layout.optimize import RewrittenBin, optimize, rewritten_here
from tahoe.ops.layout.optimize_plan import OptimizePlan, OptimizeRequest
from tahoe.ops.layout.optimize_report import Optimized
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import LogStore
from tahoe.store.object_store import open_store
from tahoe.testing.faulty_store import Faults, FaultyStore, WrappedStore
from tests.sampling import sampled

SCHEMA = pa.schema({"p": pa.string(), "id": pa.int64(), "v": pa.float64()})
VECTORS = {"delta.enableDeletionVectors": "true"}
TRACKED = {**VECTORS, "delta.enableRowTracking": "true"}


def rows(first: int, count: int = 10) -> pa.Table:
    ids = range(first, first + count)
    return pa.table({"p": ["ab"[i % 2] for i in ids], "id": ids, "v": [i / 2 for i in ids]}, SCHEMA)


@pytest.fixture
def store() -> LogStore:
    return open_store(f"memory://{SYSTEM_CLOCK.uuid()}/table")


def table_of(store: LogStore, files: int = 5, properties: dict[str, str] = TRACKED, partitioned: bool = True) -> Table:
    partition_by = ["p"] if partitioned else []
    table = Table.create(store.url, SCHEMA, partition_by=partition_by, properties=properties, store=store)
    for number in range(files):
        table.append(rows(number * 10))
    return table


def contents(table: Table) -> pa.Table:
    return table.to_arrow(row_ids=True).sort_by("id")


def data_files(table: Table) -> set[str]:
    return {entry.name for entry in table.store.walk() if entry.name.endswith(".parquet") and "_delta_log" not in entry.name}


def live_files(table: Table) -> set[str]:
    return set(table.files()["path"].to_pylist())


def optimized_beside(table: Table, meanwhile: Callable[[int], object]) -> Optimized:
    """Optimize, while `meanwhile` happens each time before the commit."""
    times = 0

    def rewrite(snapshot: Snapshot, bins: Sequence[Bin], plan: OptimizePlan) -> Iterator[RewrittenBin]:
        nonlocal times
        yield from rewritten_here(table.clock, snapshot, bins, plan)
        meanwhile(times)
        times += 1

    return optimize(table.begin, table.commit, OptimizeRequest(), rewrite)


@pytest.mark.parametrize("properties", [{}, VECTORS, TRACKED, {**TRACKED, "delta.columnMapping.mode": "name"}])
def test_the_rows_stay_with_their_ids_in_one_file_a_partition(store: LogStore, properties: dict[str, str]) -> None:
    table = table_of(store, properties=properties)
    table.delete("id in (3, 17)")
    before = table.to_arrow(row_ids=properties.get("delta.enableRowTracking") is not None).sort_by("id")
    feed_from = table.version()
    done = table.optimize()
    assert done.version == feed_from + 1 == table.version()
    assert table.to_arrow(row_ids="_row_id" in before.column_names).sort_by("id").equals(before)
    assert table.files().num_rows == 2
    assert table.files()["deletionVector"].null_count == 2
    assert table.check(deep=True) == []
    assert table.optimize().version is None
    assert table.version() == done.version


def test_the_history_equals_that_of_the_reference(store: LogStore) -> None:
    table = table_of(store, properties=VECTORS)
    table.delete("id = 3")
    sizes = dict(zip(*(table.files()[name].to_pylist() for name in ("path", "size")), strict=True))
    table.optimize("p = 'b'")
    actual = table.history(1)[0]
    added = [add["size"] for add in table.files().to_pylist() if add["path"] not in sizes]
    removed = [size for path, size in sizes.items() if "p=b" in path]
    assert (actual["operation"], actual["isolationLevel"], actual["isBlindAppend"]) == ("OPTIMIZE", "SnapshotIsolation", False)
    assert actual["operationParameters"] == {"predicate": "[\"p = 'b'\"]", "zOrderBy": "[]", "clusterBy": "[]", "auto": "false"}
    assert actual["operationMetrics"] == {
        "numAddedFiles": "1",
        "numRemovedFiles": "5",
        "numAddedBytes": str(sum(added)),
        "numRemovedBytes": str(sum(removed)),
        **{name: str(added[0]) for name in ("minFileSize", "p25FileSize", "p50FileSize", "p75FileSize", "maxFileSize")},
        "numDeletionVectorsRemoved": "1",
    }
    assert table.files().num_rows == 6


def test_readers_of_changes_see_nothing_of_it(store: LogStore) -> None:
    table = table_of(store, properties={"delta.enableChangeDataFeed": "true"})
    version = table.optimize().version
    assert version is not None
    assert table.changes(version, version).num_rows == 0


def test_the_target_comes_from_the_call_or_the_table(store: LogStore) -> None:
    table = table_of(store, files=6, partitioned=False)
    size = table.files()["size"][0].as_py()
    assert len(table.optimize(target_file_size=3 * size + 50, dry_run=True).plan.bins) == 2
    table.set_properties({"delta.targetFileSize": str(2 * size + 50)})
    planned = table.optimize(dry_run=True)
    assert (len(planned.plan.bins), planned.version, table.files().num_rows) == (3, None, 6)
    assert "would rewrite 6 of 6 files" in str(planned)
    table.optimize()
    assert table.files().num_rows == 3
    table.unset_properties(["delta.targetFileSize"])
    assert table.optimize(dry_run=True).plan.rules.target == 1024**3
    table.set_properties({"delta.tuneFileSizesForRewrites": "true"})
    assert table.optimize(dry_run=True).plan.rules.target == 256 * 1024**2


def test_batches_are_committed_one_by_one_and_progress_is_reported(store: LogStore) -> None:
    table = table_of(store, files=6, partitioned=False)
    size, before, progress = table.files()["size"][0].as_py(), contents(table), Reported()
    request = OptimizeRequest(target_file_size=2 * size + 100, batch_size=4 * size + 200)
    done = optimize(table.begin, table.commit, request, partial(rewritten_here, table.clock), progress)
    assert (done.batches, done.bins, done.metrics["numBatches"], table.version()) == (2, 3, 2, 8)
    assert progress.reports[-1] == ("files rewritten", 6, 6)
    assert contents(table).equals(before)


def test_a_condition_on_other_columns_is_refused_as_the_reference_does(store: LogStore) -> None:
    with pytest.raises(
        InvalidRequest, match=r"references non-partition column 'id'. Only the partition columns may be referenced: \[p\]"
    ):
        table_of(store).optimize("id = 3")


def test_values_that_make_no_sense_are_refused() -> None:
    for fault in ({"target_file_size": 0}, {"min_file_size": -1}, {"batch_size": 0}, {"max_deleted_rows_ratio": 2.0}):
        with pytest.raises(InvalidRequest, match=next(iter(fault))):
            OptimizeRequest(**fault)  # type: ignore[arg-type]


# -- clustering ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("curve", CURVES)
def test_clustered_rows_are_the_same_rows_in_files_that_a_condition_on_any_column_skips(store: LogStore, curve: str) -> None:
    schema = pa.schema({"p": pa.string(), "a": pa.int64(), "s": pa.struct({"b": pa.string()}), "row": pa.int64()})
    table = Table.create(store.url, schema, partition_by=["p"], properties=TRACKED, store=store)
    rows = [{"p": "xy"[i % 2], "a": i * 7919 % 997, "s": {"b": f"{i * 104_729 % 991:03}"}, "row": i} for i in range(2000)]
    for part in range(4):
        table.append(pa.Table.from_pylist(rows[part * 500 : part * 500 + 500], schema))
    table.delete("row = 77")
    before = table.to_arrow(row_ids=True).sort_by("row")
    done = table.optimize(zorder_by=["a", "S.B"], curve=curve, target_file_size=1600)
    assert table.to_arrow(row_ids=True).sort_by("row").equals(before)
    files = table.files().num_rows
    assert files >= 16
    assert (done.metrics["partitionsOptimized"], done.metrics["zOrderStats"]["mergedFiles"]["num"]) == (2, 8)
    assert len(table.files("a = 500")) <= files / 2
    assert len(table.files("s.b = '500'")) <= files * 0.6
    assert table.history(1)[0]["operationParameters"]["zOrderBy"] == '["a","S.B"]'
    assert table.check(deep=True) == []


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        (["p"], "DELTA_ZORDERING_ON_PARTITION_COLUMN"),
        (["id", "nowhere"], "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST"),
        (["v"], "DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS"),
    ],
)
def test_columns_that_nothing_is_gained_by_are_refused_as_the_reference_does(
    store: LogStore, columns: list[str], code: str
) -> None:
    table = table_of(store, properties={"delta.dataSkippingNumIndexedCols": "1"})
    with pytest.raises(InvalidRequest) as refused:
        table.optimize(zorder_by=columns)
    assert refused.value.code == code


def test_a_curve_that_nobody_knows_is_refused(store: LogStore) -> None:
    with pytest.raises(InvalidRequest, match="kd, hilbert, z"):
        table_of(store).optimize(zorder_by=["id"], curve="dragon")


# -- beside others ---------------------------------------------------------------------------------------------------------------


def test_appends_of_others_do_not_disturb_it(store: LogStore) -> None:
    table, other = table_of(store), Table(store.url, store=store)
    done = optimized_beside(table, lambda _: other.append(rows(1000)))
    assert (done.bins, table.files().num_rows) == (2, 4)
    assert contents(table)["id"].to_pylist() == [*range(50), *range(1000, 1010)]


@pytest.mark.parametrize("properties", [VECTORS, {}, TRACKED])
def test_a_delete_that_wins_has_its_bin_done_again_and_the_other_kept(store: LogStore, properties: dict[str, str]) -> None:
    table, other = table_of(store, properties=properties), Table(store.url, store=store)
    done = optimized_beside(table, lambda time: other.delete("id = 4") if time == 0 else None)
    # Without vectors the rows that stay are in a file that is new, and of no bin.
    new = not properties
    assert (done.bins, len(done.removed), table.files().num_rows) == (2, 10 - new, 2 + new)
    assert [i for i in range(50) if i not in table.to_arrow()["id"].to_pylist()] == [4]
    assert table.check(deep=True) == []
    # Discarded files are deleted, and those of the version before exist.
    assert len(data_files(table)) == 12 + new


def test_a_compaction_that_wins_is_enough(store: LogStore) -> None:
    table, other = table_of(store), Table(store.url, store=store)
    before = contents(table)
    done = optimized_beside(table, lambda time: other.optimize() if time == 0 else None)
    assert (done.version, done.added) == (None, ())
    assert contents(table).equals(before)
    assert len(data_files(table)) == 12


def test_new_metadata_has_all_bins_done_again(store: LogStore) -> None:
    table, other = table_of(store), Table(store.url, store=store)
    done = optimized_beside(
        table, lambda time: other.set_properties({"delta.parquet.compression.codec": "zstd"}) if not time else None
    )
    assert done.bins == 2
    assert all(".zstd.parquet" in path for path in live_files(table))
    assert len(data_files(table)) == 12


def test_bins_that_others_keep_changing_are_left_as_they_are(store: LogStore) -> None:
    table, other = table_of(store, properties={}), Table(store.url, store=store)
    done = optimized_beside(table, lambda time: other.delete(f"id = {10 * time}"))
    assert (done.bins, [add.partition_values for add in done.added]) == (1, [{"p": "b"}])
    assert table.check(deep=True) == []


def test_where_nothing_can_be_kept_and_others_go_on_nothing_is_done(store: LogStore) -> None:
    table, other = table_of(store, properties={}), Table(store.url, store=store)
    done = optimized_beside(table, lambda time: other.delete(f"id in ({10 * time}, {10 * time + 1})"))
    assert done.version is None
    assert live_files(table) <= data_files(table)
    assert len(data_files(table)) == 10 + 2 * 4  # of the DELETEs


def test_a_commit_that_always_conflicts_is_reported_and_leaves_no_files(store: LogStore) -> None:
    table = table_of(store)

    def commit(*_: object) -> None:
        raise DeltaConcurrentModificationException("another won")

    with pytest.raises(DeltaConcurrentModificationException):
        optimize(table.begin, commit, OptimizeRequest(), partial(rewritten_here, table.clock))  # type: ignore[arg-type]
    assert len(data_files(table)) == 10


# -- storage that fails ----------------------------------------------------------------------------------------------------------


def test_storage_that_fails_leaves_the_table_as_it_was_and_no_files(store: LogStore) -> None:
    before = contents(table_of(store))

    class NoSecondFile(WrappedStore):
        def put(self, name: str, data: bytes) -> None:
            if "part-00001" in name:
                raise StorageFailure("no space is left")
            super().put(name, data)

    with pytest.raises(StorageFailure, match="no space is left"):
        Table(store.url, store=NoSecondFile(store)).optimize()
    table = Table(store.url, store=store)
    assert contents(table).equals(before)
    assert len(data_files(table)) == 10


@pytest.mark.parametrize("seed", sampled(range(10), 3))
def test_storage_that_fails_now_and_then_never_loses_a_row(store: LogStore, seed: int) -> None:
    before = contents(table_of(store))
    faulty = Table(store.url, store=FaultyStore(store, Faults(0.2, 0.2, 0.2, write_failed=0.1), seed=seed))
    with suppress(StorageFailure):
        faulty.optimize()
    table = Table(store.url, store=store)
    assert contents(table).equals(before)
    assert table.check(deep=True) == []
