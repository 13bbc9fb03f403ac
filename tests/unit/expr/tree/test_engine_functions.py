"""Functions that only Spark evaluates: parsed for constraints and generated columns alone, and refused without Spark only on writing."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest

from tahoe.exceptions import InvalidRequest, Unsupported
from tahoe.expr.parse.parse_expression import parse_condition, parse_expression
from tahoe.expr.tree.engine_functions import ENGINE_FUNCTIONS, ENGINE_TYPE, engine_functions_in
from tahoe.expr.tree.expression import sql_of_expression
from tahoe.protocol.enforced import ENFORCED
from tahoe.schema.arrow import from_arrow_schema
from tahoe.table import Table
from tahoe.txn.transaction import Operation

ARROW = pa.schema([("a", pa.string()), ("b", pa.int64())])
SCHEMA = from_arrow_schema(ARROW)
NOT_DETERMINISTIC_OR_NOT_SAFE = """
reflect java_method try_reflect rand randn uuid shuffle now current_date current_timestamp current_user input_file_name version
monotonically_increasing_id spark_partition_id explode posexplode json_tuple stack raise_error assert_true aes_encrypt
"""


def engine(text: str):
    return parse_expression(text, SCHEMA, engine_functions=ENGINE_FUNCTIONS)


@pytest.mark.parametrize(
    ("text", "functions"),
    [
        ("sha2(a, 256)", ("sha2",)),
        ("upper(initcap(a))", ("initcap", "upper")),
        ("split(a, ',')[0]", ("split",)),
        ("from_json(a, 'x INT').x > 1 AND b > 0", ("from_json",)),
        ("CASE WHEN xxhash64(b) = 1 THEN 1 ELSE get_json_object(a, '$.x') END", ("get_json_object", "xxhash64")),
        ("sha2(a, 256) IN ('x', 'y') OR sha2(a, 256) IS TRUE", ("sha2",)),
        ("-unix_timestamp(a) BETWEEN 1 AND b", ("unix_timestamp",)),
    ],
)
def test_a_call_that_only_spark_evaluates_keeps_its_text(text: str, functions: tuple[str, ...]) -> None:
    expression = engine(text)
    assert engine_functions_in(expression) == functions
    again = engine(sql_of_expression(expression))
    assert sql_of_expression(again) == sql_of_expression(expression)


def test_the_type_is_left_to_spark_unless_a_cast_gives_one() -> None:
    assert engine("if(b > 0, initcap(a), 'x')").data_type == ENGINE_TYPE
    assert str(engine("CAST(crc32(a) AS INT)").data_type) == "integer"
    assert parse_condition("crc32(a) > 5", SCHEMA, engine_functions=ENGINE_FUNCTIONS).data_type == ENGINE_TYPE


def test_a_function_that_tahoe_evaluates_keeps_its_type() -> None:
    assert engine_functions_in(engine("upper(a)")) == ()


@pytest.mark.parametrize("name", NOT_DETERMINISTIC_OR_NOT_SAFE.split())
def test_functions_that_run_code_or_depend_on_more_than_their_arguments_are_refused(name: str) -> None:
    with pytest.raises(InvalidRequest, match=name):
        engine(f"{name}('java.lang.System', 'exit')")
    with pytest.raises(InvalidRequest, match=name):
        engine(f"`{name}`(a)")


@pytest.mark.parametrize(
    "text", ["unix_timestamp()", "sha2((SELECT 1), 256)", "transform(array(1), x -> x)", "default.sha2(a, 256)"]
)
def test_other_ways_to_depend_on_more_are_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        engine(text)


def test_a_filter_does_not_call_them() -> None:
    with pytest.raises(InvalidRequest, match="sha2"):
        parse_condition("sha2(a, 256) = 'x'", SCHEMA)


@pytest.fixture
def table(memory_url: str) -> Table:
    """A table that another writer created: Tahoe without Spark cannot check the type of its generated column."""
    table = Table.create(memory_url, pa.schema([*ARROW, ("h", pa.string())]))
    table.append(pa.table({"a": ["x", "y"], "b": [1, 2], "h": ["1", "2"]}))
    transaction = table.begin()
    transaction.enforces = ENFORCED
    metadata = transaction.existing().metadata
    schema = json.loads(metadata.schema_string)
    schema["fields"][2]["metadata"] = {"delta.generationExpression": "sha2(a, 256)"}

    transaction.set_metadata(replace(metadata, schema_string=json.dumps(schema)))
    table.commit(transaction, Operation("REPLACE COLUMNS"))
    return table


def test_without_spark_such_a_table_is_read_and_rows_are_deleted(table: Table) -> None:
    assert table.to_arrow("b = 1")["a"].to_pylist() == ["x"]
    table.set_properties({"delta.enableDeletionVectors": "true"})
    table.delete("b = 1")
    assert table.to_arrow()["a"].to_pylist() == ["y"]


def test_without_spark_writes_are_refused_by_function_before_a_file_is_written(table: Table) -> None:
    version = table.version()
    for write in (
        lambda: table.append(pa.table({"a": ["z"], "b": [3]})),
        lambda: table.update({"a": "'z'"}, "b = 1"),
        lambda: table.add_constraint("c", "crc32(a) > 0"),
    ):
        with pytest.raises(Unsupported, match=r"calls (sha2|crc32), which only Spark can evaluate"):
            write()
    assert table.version() == version
