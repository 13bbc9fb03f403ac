"""The refusals of IcebergCompatV2 and UniForm, and the properties that they set."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyiceberg.schema import Schema

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.protocol.actions import AddFile, DeletionVectorDescriptor, Metadata, Protocol
from tahoe.protocol.config import TableConfig
from tahoe.protocol.iceberg_compat import check_iceberg_compat, required_properties
from tahoe.schema.types import ArrayType, MapType, PrimitiveType, StructField, StructType

FORMATS, COMPAT, MODE = "delta.universalFormat.enabledFormats", "delta.enableIcebergCompatV2", "delta.columnMapping.mode"
FEATURES = frozenset({"icebergCompatV2", "columnMapping", "deletionVectors"})
VIOLATION = "DELTA_ICEBERG_COMPAT_VIOLATION"


def column(name: str, data_type: object, number: int, **metadata: object) -> StructField:
    mapping = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}
    return StructField(name, data_type, True, {**mapping, **metadata})


VECTOR = DeletionVectorDescriptor("i", "abc", 3, 1)
ID, DAY = column("id", PrimitiveType("long"), 1), column("day", PrimitiveType("date"), 2)


def config(*columns: StructField, by=(), features=FEATURES, **changed: str | None) -> TableConfig:
    expected = {
        FORMATS: "iceberg",
        COMPAT: "true",
        MODE: "name",
        **changed,
    }
    configuration = {key: value for key, value in expected.items() if value is not None}
    metadata = Metadata("id", StructType(columns or (ID, DAY)).to_json(), tuple(by), configuration)
    return TableConfig(Protocol(3, 7, features & {"columnMapping", "deletionVectors"}, features), metadata, "file:///t")


def add(**changed: object) -> AddFile:
    return replace(AddFile("f.parquet", {}, 1, 1, True, '{"numRecords":3}'), **changed)


def refused(found: TableConfig, previous: TableConfig | None = None, adds=()) -> str:
    with pytest.raises((InvalidRequest, Unsupported)) as raised:
        check_iceberg_compat(found, previous, adds)
    assert "file:///t" in str(raised.value), "the error names the table"
    return raised.value.code


def test_a_table_as_it_should_be_passes():
    check_iceberg_compat(
        config(), None, [add(), add(stats=' { "numRecords" : 0 }'), add(stats='{"minValues":{},"numRecords":1}')]
    )
    check_iceberg_compat(config(by=("day",)), config(by=("day",)), [add()])


def test_a_table_without_compat_is_left_alone():
    plain = config(features=frozenset(), **{FORMATS: None, COMPAT: None, MODE: None})
    check_iceberg_compat(plain, None, [add(stats=None)])


def test_uniform_needs_compat():
    actual = config(**{COMPAT: None})
    assert refused(actual) == "DELTA_UNIVERSAL_FORMAT_VIOLATION"
    assert refused(config(**{COMPAT: "false"}), config()) == "DELTA_UNIVERSAL_FORMAT_VIOLATION"


def test_hudi_is_refused_by_name():
    with pytest.raises(Unsupported, match="Hudi"):
        check_iceberg_compat(config(**{FORMATS: "iceberg,hudi"}), None, [])


V1 = {COMPAT: None, "delta.enableIcebergCompatV1": "true"}
V1_FEATURES = frozenset({"icebergCompatV1", "columnMapping", "deletionVectors"})
V3 = {COMPAT: None, "delta.enableIcebergCompatV3": "true", "delta.enableRowTracking": "true"}
V3_FEATURES = frozenset({"icebergCompatV3", "columnMapping", "rowTracking", "domainMetadata", "deletionVectors"})
POSITION = {"delta.universalFormat.config.iceberg.deletes": "position"}


def test_v1_has_no_lists_and_no_maps():
    check_iceberg_compat(config(features=V1_FEATURES, **V1), None, [add()])
    nested = column("list", ArrayType(PrimitiveType("long")), 3)
    assert refused(config(ID, nested, features=V1_FEATURES, **V1)) == f"{VIOLATION}.UNSUPPORTED_DATA_TYPE"


def test_v3_allows_vectors_and_void():
    vectors = config(
        ID, column("odd", PrimitiveType("void"), 3), features=V3_FEATURES, **V3, **{"delta.enableDeletionVectors": "true"}
    )
    check_iceberg_compat(vectors, None, [add(deletion_vector=VECTOR)])
    inside = column("odd", ArrayType(PrimitiveType("void")), 3, **{"delta.columnMapping.nested.ids": {"col-3.element": 4}})
    assert refused(config(ID, inside, features=V3_FEATURES, **V3)) == f"{VIOLATION}.UNSUPPORTED_DATA_TYPE"
    assert (
        refused(config(ID, column("v", PrimitiveType("variant"), 3), features=V3_FEATURES, **V3))
        == f"{VIOLATION}.UNSUPPORTED_DATA_TYPE"
    )


@pytest.mark.parametrize("missing", ["icebergCompatV3", "columnMapping", "rowTracking"])
def test_v3_needs_its_features(missing):
    assert refused(config(features=V3_FEATURES - {missing}, **V3)) == f"{VIOLATION}.MISSING_REQUIRED_TABLE_FEATURE"


def test_v3_needs_row_tracking_from_the_beginning():
    off = config(features=V3_FEATURES, **{**V3, "delta.enableRowTracking": "false"})
    assert refused(off) == f"{VIOLATION}.WRONG_REQUIRED_TABLE_PROPERTY"
    tracked = config(features=V3_FEATURES | FEATURES, **{"delta.enableRowTracking": "true"})
    assert refused(config(features=V3_FEATURES, **V3), tracked) == f"{VIOLATION}.WRONG_REQUIRED_TABLE_PROPERTY"
    check_iceberg_compat(config(features=V3_FEATURES, **V3), config(), [])


def test_v3_is_never_disabled():
    assert refused(config(), config(features=V3_FEATURES, **V3)) == f"{VIOLATION}.WRONG_REQUIRED_TABLE_PROPERTY"
    gone = config(features=V3_FEATURES, **{COMPAT: None, FORMATS: None})
    assert refused(gone, config(features=V3_FEATURES, **V3)) == f"{VIOLATION}.WRONG_REQUIRED_TABLE_PROPERTY"
    check_iceberg_compat(config(features=V3_FEATURES, **V3, **{FORMATS: None}), config(features=V3_FEATURES, **V3), [])


def test_v2_allows_vectors_where_they_are_shown_as_position_deletes():
    actual = config(**{"delta.enableDeletionVectors": "true"}, **POSITION)
    check_iceberg_compat(actual, actual, [add(deletion_vector=VECTOR)])


def test_two_compat_versions_exclude_each_other():
    assert refused(config(**{"delta.enableIcebergCompatV1": "true"})) == f"{VIOLATION}.VERSION_MUTUAL_EXCLUSIVE"


@pytest.mark.parametrize("missing", ["icebergCompatV2", "columnMapping"])
def test_the_protocol_needs_the_features(missing):
    assert refused(config(features=FEATURES - {missing})) == f"{VIOLATION}.MISSING_REQUIRED_TABLE_FEATURE"


def test_column_mapping_must_be_on():
    assert refused(config(**{MODE: "none"})) == f"{VIOLATION}.WRONG_REQUIRED_TABLE_PROPERTY"
    check_iceberg_compat(config(**{MODE: "id"}), None, [])


def test_deletion_vectors_must_be_off_before_and_after():
    with_vectors = config(**{"delta.enableDeletionVectors": "true"})
    assert refused(with_vectors) == f"{VIOLATION}.DELETION_VECTORS_SHOULD_BE_DISABLED"
    assert refused(config(), replace(with_vectors)) == f"{VIOLATION}.DELETION_VECTORS_SHOULD_BE_DISABLED"


def test_a_file_with_a_deletion_vector_is_refused():
    assert refused(config(), config(), [add(deletion_vector=VECTOR)]) == f"{VIOLATION}.DELETION_VECTORS_NOT_PURGED"
    with pytest.raises(InvalidRequest, match=r"iceberg\.deletes = position"):
        check_iceberg_compat(config(), config(), [add(deletion_vector=VECTOR)])


@pytest.mark.parametrize("stats", [None, "", "{}", "not json", '{"minValues":{"numRecords":3}}', '{"numRecords":null}', "[]"])
def test_every_file_needs_its_number_of_records(stats):
    assert refused(config(), config(), [add(), add(stats=stats)]) == f"{VIOLATION}.FILES_NOT_ICEBERG_COMPAT"


@pytest.mark.parametrize(
    "data_type",
    [
        PrimitiveType("void"),
        PrimitiveType("variant"),
        ArrayType(PrimitiveType("void")),
        StructType((column("inner", MapType(PrimitiveType("string"), PrimitiveType("void")), 9),)),
    ],
)
def test_types_that_iceberg_lacks_are_refused_at_any_depth(data_type):
    assert refused(config(ID, column("odd", data_type, 3))) == f"{VIOLATION}.UNSUPPORTED_DATA_TYPE"


def test_lists_and_maps_need_ids_for_their_parts():
    bare = column("list", ArrayType(PrimitiveType("long")), 3)
    assert refused(config(ID, bare)) == f"{VIOLATION}.WRONG_REQUIRED_TABLE_PROPERTY"
    values = column("list", ArrayType(PrimitiveType("long")), 3, **{"delta.columnMapping.nested.ids": {"col-3.element": 4}})
    check_iceberg_compat(config(ID, values), None, [])


@pytest.mark.parametrize(
    ("before", "after", "allowed"),
    [
        ("byte", "integer", True),
        ("integer", "long", True),
        ("float", "double", True),
        ("decimal(5,2)", "decimal(9,2)", True),
        ("integer", "double", False),
        ("date", "timestamp_ntz", False),
        ("decimal(5,2)", "decimal(9,3)", False),
        ("integer", "decimal(10,0)", False),
    ],
)
def test_only_iceberg_s_own_widenings_are_allowed(before, after, allowed):
    changes = {"delta.typeChanges": [{"fromType": before, "toType": after}]}
    actual = config(column("x", PrimitiveType("long"), 1, **changes))
    if allowed:
        check_iceberg_compat(actual, None, [])
    else:
        assert refused(actual) == f"{VIOLATION}.UNSUPPORTED_TYPE_WIDENING"


def test_a_partitioned_table_may_not_be_partitioned_by_other_columns():
    assert refused(config(by=("id",)), config(by=("day",))) == f"{VIOLATION}.REPLACE_TABLE_CHANGE_PARTITION_NAMES"
    check_iceberg_compat(config(by=("day",)), config(), [])
    check_iceberg_compat(config(ID, replace(DAY, name="date"), by=("date",)), config(by=("day",)), [])


def test_creation_sets_column_mapping_where_the_user_did_not():
    assert required_properties({COMPAT: "true"}) == {MODE: "name"}
    assert required_properties({COMPAT: "true", MODE: "id"}) == {}
    assert required_properties({}) == {}


def test_why_variants_are_not_shown_as_iceberg() -> None:
    """Iceberg v3 has the type. PyIceberg, by which the Iceberg side is read, checked and put into catalogs, refuses a schema that has it."""
    schema = '{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"v","required":false,"type":"%s"}]}'
    assert Schema.model_validate_json(schema % "timestamp").fields[0].name == "v"
    with pytest.raises(ValueError, match="Unsupported field type: 'variant'"):
        Schema.model_validate_json(schema % "variant")
