"""The golden tables through the reader that needs no Spark: the rows that their writers expect, and clear refusals."""

from __future__ import annotations

import pytest

from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.object_store import open_store
from tests.tables.golden import (
    ABSENT,
    HIVE_ROWS,
    REFUSED,
    ROOT,
    WITHOUT_DATA,
    GoldenTable,
    Refusal,
    assert_same_rows,
    dat_tables,
    golden_tables,
    hive_tables,
)

pytestmark = pytest.mark.skipif(not ROOT.exists(), reason=ABSENT)


def snapshot_of(path, version=None):
    return Snapshot.at(open_store(path), version)


@pytest.mark.every_case
@pytest.mark.parametrize("table", dat_tables() + golden_tables(), ids=lambda table: table.name)
def test_a_golden_table_is_read_equal(table: GoldenTable):
    snapshot = snapshot_of(table.path, table.version)
    assert_same_rows(snapshot.scan().to_arrow(), table.rows())


@pytest.mark.parametrize("table", dat_tables(), ids=lambda table: table.name)
def test_version_and_protocol_are_those_of_the_answer(table: GoldenTable):
    snapshot = snapshot_of(table.path, table.version)
    assert table.metadata is not None
    assert snapshot.version == table.metadata["version"]
    assert snapshot.protocol.min_reader_version == table.metadata["min_reader_version"]
    assert snapshot.protocol.min_writer_version == table.metadata["min_writer_version"]


@pytest.mark.parametrize("refusal", REFUSED, ids=lambda refusal: refusal.name)
def test_a_table_that_cannot_be_read_right_is_refused_for_its_reason(refusal: Refusal):
    with pytest.raises(refusal.error) as raised:
        snapshot_of(refusal.path).scan().to_arrow()
    for part in refusal.says:
        assert part in str(raised.value)
    assert raised.value.code


@pytest.mark.parametrize("name", WITHOUT_DATA)
def test_the_log_of_a_table_without_its_data_lists_the_live_files(name: str):
    snapshot = snapshot_of(ROOT / "golden-tables" / name / "delta")
    assert snapshot.num_files == WITHOUT_DATA[name]


@pytest.mark.parametrize("path", hive_tables(), ids=lambda path: path.name)
def test_the_tables_for_hive_are_read_whole(path):
    snapshot = snapshot_of(path)
    actual = snapshot.scan().to_arrow()
    assert actual.column_names == snapshot.schema.names
    assert actual.num_rows == HIVE_ROWS.get(path.name, 10)
    assert all(column.null_count == 0 for column in actual.columns)


def test_special_characters_in_partition_values_come_back_from_the_paths_of_hive():
    actual = (
        snapshot_of(ROOT / "golden-tables" / "hive" / "delta" / "deltatbl-special-chars-in-partition-column").scan().to_arrow()
    )
    assert sorted(actual.to_pylist(), key=lambda row: row["c1"]) == [{"c1": i, "c2": f"+ =%{i % 2}"} for i in range(10)]
