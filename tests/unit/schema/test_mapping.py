"""Column mapping: ids and physical names, also of elements, keys and values."""

from __future__ import annotations

import pytest

from tahoe.base.clock import SeededClock
from tahoe.base.exceptions import CorruptTable, InvalidRequest
from tahoe.schema.mapping import (
    ID_KEY,
    NESTED_IDS_KEY,
    PHYSICAL_NAME_KEY,
    assign_ids,
    assign_nested_ids,
    check_mapping,
    explode,
    max_id_of,
    nested_ids_of,
    physical_path,
    reuse_mapping,
    without_mapping,
)
from tahoe.schema.types import ArrayType, MapType, PrimitiveType, StructField, StructType

INTEGER, STRING = PrimitiveType("integer"), PrimitiveType("string")
NESTED = StructType(
    (
        StructField("id", INTEGER),
        StructField("place", StructType((StructField("city", STRING), StructField("tags", ArrayType(STRING))))),
        StructField("orders", ArrayType(StructType((StructField("item", STRING),)))),
        StructField("prices", MapType(STRING, ArrayType(INTEGER))),
    )
)


def mapped(column_id, physical_name, **more):
    return {ID_KEY: column_id, PHYSICAL_NAME_KEY: physical_name, **more}


def test_a_new_table_gets_ids_from_one_on_and_names_of_its_own():
    schema, highest = assign_ids(NESTED, 0, SeededClock(), "name")
    assert [column.field_id for _, column in explode(schema)] == [1, 2, 3, 4, 5, 6, 7]
    assert highest == 7
    names = [column.physical_name for _, column in explode(schema)]
    assert len(set(names)) == 7
    assert all(name.startswith("col-") and len(name) == 40 for name in names)
    check_mapping(schema, "name", highest)


def test_switching_mapping_on_keeps_the_names_in_the_files():
    schema, _ = assign_ids(NESTED, 0, SeededClock(), "name", existing_table=True)
    assert all(column.physical_name == column.name for _, column in explode(schema))


def test_ids_go_on_after_the_highest_ever_given():
    schema, highest = assign_ids(NESTED, 0, SeededClock(), "id")
    longer = StructType((*schema.fields, StructField("new", INTEGER)))
    longer, highest = assign_ids(longer, 40, SeededClock(1), "id")
    assert longer.fields[-1].field_id == 41
    assert highest == 41
    assert longer.fields[:-1] == schema.fields


def test_without_mapping_nothing_is_assigned():
    assert assign_ids(NESTED, 0, SeededClock(), "none") == (NESTED, 0)


def test_elements_keys_and_values_get_ids_as_the_example_of_the_specification_shows():
    """PROTOCOL.md, "Example of storing identifiers for nested fields in ArrayType and MapType"."""
    schema = StructType(
        (
            StructField("col1", ArrayType(ArrayType(INTEGER)), metadata=mapped(1, "col-aaa")),
            StructField("col2", MapType(INTEGER, ArrayType(INTEGER)), metadata=mapped(2, "col-bbb")),
            StructField(
                "col3",
                MapType(INTEGER, StructType((StructField("subcol1", ArrayType(INTEGER), metadata=mapped(4, "col-ddd")),))),
                metadata=mapped(3, "col-ccc"),
            ),
        )
    )
    assigned, highest = assign_nested_ids(schema, 99)
    actual = [dict(nested_ids_of(column)) for _, column in explode(assigned)]
    assert actual == [
        {"col-aaa.element": 100, "col-aaa.element.element": 101},
        {"col-bbb.key": 102, "col-bbb.value": 103, "col-bbb.value.element": 104},
        {"col-ccc.key": 105, "col-ccc.value": 106},
        {"col-ddd.element": 107},
    ]
    assert highest == max_id_of(assigned) == 107
    assert assign_nested_ids(assigned, highest) == (assigned, highest)


