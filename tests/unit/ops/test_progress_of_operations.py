"""Progress of operations without Spark, and its display in a terminal."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tahoe.log.checkpoints.checkpoint_writer as checkpoint_writer
from tahoe.api.table import Table
from tahoe.base.progress import Reported
from tahoe.log.files.commits import read_commit
from tahoe.ops.copies.iceberg_table import IcebergRequest, iceberg_table
from tahoe.ops.copies.parquet_folder import FolderRequest, parquet_table
from tahoe.ops.merge.clauses import MergeBuilder, MergeStatement
from tahoe.ops.merge.merge import stage_merge
from tahoe.ops.repair.fsck import fsck
from tahoe.ops.repair.statistics import collected_here, compute_statistics
from tahoe.ops.reports.storage_use import storage_use
from tahoe.ops.reports.version_diff import RowComparison, diff_of
from tahoe.ops.rows.delete import stage_delete
from tahoe.ops.rows.insert import WriteOptions, stage_write
from tahoe.ops.rows.update import stage_update
from tahoe.ops.tables.alter import stage_sync_identity
from tahoe.ops.tables.alter_columns import ColumnChange, stage_change_columns
from tahoe.ops.tables.constrain import count_violations, stage_add_constraint
from tahoe.ops.upkeep.purge import stage_purge
from tahoe.ops.upkeep.restore import RestoreRequest, restore
from tahoe.ops.upkeep.upgrade_uniform import upgrade_uniform
from tahoe.schema.types import PrimitiveType, StructField, StructType
from tahoe.store.local_store import LocalLogStore
from tahoe.txn.hooks import checkpoint_snapshot
from tahoe.uniform.convert.conversion import DeltaSide
from tahoe.uniform.convert.converter import Converter

VECTORS = {"delta.enableDeletionVectors": "true"}
UNIFORM = {
    "delta.columnMapping.mode": "name",
    "delta.enableIcebergCompatV2": "true",
    "delta.universalFormat.enabledFormats": "iceberg",
}


def three_files(path, properties=None):
    table = Table.create(path, pa.schema([("id", pa.int64()), ("v", pa.string())]), properties=properties)
    table.append(pa.table({"id": range(9), "v": ["x"] * 9}), max_rows_per_file=3)
    return table


@pytest.fixture
def table(tmp_path):
    return three_files(tmp_path / "t")


def ends(progress):
    """The last report of each step, in order of the first reports."""
    return {step: (done, total) for step, done, total in progress.reports}


def merged(table, source, build: Callable[[MergeBuilder], MergeBuilder], progress):
    """Stage a MERGE as `MergeBuilder.execute` does."""

    def run(statement: MergeStatement):
        return stage_merge(table.begin(), statement, progress)

    builder = MergeBuilder(
        MergeStatement(source, "target.id = source.id", source_alias="source", target_alias="target"), run, run
    )
    return build(builder).execute()


def test_a_delete_reports_files_searched_and_rewritten(table):
    progress = Reported()
    stage_delete(table.begin(), "id in (1, 5)", progress=progress)
    assert progress.reports[0] == ("files searched", 0, 2), "the third file cannot hold such rows"
    assert ends(progress) == {"files searched": (2, 2), "files rewritten": (2, 2)}


def test_a_delete_by_vectors_reports_files_searched(tmp_path):
    progress = Reported()
    stage_delete(three_files(tmp_path / "v", VECTORS).begin(), "id % 3 = 1", progress=progress)
    assert ends(progress) == {"files searched": (3, 3)}


def test_an_update_reports_files_searched_and_rewritten(table):
    progress = Reported()
    stage_update(table.begin(), {"v": "'y'"}, "id = 4", progress=progress)
    assert ends(progress) == {"files searched": (1, 1), "files rewritten": (1, 1)}


def test_a_merge_reports_files_searched_and_rewritten(table):
    progress = Reported()
    source = pa.table({"id": [1, 4, 100], "v": ["new"] * 3})
    merged(table, source, lambda builder: builder.when_matched_update_all().when_not_matched_insert_all(), progress)
    assert ends(progress) == {"files searched": (2, 2), "files rewritten": (2, 2)}


def test_a_write_reports_rows_and_an_overwrite_of_a_condition_files_too(table):
    progress = Reported()
    stage_write(table.begin(), pa.table({"id": [1, 2, 3], "v": ["a"] * 3}), WriteOptions(max_rows_per_file=2), progress)
    assert progress.reports == [("rows written", done, 3) for done in (0, 2, 3)]
    progress = Reported()
    options = WriteOptions("overwrite", replace_where="id = 4")
    stage_write(table.begin(), pa.table({"id": [4], "v": ["a"]}).to_reader(), options, progress)
    assert ends(progress) == {"rows written": (1, None), "files searched": (1, 1), "files rewritten": (1, 1)}


def test_a_purge_reports_files_rewritten(tmp_path):
    table = three_files(tmp_path / "v", VECTORS)
    table.delete("id in (0, 8)")
    progress = Reported()
    stage_purge(table.begin(), None, progress)
    assert ends(progress) == {"files rewritten": (2, 2)}


def test_an_upgrade_reports_footers_and_files_rewritten(tmp_path):
    table = three_files(tmp_path / "v", VECTORS)
    table.delete("id = 0")
    progress = Reported()
    upgrade_uniform(table.begin, table.commit, 2, progress=progress)
    assert ends(progress)["files rewritten"][0] >= 1
    assert ends(progress)["footers read"][1] == 0, "the last look finds nothing to read"


def test_a_conversion_reports_files_when_it_begins_and_then_commits(tmp_path):
    asked = {name: value for name, value in UNIFORM.items() if name != "delta.universalFormat.enabledFormats"}
    table = three_files(tmp_path / "u", asked)  # nothing is converted but by this test
    converter = Converter(DeltaSide(table.store, table.snapshot, lambda version: read_commit(table.store, version)))
    progress = Reported()
    converter.convert(table.snapshot(), rebuild=True, progress=progress)
    assert ends(progress) == {"files converted": (3, 3)}
    for number in range(2):
        table.append(pa.table({"id": [number], "v": ["a"]}))
    progress = Reported()
    converter.convert(table.snapshot(), progress=progress)
    assert ends(progress) == {"commits read": (2, 2), "snapshots written": (1, 1)}


def test_a_large_checkpoint_reports_its_row_groups(table, monkeypatch):
    monkeypatch.setattr(checkpoint_writer, "_ROWS_WORTH_THREADS", 0)
    progress = Reported()
    checkpoint_snapshot(table.snapshot(), table.clock, progress)
    done, total = ends(progress)["row groups encoded"]
    assert done == total and total >= 2


class Terminal(io.StringIO):
    def isatty(self):
        return True


def executed(table):
    source = pa.table({"id": [1], "v": ["new"]})
    table.merge(source, "target.id = source.id").when_matched_update_all().execute()


SEEN = {
    "append": (lambda table: table.append(pa.table({"id": [1], "v": ["a"]})), "rows written"),
    "overwrite": (lambda table: table.overwrite(pa.table({"id": [1], "v": ["a"]})), "rows written"),
    "delete": (lambda table: table.delete("id = 4"), "files searched"),
    "update": (lambda table: table.update({"v": "'y'"}, "id = 4"), "files rewritten"),
    "merge": (executed, "files rewritten"),
    "check": (lambda table: table.check(), "commits checked"),
    "history": (lambda table: table.history(), "commits read"),
    "sync": (lambda table: table.uniform.sync(rebuild=True), "files converted"),
    "upgrade": (lambda table: table.uniform.upgrade(2), "footers read"),
}


@pytest.mark.parametrize("call", SEEN)
def test_who_sits_at_a_terminal_sees_a_long_call_and_nothing_is_left_of_it(tmp_path, monkeypatch, capsys, call):
    table = three_files(tmp_path / "t", UNIFORM)
    table.uniform.wait()
    run, step = SEEN[call]
    screen = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("tahoe.base.progress.PATIENCE_MS", 0)
    monkeypatch.setattr(sys, "stderr", screen)
    run(table)
    monkeypatch.undo()
    assert step in screen.getvalue()
    assert screen.getvalue().endswith("\x1b[2K")
    assert capsys.readouterr().out == ""


def test_a_pipe_sees_nothing_though_a_call_lasts(table, monkeypatch, capsys):
    monkeypatch.setattr("tahoe.base.progress.PATIENCE_MS", 0)
    table.delete("id = 4")
    output = capsys.readouterr()
    assert (output.out, output.err) == ("", "")
    assert json.dumps(table.to_arrow().num_rows) == "8"


def test_a_new_constraint_reports_rows_checked(table):
    progress = Reported()
    stage_add_constraint(
        transaction := table.begin(), transaction.existing(), "c", "id >= 0", partial(count_violations, progress=progress)
    )
    assert ends(progress) == {"rows checked": (9, None)}


def test_not_null_reports_columns_checked(table):
    progress = Reported()
    changes = [ColumnChange(("id",), nullable=False)]
    stage_change_columns(transaction := table.begin(), transaction.existing(), changes, progress)
    assert ends(progress) == {"columns checked": (1, 1)}


def test_the_synchronization_of_an_identity_column_reports_rows_read(tmp_path):
    identity = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": True}
    table = Table.create(
        tmp_path / "t",
        StructType((StructField("k", PrimitiveType("long"), True, identity), StructField("v", PrimitiveType("long")))),
    )
    table.append(pa.table({"k": [4, 5], "v": [1, 2]}))
    progress = Reported()
    stage_sync_identity(transaction := table.begin(), transaction.existing(), ("k",), progress=progress)
    assert ends(progress) == {"rows read": (2, None)}


def test_a_difference_of_rows_reports_the_rows_read_of_both_versions(table):
    table.delete("id = 4")
    progress = Reported()
    diff_of(table.snapshot(1), table.snapshot(2), RowComparison(), progress)
    assert ends(progress) == {"rows read of version 1": (3, None), "rows read of version 2": (2, None)}
    silent_one = Reported()
    diff_of(table.snapshot(1), table.snapshot(2), None, silent_one)
    assert silent_one.reports == []


def test_a_conversion_of_a_folder_reports_files_listed_and_footers_read(tmp_path):
    for name in "ab":
        pq.write_table(pa.table({"id": [1]}), tmp_path / f"{name}.parquet")
    progress = Reported()
    parquet_table(LocalLogStore(tmp_path), FolderRequest(), progress)
    assert ends(progress) == {"files listed": (2, None), "footers read": (2, 2)}


def test_the_reading_of_an_iceberg_table_reports_its_manifests(tmp_path):
    table = three_files(tmp_path / "t", UNIFORM)
    table.uniform.sync(timeout=60)
    progress = Reported()
    iceberg_table(table.store, IcebergRequest(statistics=False), progress)
    assert ends(progress)["manifests read"][0] == 1


def test_storage_use_and_fsck_tell_of_files_listed(table):
    for operation in (
        lambda progress: storage_use(table.snapshot(), progress),
        lambda progress: fsck(table.begin, table.commit, dry_run=True, progress=progress),
    ):
        progress = Reported()
        operation(progress)
        ((step, (done, total)),) = ends(progress).items()
        assert (step, total) == ("files listed", None) and done >= 3


def test_a_restore_and_statistics_tell_of_files(table):
    table.delete("id = 4")
    progress = Reported()
    restore(table.begin(), table.commit, RestoreRequest(version=1), progress)
    assert ends(progress)["files checked"][0] >= 1
    progress = Reported()
    compute_statistics(table.begin, table.commit, collected_here, progress=progress)
    assert ends(progress) == {"files read": (3, 3)}
