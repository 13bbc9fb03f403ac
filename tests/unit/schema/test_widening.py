"""The permitted type changes, their record in the schema, and the recorded changes that make a table unreadable."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tahoe.base.exceptions import CorruptTable, Unsupported
from tahoe.protocol.actions import Metadata, Protocol
from tahoe.protocol.config import TableConfig
from tahoe.schema.mapping import PHYSICAL_NAME_KEY
from tahoe.schema.types import ArrayType, DecimalType, MapType, PrimitiveType, StructField, StructType
from tahoe.schema.widening import (
    TYPE_CHANGES_KEY,
    Widening,
    check_type_changes,
    is_iceberg_widening,
    is_up_cast,
    is_widening,
    preview_type_changes,
    type_changes_of,
    with_type_changes,
    without_type_changes,
)

P = PrimitiveType


def struct(**named):
    return StructType(tuple(StructField(name, data_type) for name, data_type in named.items()))


WIDENING = [
    ("byte", "short"),
    ("byte", "long"),
    ("short", "integer"),
    ("integer", "long"),
    ("float", "double"),
    ("short", "double"),
]
WIDENING += [("date", "timestamp_ntz")]
OTHERS = [
    ("long", "integer"),
    ("long", "double"),
    ("double", "float"),
    ("date", "timestamp"),
    ("string", "binary"),
    ("long", "long"),
]


@pytest.mark.parametrize(("source", "target"), WIDENING)
def test_the_specification_lets_types_be_widened(source, target):
    assert is_widening(P(source), P(target))


@pytest.mark.parametrize(("source", "target"), OTHERS)
def test_other_changes_are_no_widening(source, target):
    assert not is_widening(P(source), P(target))


@given(st.integers(1, 38), st.integers(0, 10), st.integers(-3, 10), st.integers(-3, 10))
def test_decimals_widen_by_k1_and_k2_as_the_specification_says(precision, scale, k1, k2):
    new = DecimalType(precision + k1, scale + k2)
    assert is_widening(DecimalType(precision, scale), new) == (k1 >= k2 >= 0 and (k1, k2) != (0, 0))
    assert is_widening(P("short"), DecimalType(10 + k1, k2)) == (k1 >= k2)
    assert is_widening(P("long"), DecimalType(20 + k1, k2)) == (k1 >= k2)


def changed(old, new, **more):
    change = {"fromType": old, "toType": new, **more}
    return StructType((StructField("c", MapType(P("string"), P("long")), metadata={"delta.typeChanges": [change]}),))


def test_type_changes_of_the_specification_are_read():
    check_type_changes(changed("integer", "long", fieldPath="value"))
    check_type_changes(changed("decimal(6, 2)", "decimal(10, 4)", fieldPath="value"))


def test_a_type_change_that_the_specification_does_not_know_is_refused_with_its_column():
    with pytest.raises(Unsupported, match=r"'c\.value' was changed from long to integer \(feature typeWidening\)"):
        check_type_changes(changed("long", "integer", fieldPath="value"))


UP_CASTS = [
    *(P(old) for old in ("byte", "double", "boolean", "binary", "date", "timestamp")),
    DecimalType(5, 2),
]


@pytest.mark.parametrize("source", UP_CASTS, ids=str)
def test_single_values_are_cast_up_to_texts_and_to_their_own_type(source):
    assert is_up_cast(source, P("string")) and is_up_cast(source, source) and is_up_cast(P("void"), source)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        (P("integer"), P("long"), True),
        (P("long"), P("integer"), False),
        (P("long"), P("float"), True),
        (P("double"), P("float"), False),
        (P("date"), P("timestamp"), True),
        (P("timestamp"), P("date"), False),
        (P("timestamp"), P("long"), True),
        (P("string"), P("integer"), False),
        (P("boolean"), P("integer"), False),
        (P("variant"), P("string"), False),
        (P("integer"), DecimalType(10, 0), True),
        (P("integer"), DecimalType(10, 2), False),
        (DecimalType(5, 0), P("integer"), True),
        (DecimalType(5, 2), P("integer"), False),
        (DecimalType(5, 2), DecimalType(6, 3), True),
        (DecimalType(5, 2), DecimalType(5, 3), False),
        (P("float"), DecimalType(38, 10), False),
        (ArrayType(P("integer")), P("string"), False),
    ],
    ids=str,
)
def test_values_are_cast_up_where_spark_loses_none(source, target, expected):
    assert is_up_cast(source, target) is expected


FEATURES = frozenset({"typeWidening"})


def config_with(old, new):
    metadata = {"delta.typeChanges": [{"fromType": old, "toType": new}]}
    schema = {"type": "struct", "fields": [{"name": "c", "type": new, "nullable": True, "metadata": metadata}]}
    return TableConfig(Protocol(3, 7, FEATURES, FEATURES), Metadata("id", json.dumps(schema)), "memory://t")


def test_a_widening_of_the_specification_is_readable():
    config_with("integer", "long").ensure_readable()


def test_another_type_change_is_refused_by_the_name_of_column_and_feature():
    with pytest.raises(Unsupported, match=r"'c' was changed from string to long \(feature typeWidening\)"):
        config_with("string", "long").ensure_readable()


@pytest.mark.parametrize(
    ("old", "new"), [("byte", "decimal(4,1)"), ("byte", "decimal(3,0)"), ("short", "decimal(6,1)"), ("integer", "decimal(11,1)")]
)
def test_an_integer_that_became_a_decimal_which_holds_it_is_readable_as_the_preview_of_the_feature_allowed(old, new):
    config_with(old, new).ensure_readable()


@pytest.mark.parametrize(("old", "new"), [("byte", "decimal(3,1)"), ("short", "decimal(4,0)"), ("long", "decimal(18,0)")])
def test_an_integer_that_became_a_decimal_which_does_not_hold_it_is_refused(old, new):
    with pytest.raises(Unsupported, match=f"from {old} to decimal"):
        config_with(old, new).ensure_readable()


@pytest.mark.parametrize("changes", [[{"fromType": "byte"}], ["byte"], {"toType": "long"}, 5])
def test_a_type_change_that_is_not_complete_is_damage(changes):
    schema = {
        "type": "struct",
        "fields": [{"name": "c", "type": "long", "nullable": True, "metadata": {"delta.typeChanges": changes}}],
    }
    config = TableConfig(Protocol(3, 7, FEATURES, FEATURES), Metadata("id", json.dumps(schema)), "memory://t")
    with pytest.raises(CorruptTable, match="'c' has a type change"):
        config.ensure_readable()


ALWAYS, FAMILY, NEVER = Widening("ALWAYS"), Widening("SAME_FAMILY_TYPE"), Widening("NEVER")


@pytest.mark.parametrize(
    ("old", "new", "family", "iceberg"),
    [
        (P("byte"), P("long"), True, True),
        (P("float"), P("double"), True, True),
        (P("integer"), P("double"), False, False),
        (P("date"), P("timestamp_ntz"), True, False),
        (DecimalType(6, 2), DecimalType(8, 2), True, True),
        (DecimalType(6, 2), DecimalType(8, 4), True, False),
        (P("integer"), DecimalType(10, 0), False, False),
        (P("long"), DecimalType(22, 2), False, False),
    ],
)
def test_automatic_widening_depends_on_the_mode_and_on_iceberg(old, new, family, iceberg):
    assert ALWAYS.allows(old, new)
    assert FAMILY.allows(old, new) == family
    assert Widening("ALWAYS", for_iceberg=True).allows(old, new) == is_iceberg_widening(old, new) == iceberg
    assert not NEVER.allows(old, new)
    assert not ALWAYS.allows(new, old)


def test_a_field_records_its_widened_types_and_a_struct_none_of_its_fields():
    old = struct(
        s=struct(x=P("byte")), m=MapType(P("float"), ArrayType(P("short"))), l=ArrayType(struct(y=P("date"))), same=P("long")
    )
    new = struct(
        s=struct(x=P("long")),
        m=MapType(P("double"), ArrayType(P("integer"))),
        l=ArrayType(struct(y=P("timestamp_ntz"))),
        same=P("long"),
    )
    reported = with_type_changes(old, new)
    assert reported.field("m").metadata == {
        TYPE_CHANGES_KEY: [
            {"fromType": "float", "toType": "double", "fieldPath": "key"},
            {"fromType": "short", "toType": "integer", "fieldPath": "value.element"},
        ]
    }
    assert reported.field("s").data_type.field("x").metadata == {TYPE_CHANGES_KEY: [{"fromType": "byte", "toType": "long"}]}
    assert reported.field("l").data_type.element_type.field("y").metadata[TYPE_CHANGES_KEY][0]["toType"] == "timestamp_ntz"
    assert [dict(reported.field(name).metadata) for name in ("s", "l", "same")] == [{}, {}, {}]
    assert list(type_changes_of(reported.field("m")))[1] == (("value", "element"), P("short"), P("integer"))
    assert without_type_changes(reported) == new


def test_a_second_change_is_recorded_behind_the_first():
    once = with_type_changes(struct(a=P("byte")), struct(a=P("short")))
    (column,) = once
    twice = with_type_changes(once, StructType((StructField("a", DecimalType(12, 2), metadata=column.metadata),)))
    assert [change["toType"] for change in twice.field("a").metadata[TYPE_CHANGES_KEY]] == ["short", "decimal(12,2)"]


def test_another_column_of_the_same_name_records_nothing():
    old = StructType((StructField("a", P("byte"), metadata={PHYSICAL_NAME_KEY: "col-1"}),))
    new = StructType((StructField("a", P("long"), metadata={PHYSICAL_NAME_KEY: "col-2"}),))
    assert with_type_changes(old, new) == new


def test_only_changes_of_the_preview_are_reported_as_such():
    assert preview_type_changes(config_with("byte", "decimal(4,1)").schema) == {"c": "byte to decimal(4,1)"}
    assert preview_type_changes(config_with("byte", "decimal(11,1)").schema) == {}