def test_fields_without_collections_get_no_empty_map_of_nested_ids():
    schema, _ = assign_ids(NESTED, 0, SeededClock(), "name", nested_ids=True)
    assert NESTED_IDS_KEY not in schema.field("id").metadata
    assert len(nested_ids_of(schema.field("prices"))) == 3


def test_paths_lead_through_structs_arrays_and_maps():
    schema, _ = assign_ids(NESTED, 0, SeededClock(), "name")
    orders, city = schema.field("orders"), schema.field("place")
    path = physical_path(schema, ("orders", "element", "item"))
    item = orders.data_type.element_type.field("item")
    assert path == (orders.physical_name, "element", item.physical_name)
    assert physical_path(schema, ("place",)) == (city.physical_name,)
    assert physical_path(schema, ("prices", "value", "element")) == (schema.field("prices").physical_name, "value", "element")


@pytest.mark.parametrize("path", [("nothing",), ("place", "nothing"), ("id", "x"), ("orders", "item"), ("prices", "element")])
def test_a_path_that_leads_nowhere_is_named(path):
    with pytest.raises(InvalidRequest, match=path[-1]):
        physical_path(NESTED, path)


def one_field(**metadata):
    return StructType((StructField("a", INTEGER, metadata=metadata),))


@pytest.mark.parametrize(
    ("schema", "max_id", "says"),
    [
        (one_field(), 1, "'a' has no id"),
        (one_field(**{ID_KEY: 1}), 1, "'a' has no physical name"),
        (one_field(**mapped(3, "x")), 2, "at least the highest column id 3, found 2"),
        (one_field(**mapped(3, "x")), None, "found None"),
        (
            StructType((StructField("a", INTEGER, metadata=mapped(1, "x")), StructField("b", INTEGER, metadata=mapped(1, "y")))),
            1,
            "'a' and 'b' have the same column mapping id 1",
        ),
        (
            StructType((StructField("a", INTEGER, metadata=mapped(1, "x")), StructField("b", INTEGER, metadata=mapped(2, "x")))),
            2,
            "'a' and 'b' have the same physical name 'x'",
        ),
        (
            StructType((StructField("a", ArrayType(INTEGER), metadata=mapped(1, "x", **{NESTED_IDS_KEY: {"x.element": 1}})),)),
            1,
            "same column mapping id 1",
        ),
    ],
)
def test_a_broken_mapping_is_refused_with_its_column(schema, max_id, says):
    check_mapping(schema, "none", None)
    with pytest.raises(CorruptTable, match=says):
        check_mapping(schema, "name", max_id)


def test_the_same_physical_name_in_two_structs_is_no_fault():
    inner = StructType((StructField("x", INTEGER, metadata=mapped(3, "p")),))
    other = StructType((StructField("x", INTEGER, metadata=mapped(4, "p")),))
    schema = StructType((StructField("a", inner, metadata=mapped(1, "a")), StructField("b", other, metadata=mapped(2, "b"))))
    check_mapping(schema, "id", 4)


def test_overwriting_reuses_ids_of_columns_that_stay_the_same():
    old, highest = assign_ids(NESTED, 0, SeededClock(), "name", nested_ids=True)
    new = StructType(
        (StructField("ID", INTEGER), StructField("place", STRING), StructField("prices", MapType(STRING, ArrayType(INTEGER))))
    )
    reused = reuse_mapping(new, old)
    assert reused.field("ID").field_id == old.field("id").field_id
    assert reused.field("prices").metadata == old.field("prices").metadata
    assert reused.field("place").field_id is None
    assigned, _ = assign_ids(reused, highest, SeededClock(1), "name", nested_ids=True)
    assert assigned.field("place").field_id == highest + 1


def test_a_schema_from_elsewhere_loses_its_mapping_and_nothing_else():
    schema = StructType((StructField("a", INTEGER, metadata=mapped(1, "x", comment="kept")),))
    assert without_mapping(schema).field("a").metadata == {"comment": "kept"}
