"""Expressions that only Spark evaluates: left to it as text, with the columns that they may read; refused without Spark only on writing."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.expr.compute.compute import compute
from tahoe.expr.parse.engine_text import engine_text
from tahoe.expr.parse.parse_expression import parse_condition
from tahoe.expr.tree.expression import engine_text_in, references_of
from tahoe.protocol.constraints import constraints_of, spark_text
from tahoe.protocol.features import ENFORCED
from tahoe.schema.arrow import from_arrow_schema
from tahoe.txn.transaction import Operation

ARROW = pa.schema(
    [
        ("a", pa.string()),
        ("b", pa.int64()),
        ("St", pa.struct([("x", pa.int32()), ("y", pa.struct([("z", pa.int32())]))])),
        ("odd name", pa.int32()),
        ("1st", pa.int32()),
    ]
)
SCHEMA = from_arrow_schema(ARROW)
REASON = "TAHOE_EXPRESSION_NOT_ALLOWED", "It is not read."


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("sha2(a, 256)", ["a"]),
        ("transform(array(B), x -> x + 1)", ["b"]),
        ("st.x > 1", ["St", "St.x"]),
        ("st.y.`z` + 1", ["St", "St.y", "St.y.z"]),
        ("`odd name` + `1st` + 1st", ["1st", "odd name"]),
        ("'a' || \"b\" -- no column of these", []),
        ("concat('it''s b', a)", ["a"]),
        ("a + 'a text that does not end, b", ["a", "b"]),
        ("a + `a name that does not end, b", ["a", "b"]),
    ],
)
def test_every_column_and_field_whose_name_stands_in_the_text_is_read(text: str, columns: list[str]) -> None:
    assert sorted(".".join(reference.path) for reference in references_of(engine_text(text, SCHEMA, *REASON))) == columns


def test_the_evaluator_and_the_rewritten_text_refuse_it() -> None:
    engine = engine_text("reflect('a')", SCHEMA, *REASON)
    with pytest.raises(Unsupported, match="Only Spark can evaluate"):
        compute(engine, pa.table({"a": ["x"]}))
    with pytest.raises(AssertionError):
        spark_text(engine)


def test_a_filter_is_never_left_to_spark() -> None:
    with pytest.raises(InvalidRequest, match="sha2"):
        parse_condition("sha2(a, 256) = 'x'", SCHEMA)


def made(memory_url: str, expression: str, check: str | None = None) -> Table:
    """A table that another writer created: Tahoe without Spark creates none with such an expression."""
    table = Table.create(memory_url, pa.schema([*list(ARROW)[:3], ("h", pa.string())]))
    table.append(pa.table({"a": ["x", "y"], "b": [1, 2], "h": ["1", "2"]}))
    transaction = table.begin()
    transaction.enforces = ENFORCED
    metadata = transaction.existing().metadata
    schema = json.loads(metadata.schema_string)
    schema["fields"][3]["metadata"] = {"delta.generationExpression": expression}
    configuration = {**metadata.configuration, **({} if check is None else {"delta.constraints.c": check})}
    transaction.set_metadata(replace(metadata, schema_string=json.dumps(schema), configuration=configuration))
    table.commit(transaction, Operation("REPLACE COLUMNS"))
    return table


@pytest.mark.parametrize(
    "expression",
    [
        "sha2(a, 256)",
        "concat_ws(',', transform(array(a), x -> x || '1'))",
        "CAST(now() - INTERVAL 1 DAY AS STRING)",
        "reflect('a')",
    ],
)
def test_without_spark_such_a_table_is_read_and_rows_are_deleted(memory_url: str, expression: str) -> None:
    table = made(memory_url, expression, check="exists(array(b), x -> x > 0)")
    assert engine_text_in(constraints_of(table.snapshot().config).generated[0].value) is not None
    assert table.to_arrow("b = 1")["a"].to_pylist() == ["x"]
    table.set_properties({"delta.enableDeletionVectors": "true"})
    table.delete("b = 1")
    assert table.to_arrow()["a"].to_pylist() == ["y"]


def test_without_spark_a_delete_that_rewrites_files_copies_the_other_rows(memory_url: str) -> None:
    table = made(memory_url, "sha2(a, 256)")
    table.delete("b = 1")
    assert table.to_arrow()["a"].to_pylist() == ["y"]
    with pytest.raises(Unsupported, match="sha2"):
        table.overwrite(pa.table({"a": ["z"], "b": [2]}), replace_where="b = 2")
    assert table.to_arrow()["h"].to_pylist() == ["2"]


def test_without_spark_writes_are_refused_before_a_file_is_written(memory_url: str) -> None:
    table = made(memory_url, "sha2(a, 256)")
    version = table.version()
    for write in (
        lambda: table.append(pa.table({"a": ["z"], "b": [3]})),
        lambda: table.update({"a": "'z'"}, "b = 1"),
        lambda: table.add_constraint("c", "crc32(a) > 0"),
    ):
        with pytest.raises(Unsupported, match=r"'(sha2|crc32)' is not on the list .* through Spark"):
            write()
    assert table.version() == version


def test_without_spark_a_column_that_the_text_reads_is_neither_dropped_nor_renamed(memory_url: str) -> None:
    table = made(memory_url, "sha2(a, 256)", check="forall(array(b), x -> x > 0)")
    table.set_properties({"delta.columnMapping.mode": "name"})
    with pytest.raises(InvalidRequest, match="generated") as raised:
        table.drop_columns(["a"])
    assert raised.value.code == "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE"
    with pytest.raises(InvalidRequest, match="forall") as raised:
        table.rename_column("b", "c")
    assert raised.value.code == "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"
    table.drop_columns(["St"])
