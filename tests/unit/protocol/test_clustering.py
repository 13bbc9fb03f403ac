"""The clustering of a table and of a file in the log: as delta-spark writes it, and as the specification shows it."""

from __future__ import annotations

import pytest

from tahoe.base.exceptions import CorruptTable
from tahoe.protocol.actions import AddFile, DomainMetadata
from tahoe.protocol.clustering import (
    Cube,
    clustering_domain,
    clustering_paths,
    cube_of,
    field_chain,
    logical_path,
    named_path,
    shown_path,
    with_cube,
)
from tahoe.schema.types import PrimitiveType, StructField, StructType

LONG = PrimitiveType("long")


def mapped(name: str, kind: PrimitiveType | StructType = LONG) -> StructField:
    return StructField(name, kind, True, {"delta.columnMapping.physicalName": f"col-{name}"})


SCHEMA = StructType((mapped("a"), mapped("s", StructType((mapped("b"), mapped("odd name"))))))


def paths(configuration: str, *, removed: bool = False) -> object:
    return clustering_paths({"delta.clustering": DomainMetadata("delta.clustering", configuration, removed)}, "t")


def test_the_domain_is_written_as_the_reference_writes_it() -> None:
    domain = clustering_domain([("a",), ("s", "b")])
    assert domain.configuration == '{"clusteringColumns":[["a"],["s","b"]],"domainName":"delta.clustering"}'
    assert paths(domain.configuration) == (("a",), ("s", "b"))


def test_the_specifications_own_example_is_read() -> None:
    assert paths('{"clusteringColumns":["col-daad", "col-5abe"]}') == (("col-daad",), ("col-5abe",))


def test_a_table_that_never_was_clustered_and_one_that_is_no_more_are_distinguished() -> None:
    assert clustering_paths({}, "t") is None
    assert paths("{}", removed=True) is None
    assert paths('{"clusteringColumns":[]}') == ()


@pytest.mark.parametrize("text", ["no json", "[]", '{"clusteringColumns":7}', '{"clusteringColumns":[7]}'])
def test_a_domain_that_cannot_be_read_is_an_error_that_names_the_table(text: str) -> None:
    with pytest.raises(CorruptTable, match="table t"):
        paths(text)


def test_physical_names_become_those_that_users_see() -> None:
    assert logical_path(SCHEMA, ("col-s", "col-b")) == ("s", "b")
    assert logical_path(SCHEMA, ("gone",)) == ("gone",)
    assert [field.name for field in field_chain(SCHEMA, ("S", "B"))] == ["s", "b"]
    assert field_chain(SCHEMA, ("a", "b")) == []


def test_names_are_quoted_where_they_need_it() -> None:
    assert shown_path(("s", "odd name")) == "s.`odd name`"
    assert named_path("s.`odd name`") == ("s", "odd name")
    assert named_path("odd name") == ("odd name",)
    assert shown_path(("a`b",)) == "`a``b`"


def test_a_file_has_its_cube_and_provider() -> None:
    add = AddFile("f", {}, 1, 0, False, tags={"other": "kept"})
    cube = Cube("id", ("a", "s.b"), "kd")
    (actual,) = with_cube([add], cube)
    assert actual.clustering_provider == "liquid"
    assert actual.tags == {"other": "kept", "ZCUBE_ID": "id", "ZCUBE_ZORDER_BY": '["a","s.b"]', "ZCUBE_ZORDER_CURVE": "kd"}
    assert cube_of(actual) == cube
    assert cube_of(add) is None


def test_tags_that_say_nothing_are_no_cube() -> None:
    assert cube_of(AddFile("f", {}, 1, 0, False, tags={"ZCUBE_ID": "x", "ZCUBE_ZORDER_BY": "{"})) is None
    # The reference leaves the curve out.
    assert cube_of(AddFile("f", {}, 1, 0, False, tags={"ZCUBE_ID": "x", "ZCUBE_ZORDER_BY": '["a"]'})) == Cube("x", ("a",))
