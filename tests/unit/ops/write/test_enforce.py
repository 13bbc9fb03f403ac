"""Constraints and generated columns through `Table`: rows that violate them are not committed by any operation."""

from __future__ import annotations

import json
from datetime import date, datetime

import pyarrow as pa
import pytest

from tahoe import Table
from tahoe.base.exceptions import InvalidRequest, InvariantViolation, SchemaMismatch, Unsupported
from tahoe.ops.rows.insert import WriteOptions, prepare_schema
from tahoe.protocol.actions import AddFile
from tahoe.schema.types import ArrayType, PrimitiveType, StructField, StructType
from tahoe.txn.transaction import Operation

P = PrimitiveType


def field(name, data_type, *, nullable=True, **metadata):
    return StructField(name, data_type, nullable, {key.replace("__", "."): value for key, value in metadata.items()})


def rows(**columns):
    return pa.table(columns)


@pytest.fixture
def checked(tmp_path):
    """A table with a CHECK over two columns."""
    schema = StructType((field("id", P("long")), field("price", P("double")), field("s", StructType((field("x", P("long")),)))))
    return Table.create(tmp_path / "t", schema, properties={"delta.constraints.fair": "price > 0 AND (s.x IS NULL OR s.x < id)"})


def untouched(table, version, *act, error=InvariantViolation):
    with pytest.raises(error) as caught:
        act[0](*act[1:])
    assert table.version() == version
    assert table.check() == []
    return caught.value


def test_a_table_with_a_check_has_the_feature_and_takes_rows_that_fulfil_it(checked):
    assert checked.snapshot().protocol.min_writer_version == 3
    assert checked.append(rows(id=[1, 2], price=[1.5, 2.0], s=[{"x": 0}, None])) == 1
    assert checked.to_arrow().num_rows == 2


@pytest.mark.parametrize(
    ("price", "inner"), [([1.0, -1.0], [None, None]), ([1.0, None], [None, None]), ([1.0, float("nan")], [None, {"x": 9}])]
)
def test_a_row_for_which_a_check_is_false_or_null_is_refused_with_its_values(checked, price, inner):
    error = untouched(checked, 0, checked.append, rows(id=[1, 2], price=price, s=inner))
    assert error.code == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    assert error.facts["constraint"] == "fair"
    assert "fair" in str(error) and "price > 0" in str(error) and f" - price : {price[1]}" in str(error)


def test_no_file_is_left_of_rows_that_were_refused(checked):
    batches = pa.RecordBatchReader.from_batches(
        pa.schema({"id": pa.int64(), "price": pa.float64()}),
        iter([pa.record_batch({"id": [1], "price": [1.0]}), pa.record_batch({"id": [2], "price": [-1.0]})]),
    )
    untouched(checked, 0, checked.append, batches)
    assert [entry.name for entry in checked.store.walk() if not entry.name.startswith("_delta_log")] == []


def test_overwrite_update_and_delete_obey_a_check(checked):
    checked.append(rows(id=[1, 2], price=[1.0, 2.0]))
    untouched(checked, 1, checked.overwrite, rows(id=[1], price=[0.0]))
    error = untouched(checked, 1, checked.update, {"price": "price - 1.5"}, "id <= 2")
    assert " - price : -0.5" in str(error)
    checked.update({"price": "price + 1"}, "id = 1")
    checked.delete("id = 2")
    assert checked.to_arrow(columns=["price"])["price"].to_pylist() == [2.0]


def test_metadata_of_a_table_with_a_check_may_change_but_not_the_check_itself(checked):
    assert checked.set_properties({"delta.checkpointInterval": "20"}) == 1
    assert (
        untouched(checked, 1, checked.set_properties, {"delta.constraints.Fair": "true"}, error=InvalidRequest).code
        == "DELTA_ADD_CONSTRAINTS"
    )
    assert checked.drop_constraint("FAIR") == 2
    checked.append(rows(id=[1], price=[-1.0]))
    with pytest.raises(InvalidRequest, match="no constraint"):
        checked.drop_constraint("fair")
    assert checked.drop_constraint("fair", if_exists=True) == 3


