"""The column `_metadata` in DELETE, UPDATE and filters, in both kinds of session."""

from __future__ import annotations

from typing import Any

import pyspark
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf

from tahoe.base.exceptions import InvalidRequest
from tahoe.spark.jvm.bridge import is_classic
from tahoe.tables import DeltaTable


@pytest.fixture
def sees_aliases(either_session: Any) -> bool:
    """Whether `_metadata` is known above an alias, also that of Tahoe with row ids: not in classic sessions before PySpark 4.2."""
    return pyspark.__version__ >= "4.2" or not is_classic(either_session)


@pytest.fixture
def table(either_session: Any, tmp_path: Any, sees_aliases: bool) -> str:
    """A table of four files with one row each, and a column with the name of a field of `_metadata`."""
    name = f"delta.`{tmp_path}`"
    either_session.sql(
        f"CREATE TABLE {name} (id BIGINT, file_name STRING, p INT) USING delta PARTITIONED BY (p) TBLPROPERTIES "
        f"(delta.enableRowTracking = {str(sees_aliases).lower()}, delta.enableChangeDataFeed = true)"
    )
    for number in range(4):
        either_session.sql(f"INSERT INTO {name} VALUES ({number}, 'word {number}', {number % 2})")
    return name


def ids(spark: Any, table: str) -> list[int]:
    return sorted(row.id for row in spark.sql(f"SELECT id FROM {table}").collect())


@pytest.mark.parametrize("field", ["file_name", "file_path", "row_id", "default_row_commit_version"])
def test_a_condition_selects_the_rows_of_a_file(either_session, table, sees_aliases, field):
    if not sees_aliases and not field.startswith("file_"):
        pytest.skip("PySpark before 4.2 finds no row ids above an alias")
    values = {row.id: row.value for row in either_session.sql(f"SELECT id, _metadata.{field} AS value FROM {table}").collect()}
    condition = f"_metadata.{field} = {values[2]!r}"
    assert [row.id for row in either_session.sql(f"SELECT id FROM {table} WHERE {condition}").collect()] == [2]
    if not sees_aliases:
        pytest.skip("PySpark before 4.2 finds no metadata in DELETE and UPDATE")
    either_session.sql(f"UPDATE {table} SET file_name = 'new' WHERE {condition}")
    assert [row.id for row in either_session.sql(f"SELECT id FROM {table} WHERE file_name = 'new'").collect()] == [2]
    other = f"_metadata.{field} = {values[1]!r}"
    either_session.sql(f"DELETE FROM {table} AS t WHERE t.{other} OR t.id = 7")
    assert ids(either_session, table) == [0, 2, 3]


def test_methods_take_it_too(either_session, table, tmp_path, sees_aliases):
    if not sees_aliases:
        pytest.skip("PySpark before 4.2 finds no metadata above an alias")
    target = DeltaTable.forPath(either_session, str(tmp_path)).alias("t")
    target.update("t._metadata.row_index = 0 AND t.id < 2", {"id": "t.id + t._metadata.file_block_start + 10"})
    target.delete(sf.col("_metadata.file_size") < 0)
    assert ids(either_session, table) == [2, 3, 10, 11]


def test_a_value_is_that_of_the_row_before_the_update(either_session, table, tmp_path, sees_aliases):
    if not sees_aliases:
        pytest.skip("PySpark before 4.2 finds no row ids above an alias")
    row_ids = {row.id: row.row_id for row in either_session.sql(f"SELECT id, _metadata.row_id FROM {table}").collect()}
    either_session.sql(f"UPDATE {table} SET id = _metadata.row_id + 100, file_name = _metadata.file_name WHERE id > 0")
    rows = either_session.sql(f"SELECT id, file_name, _metadata.row_id FROM {table} WHERE id >= 100").collect()
    assert sorted(row.id for row in rows) == sorted(row_ids[number] + 100 for number in (1, 2, 3))
    assert all(row.id == row.row_id + 100 and row.file_name.endswith(".parquet") for row in rows)
    changes = either_session.sql(f"SELECT id, _change_type FROM table_changes_by_path('{tmp_path}', 5)").collect()
    assert sorted(row.id for row in changes if row[1] == "update_postimage") == sorted(row.id for row in rows)


def test_unknown_fields_and_a_column_of_the_name(either_session, table, tmp_path):
    with pytest.raises(AnalysisException, match="FIELD_NOT_FOUND"):
        either_session.sql(f"DELETE FROM {table} WHERE _metadata.nothing = 1")
    own = f"delta.`{tmp_path}/own`"
    either_session.sql(f"CREATE TABLE {own} (_metadata INT) USING delta")
    either_session.sql(f"INSERT INTO {own} VALUES (1), (2)")
    either_session.sql(f"UPDATE {own} SET _metadata = _metadata + 10 WHERE _metadata = 1")
    assert sorted(row[0] for row in either_session.sql(f"SELECT * FROM {own}").collect()) == [2, 11]


def test_columns_with_the_names_of_added_ones_are_refused(either_session, tmp_path):
    for name in ("__tahoe_row", "__TAHOE_FILE"):
        table = f"delta.`{tmp_path}/{name}`"
        either_session.sql(f"CREATE TABLE {table} (id BIGINT, {name} BIGINT) USING delta")
        either_session.sql(f"INSERT INTO {table} VALUES (1, 2)")
        for statement in (f"DELETE FROM {table} WHERE id = 1", f"UPDATE {table} SET id = 2 WHERE id = 1"):
            with pytest.raises(InvalidRequest, match="TAHOE_RESERVED_COLUMN_NAME"):
                either_session.sql(statement)
        assert ids(either_session, table) == [1]
