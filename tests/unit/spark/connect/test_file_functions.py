"""Functions such as ``input_file_name()`` in plans: refused for rows of Delta tables, whose files Python workers read."""

from __future__ import annotations

import pytest
from pyspark.sql.connect import proto

from tahoe.base.exceptions import Unsupported
from tahoe.spark.connect.requests.file_functions import refuse_file_functions
from tests.unit.spark.connect.test_plan_reads import filtered, joined, query, read
from tests.unit.spark.connect.test_query_columns import plan_of, projected

EMPTY = pytest.raises(Unsupported, match=r"input_file_name\(\) is empty.*_metadata\.file_path")


def calling(relation: proto.Relation, text: str = "input_file_name()") -> proto.Relation:
    above = projected(relation, "input_file_name")
    above.project.expressions.add().expression_string.expression = text
    return above


@pytest.mark.parametrize("text", ["INPUT_FILE_NAME()", "upper(input_file_name ())", "'x' || input_file_name()"])
def test_calls_for_delta_tables_are_refused(text: str) -> None:
    with EMPTY:
        refuse_file_functions(plan_of(filtered(calling(filtered(read()), text))))
    with EMPTY:
        refuse_file_functions(plan_of(query(f"SELECT {text} FROM _a", "_a")))


def test_calls_of_the_client_are_refused() -> None:
    relation = projected(read())
    outer = relation.project.expressions.add().unresolved_function
    outer.function_name = "upper"
    outer.arguments.add().unresolved_function.function_name = "input_file_name"
    with EMPTY:
        refuse_file_functions(plan_of(relation))


def test_names_and_texts_are_no_calls() -> None:
    refuse_file_functions(plan_of(calling(read(), "input_file_name")))
    refuse_file_functions(plan_of(calling(read(), "'input_file_name()'")))
    refuse_file_functions(plan_of(query("SELECT input_file_name FROM _a -- input_file_name()", "_a")))


def test_calls_for_other_files_are_not_refused() -> None:
    refuse_file_functions(plan_of(joined(calling(read(format="json")), read())))
    refuse_file_functions(plan_of(query("SELECT input_file_name() FROM json.`/x`", "_a")))
    text = "SELECT a FROM _a WHERE a IN (SELECT input_file_name() FROM json.`/x`)"
    refuse_file_functions(plan_of(query(text, "_a")))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT input_file_name() FROM (SELECT * FROM _a)",
        "SELECT a FROM (SELECT input_file_name() AS a FROM _a JOIN other)",
        "WITH c AS (SELECT * FROM _a) SELECT input_file_name() FROM c",
        "FROM _a |> SELECT input_file_name()",
    ],
)
def test_calls_above_a_delta_table_are_refused(text: str) -> None:
    with EMPTY:
        refuse_file_functions(plan_of(query(text, "_a")))