def test_a_new_constraint_is_compared_with_the_rows_that_are_there(tmp_path):
    table = Table(tmp_path / "t")
    table.append(rows(id=[1, 2, 3, None]))
    error = untouched(table, 0, table.add_constraint, "small", "id < 3")
    assert error.code == "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION"
    assert error.facts["rows"] == 2
    assert table.add_constraint("Small", "id < 4 OR id IS NULL") == 1
    assert table.snapshot().metadata.configuration["delta.constraints.small"] == "id < 4 OR id IS NULL"
    assert table.history(1)[0]["operation"] == "ADD CONSTRAINT"
    untouched(table, 1, table.append, rows(id=[4]))
    assert (
        untouched(table, 1, table.add_constraint, "SMALL", "true", error=InvalidRequest).code == "DELTA_CONSTRAINT_ALREADY_EXISTS"
    )


@pytest.mark.parametrize(
    ("condition", "error"),
    [
        ("id +", InvalidRequest),
        ("id + 1", InvalidRequest),
        ("other = 1", InvalidRequest),
        ("rand() < 1", Unsupported),
        ("reflect('a', 'b')", Unsupported),
    ],
)
def test_a_constraint_that_cannot_be_enforced_is_refused_when_it_is_made(tmp_path, condition, error):
    table = Table(tmp_path / "t")
    table.append(rows(id=[1]))
    untouched(table, 0, table.add_constraint, "c", condition, error=error)
    with pytest.raises(error):
        Table.create(tmp_path / "u", pa.schema({"id": pa.int64()}), properties={"delta.constraints.c": condition})


def test_a_check_that_cannot_be_computed_for_a_row_is_an_error(tmp_path):
    table = Table.create(tmp_path / "t", pa.schema({"a": pa.int64()}), properties={"delta.constraints.c": "10 / a > 1"})
    assert untouched(table, 0, table.append, rows(a=[1, 0]), error=InvalidRequest).code == "DIVIDE_BY_ZERO"


def test_column_invariants_are_enforced_inside_structs_too(tmp_path):
    inner = field("x", P("long"), delta__invariants=json.dumps({"expression": {"expression": "s.x > 3"}}))
    outer = field("v", P("long"), delta__invariants=json.dumps({"expression": {"expression": "v < 10"}}))
    table = Table.create(tmp_path / "t", StructType((outer, field("s", StructType((inner,))))))
    table.append(rows(v=[1], s=[{"x": 4}]))
    assert "EXPRESSION(s.x > 3)" in str(untouched(table, 1, table.append, rows(v=[1], s=[{"x": 3}])))
    assert "EXPRESSION(v < 10)" in str(untouched(table, 1, table.append, rows(v=[10], s=[{"x": 4}])))


def test_an_invariant_inside_a_list_is_beyond_us_and_named(tmp_path):
    inner = StructType((field("x", P("long"), delta__invariants=json.dumps({"expression": {"expression": "x > 3"}})),))
    with pytest.raises(Unsupported, match=r"invariants \(column x\)"):
        Table.create(tmp_path / "t", StructType((field("a", ArrayType(inner)),)))


@pytest.fixture
def generating(tmp_path):
    """A table partitioned by a day that its timestamp gives."""
    schema = StructType(
        (
            field("at", P("timestamp_ntz")),
            field("day", P("date"), nullable=False, delta__generationExpression="CAST(at AS DATE)"),
            field("n", P("integer")),
            field("twice", P("integer"), delta__generationExpression="n * 2"),
        )
    )
    return Table.create(tmp_path / "g", schema, partition_by=["day"])


NOON = datetime(2024, 5, 6, 12)


def test_generated_columns_are_computed_when_absent(generating):
    assert "generatedColumns" in generating.snapshot().config.features
    generating.append(rows(at=[NOON, NOON.replace(day=7)], n=pa.array([1, None], pa.int32())))
    actual = generating.to_arrow().sort_by("day").to_pylist()
    assert [(row["day"], row["twice"]) for row in actual] == [(date(2024, 5, 6), 2), (date(2024, 5, 7), None)]
    assert generating.files().num_rows == 2
    assert generating.to_arrow(filter="day = DATE '2024-05-07'").num_rows == 1


