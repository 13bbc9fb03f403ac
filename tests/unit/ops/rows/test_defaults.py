"""Default values on their way through `Table`: rows that come without a column, and the word DEFAULT."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tahoe import Table
from tahoe.base.exceptions import InvalidRequest, TahoeError, Unsupported
from tahoe.schema.types import PrimitiveType, StructField, StructType

ENABLED = {"delta.feature.allowColumnDefaults": "supported"}
P = PrimitiveType


def rows(**columns):
    return pa.table(columns)


@pytest.fixture
def table(tmp_path):
    schema = StructType(
        (
            StructField("id", P("long")),
            StructField("n", P("integer"), False, {"CURRENT_DEFAULT": "40 + 2"}),
            StructField("s", P("string"), True, {"CURRENT_DEFAULT": "'new'"}),
            StructField("twice", P("integer"), True, {"delta.generationExpression": "n * 2"}),
        )
    )
    properties = {**ENABLED, "delta.constraints.some": "n > 0"}
    return Table.create(tmp_path / "t", schema, properties=properties)


def contents(table):
    return table.to_arrow().sort_by("id").to_pylist()


def row(id, n=42, s="new"):
    return {"id": id, "n": n, "s": s, "twice": 2 * n}


def test_rows_that_come_without_a_column_get_its_default_and_others_keep_null(table):
    table.append(rows(id=[1]))
    table.append(rows(id=[2], s=pa.array([None], pa.string()), n=[7]))
    assert contents(table) == [row(1), row(2, 7, None)]
    with pytest.raises(TahoeError, match="DELTA_NOT_NULL_CONSTRAINT_VIOLATED"):
        table.append(rows(id=[3], n=pa.array([None], pa.int32())))


def test_update_and_merge_know_the_word(table):
    table.append(rows(id=[1, 2], n=[7, 7], s=["a", "b"]))
    table.update({"n": "default", "s": "DEFAULT"}, "id = 1")
    table.update({"id": "DEFAULT"}, "id = 2")  # it has none
    merge = table.merge(rows(id=[1, 5, 6]), "target.id = source.id").when_matched_update({"target.n": "DEFAULT"})
    merge = merge.when_not_matched_insert({"id": "source.id", "n": "DEFAULT", "s": "'given'"}, condition="source.id = 5")
    merge.when_not_matched_insert_all().execute()
    assert sorted(contents(table), key=str) == sorted([row(1), row(None, 7, "b"), row(5, s="given"), row(6)], key=str)


def test_alter_column_sets_and_drops(table):
    table.change_column("s", default="")
    table.change_column("id", default="1 + 1", comment="two")
    table.append(rows(n=[1]))
    assert contents(table) == [row(2, 1, None)]
    assert table.schema().field("id").metadata == {"comment": "two", "CURRENT_DEFAULT": "1 + 1"}
    for name, text, code in (
        ("twice", "1", "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"),
        ("n", "'x'", "INVALID_DEFAULT_VALUE.DATA_TYPE"),
        ("n", "java_method('a')", "TAHOE_EXPRESSION_NOT_ALLOWED"),
    ):
        with pytest.raises(TahoeError) as caught:
            table.change_column(name, default=text)
        assert caught.value.code == code


def test_the_feature_comes_first(tmp_path):
    columns = (StructField("id", P("long")), StructField("n", P("long"), True, {"CURRENT_DEFAULT": "1"}))
    with pytest.raises(InvalidRequest, match="WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED"):
        Table.create(tmp_path / "t", StructType(columns))
    plain = Table.create(tmp_path / "t", StructType(columns[:1]))
    with pytest.raises(InvalidRequest, match="WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED"):
        plain.change_column("id", default="1")
    with pytest.raises(InvalidRequest, match="ADD_COLUMN_NOT_SUPPORTED"):
        plain.add_columns(StructType(columns[1:]))
    plain.set_properties(ENABLED)
    plain.change_column("id", default="1")
    assert "allowColumnDefaults" in plain.snapshot().config.features


@pytest.mark.parametrize("nested", [False, True])
def test_a_default_that_no_writer_can_fill_in_is_refused_on_write(tmp_path, nested):
    inner = StructField("n", P("long"), True, {"CURRENT_DEFAULT": "boom()" if not nested else "1"})
    schema = StructType((StructField("id", P("long")), StructField("s", StructType((inner,))) if nested else inner))
    table = Table.create(tmp_path / "t", StructType((StructField("id", P("long")),)), properties=ENABLED)
    transaction = table.begin()
    from dataclasses import replace

    from tahoe.txn.transaction import Operation

    transaction.set_metadata(replace(transaction.existing().metadata, schema_string=schema.to_json()))
    transaction.enforces = frozenset({"allowColumnDefaults", "allowColumnDefaults (column n)"})
    table.commit(transaction, Operation("OTHER WRITER"))
    with pytest.raises((Unsupported, InvalidRequest)) as caught:
        table.append(rows(id=[1]))
    assert "column n" in str(caught.value) or "'n'" in str(caught.value)
    assert table.to_arrow().num_rows == 0


def test_overwriting_and_copying_keep_the_defaults(table, tmp_path):
    table.append(rows(id=[1]))
    table.overwrite(rows(id=[2]))
    assert contents(table) == [row(2)]
    table.clone(tmp_path / "clone")
    clone = Table(tmp_path / "clone")
    clone.append(rows(id=[3]))
    assert contents(clone) == [row(2), row(3)]
