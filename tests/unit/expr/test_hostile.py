"""Texts of a table are never code: hostile expressions are refused by name, hostile names are quoted and stay names."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from tahoe import Table
from tahoe.base.exceptions import InvalidRequest, TahoeError, Unsupported
from tahoe.expr.compute.compute import compute
from tahoe.expr.parse.parse_expression import parse_expression
from tahoe.expr.row_condition import row_condition
from tahoe.expr.tree.expression import Reference, references_of, sql_of_expression
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.protocol.constraints import spark_text
from tahoe.schema.types import PrimitiveType, StructField, StructType
from tests.unit.expr.hostile import EXPRESSIONS, IDENTIFIERS

LONG = PrimitiveType("long")
SCHEMA = StructType((StructField("id", LONG), StructField("at", PrimitiveType("timestamp")), StructField("s", LONG)))


def test_there_are_enough_of_both():
    assert len(EXPRESSIONS) >= 60
    assert len(set(IDENTIFIERS)) >= 40


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_a_hostile_expression_is_refused_by_name_wherever_it_is_read(text):
    for read in (parse_expression, row_condition):
        with pytest.raises(InvalidRequest) as caught:
            read(text, SCHEMA)
    with pytest.raises(InvalidRequest) as caught:
        parse_expression(text, {"target": SCHEMA})
    assert caught.value.code in ("TAHOE_EXPRESSION_NOT_ALLOWED", "PARSE_SYNTAX_ERROR")
    assert EXPRESSIONS[text].lower() in str(caught.value).lower()


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_a_hostile_constraint_stops_every_write_before_a_file_is_there(text, memory_url):
    column = StructField("id", LONG)
    demands = (
        ({}, {"delta.constraints.c": text}),
        ({"delta.invariants": json.dumps({"expression": {"expression": text}})}, {}),
        ({"delta.generationExpression": text}, {}),
    )
    for number, (metadata, properties) in enumerate(demands):
        schema = StructType((column, StructField("g", LONG, True, metadata)))
        with pytest.raises(TahoeError) as caught:
            Table.create(f"{memory_url}{number}", schema, properties=properties)
        assert isinstance(caught.value, InvalidRequest | Unsupported)
        assert not Table(f"{memory_url}{number}").exists()


@pytest.mark.parametrize("text", [text for text in EXPRESSIONS if EXPRESSIONS[text] not in ("current_timestamp", "now")])
def test_a_hostile_condition_or_value_changes_nothing(text, memory_url):
    table = Table(memory_url)
    table.append(pa.table({"id": [1]}))
    for act in (
        lambda: table.to_arrow(filter=text),
        lambda: table.delete(text),
        lambda: table.update({"id": "2"}, text),
        lambda: table.update({"id": text}),
        lambda: table.merge(pa.table({"id": [1]}), text).when_matched_delete().execute(),
        lambda: table.overwrite(pa.table({"id": [2]}), replace_where=text),
        lambda: table.add_constraint("c", text),
    ):
        with pytest.raises((InvalidRequest, Unsupported)):
            act()
    assert table.version() == 0


@pytest.mark.parametrize("name", IDENTIFIERS, ids=ascii)
def test_a_hostile_name_is_one_column_and_nothing_more(name):
    schema = StructType((StructField(name, LONG), StructField("other", StructType((StructField(name, LONG),)))))
    for path in ((name,), ("other", name)):
        expression = parse_expression(".".join(map(quote_identifier, path)), schema)
        assert expression == Reference(path, LONG)
        assert parse_expression(sql_of_expression(expression), schema) == expression
    table = pa.table({name: [7], "other": [{name: 8}]})
    total = parse_expression(f"{quote_identifier(name)} + other.{quote_identifier(name)}", schema)
    assert compute(total, table).to_pylist() == [15]
    assert len(references_of(total)) == 2
    if "${" in name:
        with pytest.raises(InvalidRequest, match="variable"):
            spark_text(parse_expression(quote_identifier(name), schema))
    else:
        assert spark_text(parse_expression(quote_identifier(name), schema)) == quote_identifier(name)


@pytest.mark.parametrize("name", IDENTIFIERS, ids=ascii)
def test_a_table_keeps_hostile_names_of_columns_partitions_and_constraints(name, memory_url):
    schema = StructType((StructField("id", LONG), StructField(name, LONG), StructField("n", LONG)))
    properties = {"delta.columnMapping.mode": "name", f"delta.constraints.{name}": f"{quote_identifier(name)} > 0"}
    table = Table.create(memory_url, schema, partition_by=[name], properties=properties)
    table.append(pa.table({"id": [1, 2], name: [1, 2]}))
    with pytest.raises(InvalidRequest, match="violated"):
        table.append(pa.table({"id": [3], name: [0]}))
    table.update({"n": f"{quote_identifier(name)} * 10"}, f"{quote_identifier(name)} = 2")
    assert sorted((row["id"], row[name], row["n"]) for row in table.to_arrow().to_pylist()) == [(1, 1, None), (2, 2, 20)]
    assert table.check() == []


@pytest.mark.parametrize("value", [*IDENTIFIERS, *EXPRESSIONS], ids=ascii)
def test_a_hostile_text_is_one_constant_and_nothing_more(value):
    schema = StructType((StructField("s", PrimitiveType("string")),))
    rows = pa.table({"s": [value, "other"]})
    literal = sql_of_expression(parse_expression("s = " + _quoted(value), schema))
    assert compute(parse_expression(literal, schema), rows).to_pylist() == [True, False]


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def test_variables_that_spark_would_substitute_are_refused():
    schema = StructType((StructField("s", PrimitiveType("string")),))
    with pytest.raises(InvalidRequest, match="variable"):
        spark_text(parse_expression("s = '${env:HOME}'", schema))


def test_the_text_for_spark_is_generated_with_every_name_quoted():
    assert spark_text(parse_expression("ID > 1 -- note\n and s/* x */ = 2", SCHEMA)) == "(`id` > 1L) AND (`s` = 2L)"


def test_nesting_without_end_is_an_error_not_a_crash():
    for text in ("(" * 5000 + "id" + ")" * 5000 + " > 1", "NOT " * 5000 + "true", "id" + " + 1" * 20000 + " > 1"):
        with pytest.raises(InvalidRequest):
            parse_expression(text, SCHEMA)


def test_long_chains_of_conditions_are_read():
    text = " AND ".join(f"id <> {number}" for number in range(3000))
    [listed] = parse_expression(text, SCHEMA).arguments  # NOT (id IN (…)): one look-up for the whole chain
    assert len(listed.arguments) == 3001
