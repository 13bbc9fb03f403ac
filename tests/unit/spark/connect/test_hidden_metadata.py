"""The column `_metadata` in plans of Spark Connect: which reads get it, and that the result of a plan does not have it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.connect import proto

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.spark.connect.requests import hidden_metadata
from tahoe.spark.connect.requests.hidden_metadata import hide_metadata
from tahoe.spark.portable.data_source import DeltaDataSource
from tests.unit.spark.connect.test_plan_reads import filtered, joined, query, read
from tests.unit.spark.connect.test_query_columns import over, plan_of, projected

OTHER_COLUMNS = "`(?!_metadata$).*`"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A Delta table; tables are opened without a session."""
    monkeypatch.setattr(hidden_metadata, "table_with_options", lambda _, path, options: Table(path))
    Table.create(str(tmp_path / "t"), {"id": "long"})
    return str(tmp_path / "t")


def where(relation: proto.Relation, name: str = "_metadata.row_id") -> proto.Relation:
    above = filtered(relation)
    above.filter.condition.unresolved_attribute.unparsed_identifier = name
    return above


def hidden(relation: proto.Relation) -> proto.Relation:
    plan = plan_of(relation)
    hide_metadata(None, plan)
    return plan.root


def has_it(source: Any) -> bool:
    return bool(source.read.data_source.options.get("fileMetadata") == "true")


def test_a_choice_of_columns_has_only_those(path: str) -> None:
    root = hidden(projected(filtered(read(path)), "id", "_metadata.row_id"))
    assert root.WhichOneof("rel_type") == "project"
    assert has_it(root.project.input.filter.input)
    assert hidden(projected(read(path), "id")) == projected(read(path), "id")


def test_a_filter_drops_the_column(path: str) -> None:
    root = hidden(over("sort", where(over("limit", read(path)))))
    assert root.sort.input.drop.column_names == ["_metadata"]
    assert has_it(root.sort.input.drop.input.filter.input.limit.input)


def test_a_node_that_chooses_columns_does_not_pass_it_on(path: str) -> None:
    for node in (projected(read(path), "id"), over("deduplicate", read(path)), over("with_columns", read(path))):
        assert hidden(where(node)) == where(node)
    join = joined(read(path), read(path))
    join.join.using_columns.append("id")
    assert hidden(where(join)) == where(join)


def test_both_sides_of_a_join_have_it(path: str) -> None:
    root = hidden(projected(joined(read(path), over("subquery_alias", read(path))), "_metadata"))
    assert has_it(root.project.input.join.left)
    assert has_it(root.project.input.join.right.subquery_alias.input)


def test_stars_do_not_mean_it(path: str) -> None:
    relation = projected(read(path), "_metadata.row_id")
    star = relation.project.expressions.add().unresolved_star
    star.unparsed_target, star.plan_id = "t.*", 7
    relation.project.expressions.add().unresolved_function.function_name = "struct"
    relation.project.expressions[2].unresolved_function.arguments.add().unresolved_star.SetInParent()
    relation.project.expressions.add().unresolved_function.function_name = "count"
    relation.project.expressions[3].unresolved_function.arguments.add().unresolved_star.SetInParent()
    relation.project.expressions.add().expression_string.expression = "*"
    _, qualified, struct, count, text = hidden(relation).project.expressions
    assert qualified.unresolved_regex.col_name == f"t.{OTHER_COLUMNS}"
    assert qualified.unresolved_regex.plan_id == 7
    assert struct.unresolved_function.arguments[0].unresolved_regex.col_name == OTHER_COLUMNS
    assert count.unresolved_function.arguments[0].WhichOneof("expr_type") == "unresolved_star"
    assert text.expression_string.expression == "* EXCEPT (_metadata)"


def test_a_hidden_column_is_named_plainly(path: str) -> None:
    relation = projected(read(path), "_metadata")
    relation.project.expressions[0].unresolved_attribute.is_metadata_column = True
    assert not hidden(relation).project.expressions[0].unresolved_attribute.is_metadata_column


def test_a_query_in_sql(path: str) -> None:
    relation = query("SELECT *, `_b`._metadata.row_id FROM _a JOIN _b JOIN _c", "_a", "_b", "_c")
    relation.with_relations.references[0].subquery_alias.input.CopyFrom(filtered(read(path)))
    relation.with_relations.references[1].subquery_alias.input.CopyFrom(read(path))
    relation.with_relations.references[2].subquery_alias.input.CopyFrom(projected(read(path), "id"))
    query_node = hidden(relation).with_relations
    assert (
        query_node.root.sql.query
        == "SELECT * EXCEPT (`_a`.`_metadata`, `_b`.`_metadata`), `_b`._metadata.row_id FROM _a JOIN _b JOIN _c"
    )
    first, second, third = (reference.subquery_alias.input for reference in query_node.references)
    assert [has_it(first.filter.input), has_it(second), has_it(third.project.input)] == [True, True, False]
    again = proto.Relation()
    again.with_relations.CopyFrom(query_node)
    assert hidden(again).with_relations == query_node, "a relation that the server returned"


@pytest.mark.parametrize("text", ["SELECT * FROM _a", "SELECT _metadata.row_id FROM _a NATURAL JOIN _b"])
def test_a_query_that_does_not_name_it_or_means_all_columns_stays(path: str, text: str) -> None:
    relation = query(text, "_a")
    relation.with_relations.references[0].subquery_alias.input.CopyFrom(read(path))
    assert hidden(relation) == relation


def test_tables_with_such_a_column_and_change_feeds_stay(path: str, tmp_path: Path) -> None:
    own = str(tmp_path / "own")
    Table.create(own, {"_Metadata": "string"})
    assert hidden(where(read(own))) == where(read(own))
    changes = where(read(path))
    changes.filter.input.read.data_source.options["readChangeFeed"] = "true"
    assert hidden(changes) == changes
    assert hidden(where(read(path, format="parquet"))) == where(read(path, format="parquet"))
    assert has_it(hidden(where(read(f"{path}@v0"))).drop.input.filter.input)


def test_a_table_that_the_client_cannot_read_gets_it_on_the_server(path: str) -> None:
    assert has_it(hidden(where(read(f"{path}-missing"))).drop.input.filter.input)


def test_the_source_has_the_column(path: str, tmp_path: Path) -> None:
    names = DeltaDataSource({"path": path, "fileMetadata": "true"}).schema().names
    assert names == ["id", "_metadata"]
    own = str(tmp_path / "own")
    Table.create(own, {"_Metadata": "string"})
    with pytest.raises(InvalidRequest, match="Rename the column"):
        DeltaDataSource({"path": own, "fileMetadata": "true"}).schema()
    with pytest.raises(Unsupported, match="fileMetadata"):
        DeltaDataSource({"path": path, "fileMetadata": "yes"}).schema()