def test_generated_columns_are_checked_null_safely_when_given(generating):
    n = pa.array([None, 4], pa.int32())
    generating.append(rows(at=[NOON, NOON], day=[date(2024, 5, 6)] * 2, n=n, TWICE=[None, 8]))
    error = untouched(generating, 1, generating.append, rows(at=[NOON, NOON], n=n, twice=[None, 9]))
    assert "Generated Column" in str(error) and " - twice : 9" in str(error) and " - n : 4" in str(error)
    untouched(generating, 1, generating.append, rows(at=[NOON], n=pa.array([1], pa.int32()), twice=pa.array([None], pa.int64())))


def test_a_generated_column_that_must_not_be_null_is_checked_after_it_is_computed(generating):
    error = untouched(
        generating, 0, generating.append, rows(at=pa.array([None], pa.timestamp("us")), n=pa.array([1], pa.int32()))
    )
    assert error.code == "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"
    assert "'day'" in str(error)


def test_other_columns_may_still_not_be_left_out(tmp_path):
    schema = StructType((field("a", P("long"), nullable=False), field("b", P("long"), delta__generationExpression="a + 1")))
    table = Table.create(tmp_path / "t", schema)
    untouched(table, 0, table.append, rows(b=[1]), error=SchemaMismatch)


def test_an_update_brings_generated_columns_along(generating):
    generating.append(rows(at=[NOON, NOON], n=pa.array([1, 2], pa.int32())))
    generating.update({"n": "n + 10", "at": "TIMESTAMP_NTZ '2024-06-01 00:00:00'"}, "n = 2")
    actual = generating.to_arrow().sort_by("n").to_pylist()
    assert [(row["n"], row["twice"], row["day"]) for row in actual] == [(1, 2, date(2024, 5, 6)), (12, 24, date(2024, 6, 1))]
    untouched(generating, 2, generating.update, {"twice": "5"}, "n = 1")


def test_a_generated_column_may_not_rest_on_another(tmp_path):
    schema = StructType(
        (
            field("a", P("long")),
            field("b", P("long"), delta__generationExpression="a + 1"),
            field("c", P("long"), delta__generationExpression="b + 1"),
        )
    )
    with pytest.raises(InvalidRequest, match="generated column 'c'"):
        Table.create(tmp_path / "t", schema)


def test_constraints_find_columns_under_mapped_names(tmp_path):
    schema = StructType((field("id", P("long")), field("s", StructType((field("x y", P("long")),)))))
    properties = {"delta.columnMapping.mode": "name", "delta.constraints.c": "s.`x y` > id"}
    table = Table.create(tmp_path / "t", schema, properties=properties)
    table.append(rows(id=[1], s=[{"x y": 2}]))
    assert "s.x y : 0" in str(untouched(table, 1, table.append, rows(id=[1], s=[{"x y": 0}])))


def test_a_writer_that_does_not_say_that_it_enforces_is_refused_by_name(checked, generating):
    for table, name in ((checked, "checkConstraints"), (generating, r"generatedColumns \(column day\)")):
        transaction = table.begin()
        with pytest.raises(Unsupported, match=name):
            prepare_schema(transaction, table.snapshot().schema, WriteOptions())
        transaction.stage(AddFile("f.parquet", {"day": "2024-05-06"} if table is generating else {}, 1, 1, True))
        with pytest.raises(Unsupported, match=name):
            table.commit(transaction, Operation("WRITE"))


def test_change_data_is_not_checked_again(tmp_path):
    properties = {"delta.enableChangeDataFeed": "true", "delta.constraints.c": "v > 0"}
    table = Table.create(tmp_path / "t", pa.schema({"v": pa.int64()}), properties=properties)
    table.append(rows(v=[1, 2]))
    table.drop_constraint("c")
    table.append(rows(v=[-1]))
    table.update({"v": "5"}, "v = -1")
    assert sorted(table.to_arrow()["v"].to_pylist()) == [1, 2, 5]


