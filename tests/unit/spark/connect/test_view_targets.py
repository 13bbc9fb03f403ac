"""The columns of a temporary view, from its plan: those of one table, or none if the view is more than a selection of columns."""

from __future__ import annotations

import pytest
from pyspark.sql.connect import proto

from tahoe.spark.connect.view_targets import _columns
from tests.unit.spark.connect.test_plan_reads import filtered, query, read
from tests.unit.spark.connect.test_query_columns import over, projected

NAMES = ["id", "v", "s"]
OWN = (("id", "id"), ("v", "v"), ("s", "s"))


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ("*", OWN),
        ("x.*", OWN),
        ("id, V", (("id", "id"), ("V", "v"))),
        ("x.id, x.v AS w, `s` t", (("id", "id"), ("w", "v"), ("t", "s"))),
        ("id + 1 AS id", (("id", None),)),
        ("upper(v)", (("upper(v)", None),)),
        ("f(id, v) AS v, *", (("v", None), *OWN)),
        ("s.id", (("id", None),)),
        ("missing", (("missing", None),)),
    ],
)
def test_a_query_that_selects_columns(items: str, expected: object) -> None:
    assert _columns(query(f"SELECT {items} FROM _a AS x", "_a"), NAMES) == expected


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM _a WHERE id > 1",
        "SELECT DISTINCT * FROM _a",
        "SELECT * FROM _a LIMIT 1",
        "SELECT * FROM _a, _b",
        "SELECT * FROM _a x JOIN _b",
        "SELECT * FROM (SELECT * FROM _a)",
        "SELECT * FROM other",
        "TABLE _a",
        "SELECT",
    ],
)
def test_a_query_that_does_more(text: str) -> None:
    assert _columns(query(text, "_a"), NAMES) is None


def test_plans_of_dataframes() -> None:
    assert _columns(over("subquery_alias", read()), NAMES) == OWN
    assert _columns(projected(projected(read(), "v", "id"), "`v`"), NAMES) == (("v", "v"),)
    starred = over("project", read())
    starred.project.expressions.add().unresolved_star.SetInParent()
    alias = starred.project.expressions.add().alias
    alias.name.append("w")
    alias.expr.unresolved_attribute.unparsed_identifier = "v"
    starred.project.expressions.add().unresolved_function.function_name = "rand"
    starred.project.expressions.add().expression_string.expression = "id AS k"
    assert _columns(starred, NAMES) == (*OWN, ("w", "v"), ("", None), ("k", "id"))
    renamed = over("to_df", read())
    renamed.to_df.column_names.extend(["key", "v", "s"])
    assert _columns(renamed, NAMES) == (("key", "id"), ("v", "v"), ("s", "s"))
    assert _columns(filtered(read()), NAMES) is None
    assert _columns(over("limit", projected(read(), "id")), NAMES) is None
    assert _columns(read(format="parquet"), NAMES) is None
    assert _columns(query("SELECT * FROM _a, _b", "_a", "_b"), NAMES) is None


def test_a_query_over_a_view() -> None:
    inner = query("SELECT v AS w, id FROM _a", "_a")
    outer = proto.Relation()
    outer.with_relations.root.sql.query = "SELECT w, id AS k FROM _v"
    reference = outer.with_relations.references.add().subquery_alias
    reference.alias = "_v"
    reference.input.CopyFrom(inner)
    assert _columns(outer, NAMES) == (("w", "v"), ("k", "id"))
