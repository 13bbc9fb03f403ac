"""The columns that a query reads by their names: a superset, or all columns where a plan may mean columns without their names."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.connect import proto

from tahoe.api.table import Table
from tahoe.base.exceptions import Unsupported
from tahoe.spark.connect.requests.plan_reads import delta_reads
from tahoe.spark.connect.requests.query_columns import names_in
from tahoe.spark.portable.data_source import DeltaDataSource
from tests.unit.spark.connect.test_plan_reads import filtered, joined, query, read


def plan_of(relation: proto.Relation) -> proto.Plan:
    plan = proto.Plan()
    plan.root.CopyFrom(relation)
    return plan


def projected(relation: proto.Relation, *names: str) -> proto.Relation:
    above = proto.Relation()
    above.project.input.CopyFrom(relation)
    for name in names:
        above.project.expressions.add().unresolved_attribute.unparsed_identifier = name
    return above


def over(kind: str, relation: proto.Relation) -> proto.Relation:
    above = proto.Relation()
    getattr(above, kind).input.CopyFrom(relation)
    return above


def by_name(relation: proto.Relation) -> list[bool]:
    return [each.by_name for each in delta_reads(plan_of(relation))]


def test_columns_are_pruned_below_a_choice_of_columns() -> None:
    assert by_name(projected(read(), "a")) == [True]
    assert by_name(over("aggregate", filtered(over("sort", read())))) == [True]
    assert by_name(projected(joined(read("/a"), read("/b")), "a")) == [True, True]
    assert by_name(over("show_string", projected(read(), "a"))) == [True]
    assert by_name(filtered(read())) == [False]


@pytest.mark.parametrize("kind", ["to_df", "unpivot", "transpose", "drop_na", "map_partitions", "describe", "deduplicate"])
def test_nodes_that_read_all_columns_keep_them(kind: str) -> None:
    node = over(kind, read())
    if kind == "deduplicate":
        node.deduplicate.all_columns_as_keys = True
    assert by_name(projected(node, "a")) == [False]


def test_a_set_operation_keeps_the_columns_of_both_sides() -> None:
    both = proto.Relation()
    both.set_op.left_input.CopyFrom(read("/a"))
    both.set_op.right_input.CopyFrom(projected(read("/b"), "b"))
    assert by_name(projected(both, "a")) == [False, True]


def test_a_schema_of_the_user_keeps_all_columns() -> None:
    source = read()
    source.read.data_source.schema = "a INT"
    assert by_name(projected(source, "a")) == [False]


def test_names_are_those_of_attributes_texts_and_joins() -> None:
    join = joined(read("/a"), read("/b"))
    join.join.using_columns.append("Key it")
    relation = projected(join, "`one.two`", "s.f")
    relation.project.expressions.add().expression_string.expression = "upper(Third) || 'text' * 2"
    names = names_in(plan_of(relation))
    assert names.are_all
    assert {"one.two", "s", "f", "third", "key it", "text"} <= names.names


@pytest.mark.parametrize("text", ["*", "t.*", "struct(*)", "a, *", "count(DISTINCT *)", "`a|b`", "IDENTIFIER(name)"])
def test_expressions_that_may_mean_any_column_have_no_names(text: str) -> None:
    relation = projected(read(), "a")
    relation.project.expressions.add().expression_string.expression = text
    assert not names_in(plan_of(relation)).are_all


def test_stars_of_the_client_have_no_names_except_in_count() -> None:
    counting = over("aggregate", read())
    function = counting.aggregate.aggregate_expressions.add().unresolved_function
    function.function_name = "count"
    function.arguments.add().unresolved_star.SetInParent()
    assert names_in(plan_of(counting)).are_all
    function.function_name = "struct"
    assert not names_in(plan_of(counting)).are_all
    pattern = projected(read())
    pattern.project.expressions.add().unresolved_regex.col_name = "`a.*`"
    assert not names_in(plan_of(pattern)).are_all


@pytest.mark.parametrize(
    "text",
    [
        "SELECT sum(x) FROM t WHERE id IN (1, 2)",
        "SELECT count(*), 2 * x, f(x) * y, 'a' * z FROM t",
        "SELECT a FROM (SELECT a FROM t) AS s JOIN u USING (a)",
        "WITH x AS (SELECT a FROM t) SELECT a FROM x",
        "SELECT CAST(a AS DECIMAL(5, 2)), row_number() OVER (PARTITION BY b ORDER BY c) FROM t",
    ],
)
def test_queries_that_name_their_columns(text: str) -> None:
    names = names_in(plan_of(query(text, "t")))
    assert names.are_all
    assert "t" in names.names


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t",
        "SELECT t.* FROM t",
        "SELECT DISTINCT * FROM t",
        "SELECT a, * FROM t",
        "SELECT a FROM t NATURAL JOIN u",
        "SELECT a FROM t PIVOT (sum(x) FOR y IN (1, 2))",
        "SELECT a FROM t AS x(a, b)",
        "SELECT a FROM t x (a, b)",
        "WITH x (b) AS (SELECT a FROM t) SELECT b FROM x",
        "FROM t",
        "FROM t |> SELECT a",
        "SELECT a FROM t UNION FROM t",
        "TABLE t",
        "SELECT IDENTIFIER('a' || 'b') FROM t",
        "SELECT `a.*` FROM t",
        "EXPLAIN SELECT a FROM t",
    ],
)
def test_queries_that_may_mean_any_column(text: str) -> None:
    assert not names_in(plan_of(query(text, "t"))).are_all


def test_the_source_has_the_columns_of_the_query(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    table = Table.create(path, {"id": "long", "Day": "date", "s": "string"})
    table.append(pa.table({"id": [1, 2], "s": ["a", "b"]}))
    source = DeltaDataSource({"path": path, "queryNames": '1:["day", "s", "t"]'})
    assert source.schema().names == ["Day", "s"]
    reader = source.reader(source.schema())
    rows = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
    assert rows == [{"Day": None, "s": "a"}, {"Day": None, "s": "b"}]
    assert DeltaDataSource({"path": path, "queryNames": "1:[]"}).schema().names == ["Day"]  # only to count rows
    with pytest.raises(Unsupported, match="queryNames"):
        DeltaDataSource({"path": path, "queryNames": "s"}).schema()