def test_a_generated_column_has_the_type_of_its_expression(tmp_path):
    schema = StructType((field("n", P("integer")), field("twice", P("long"), delta__generationExpression="n * 2")))
    with pytest.raises(InvalidRequest, match=r"CAST\(\.\.\. AS BIGINT\)") as caught:
        Table.create(tmp_path / "t", schema)
    assert caught.value.code == "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH"
    schema = StructType((field("n", P("integer")), field("twice", P("long"), delta__generationExpression="other * 2")))
    with pytest.raises(InvalidRequest) as caught:
        Table.create(tmp_path / "t", schema)
    assert caught.value.code == "DELTA_INVALID_GENERATED_COLUMN_REFERENCES"
    with pytest.raises(InvalidRequest) as caught:
        Table.create(tmp_path / "t", pa.schema({"a": pa.int64()}), properties={"delta.constraints.c": "b > 0"})
    assert caught.value.code == "DELTA_INVALID_CHECK_CONSTRAINT_REFERENCES"


@pytest.mark.parametrize(
    ("metadata", "properties", "code"),
    [
        ({}, {"delta.constraints.c": "v IS NULL OR a > 0"}, "DELTA_CONSTRAINT_DATA_TYPE_MISMATCH"),
        ({"delta__generationExpression": "v IS NULL"}, {}, "DELTA_GENERATED_COLUMNS_DATA_TYPE_MISMATCH"),
    ],
)
def test_columns_in_a_rule_do_not_change_their_type(tmp_path, metadata, properties, code):
    schema = StructType((field("a", P("long")), field("v", P("void")), field("g", P("boolean"), **metadata)))
    table = Table.create(tmp_path / "t", schema, properties=properties)
    table.append(rows(a=[1], w=[2]), merge_schema=True)
    error = untouched(table, 1, lambda: table.append(rows(a=[1], v=[2]), merge_schema=True), error=InvalidRequest)
    assert error.code == code
    assert "'v'" in str(error) or "`v`" in str(error)


@pytest.mark.parametrize("by_merge", [False, True], ids=["append", "merge"])
@pytest.mark.parametrize(
    ("new", "code"),
    [
        ({"a": pa.int64()}, "DELTA_GENERATED_COLUMNS_DATA_TYPE_MISMATCH"),
        ({"a": pa.int64(), "g": pa.int64()}, "DELTA_GENERATED_COLUMNS_DATA_TYPE_MISMATCH"),
        ({"a": pa.int32(), "g": pa.int64()}, "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH"),
        ({"a": pa.int32(), "c": pa.int64()}, "DELTA_CONSTRAINT_DATA_TYPE_MISMATCH"),
        ({"a": pa.int32(), "free": pa.int64()}, None),
    ],
)
def test_evolution_widens_no_generated_column_and_none_in_a_rule(tmp_path, by_merge, new, code):
    generated = field("g", P("integer"), delta__generationExpression="a + 1")
    schema = StructType((field("a", P("integer")), generated, field("c", P("integer")), field("free", P("integer"))))
    properties = {"delta.enableTypeWidening": "true", "delta.constraints.c": "c IS NULL OR c > 0"}
    table = Table.create(tmp_path / "t", schema, properties=properties)
    table.append(rows(a=[1]).cast(pa.schema({"a": pa.int32()})))
    source = pa.table({name: pa.array([6 if name == "g" else 5], kind) for name, kind in new.items()})

    def change() -> None:
        if by_merge:
            merge = table.merge(source, "source.a = target.a").with_schema_evolution()
            merge.when_not_matched_insert_all().execute()
        else:
            table.append(source, merge_schema=True)

    if code is None:
        change()
        assert str(table.schema().find("free").data_type) == "long"
    else:
        assert untouched(table, 1, change, error=InvalidRequest).code == code


def test_a_partition_generated_as_the_empty_text_is_null(tmp_path):
    first = field("first", P("string"), delta__generationExpression="substring(code, 1, 2)")
    table = Table.create(tmp_path / "t", StructType((field("code", P("string")), first)), partition_by=["first"])
    table.append(rows(code=["abc", ""]))
    assert {(row["code"], row["first"]) for row in table.to_arrow().to_pylist()} == {("abc", "ab"), ("", None)}
    assert table.check() == []
