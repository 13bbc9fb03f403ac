"""Files of the log as Iceberg files: the same from actions and from columns, with unknown statistics omitted."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from tahoe.base.exceptions import CorruptTable, Unsupported
from tahoe.log.files.live_files import DELETION_VECTOR_TYPE
from tahoe.protocol.actions import AddFile, DeletionVectorDescriptor
from tahoe.schema.types import ArrayType, DecimalType, PrimitiveType, StructField, StructType
from tahoe.uniform.formats.data_files import FileEncoder, partition_summaries, spec_of

MAPPED = pa.map_(pa.string(), pa.string())


def column(name: str, data_type: object, number: int, **metadata: object) -> StructField:
    mapping = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"c{number}"}
    return StructField(name, data_type, True, {**mapping, **metadata})


SCHEMA = StructType(
    (
        column("id", PrimitiveType("long"), 1),
        column("at", PrimitiveType("timestamp"), 2),
        column("day", PrimitiveType("date"), 3),
        column("price", DecimalType(9, 2), 4),
        column("ratio", PrimitiveType("float"), 5),
        column(
            "place",
            StructType((column("x", PrimitiveType("integer"), 7), column("tags", ArrayType(PrimitiveType("string")), 8))),
            6,
        ),
        column("part", PrimitiveType("float"), 9),
    )
)


def encoder(schema: StructType = SCHEMA) -> FileEncoder:
    return FileEncoder(schema, ("part",), lambda path: f"file:///t/{path}")


def add(stats: object, part: str | None = "1.5", **changed: object) -> AddFile:
    text = stats if isinstance(stats, str | None) else json.dumps(stats)
    return AddFile(
        **{
            "path": "f",
            "partition_values": {"c9": part},
            "size": 9,
            "modification_time": 1,
            "data_change": True,
            "stats": text,
            **changed,
        }
    )


def encoded(stats: object, **changed: object) -> bytes:
    (file,) = encoder().encode_adds([add(stats, **changed)])
    return file.encoded


TEXT = {
    "numRecords": 7,
    "minValues": {"c1": -5, "c2": "2024-01-01T00:00:00.123Z", "c3": "2024-01-01", "c4": 1.25, "c5": 0.5, "c6": {"c7": 3}},
    "maxValues": {"c1": 5, "c2": "2024-01-01T00:00:01.123Z", "c3": "2024-02-01", "c4": 99.99, "c5": 1.5, "c6": {"c7": 4}},
    "nullCount": {"c1": 0, "c2": 1, "c3": 2, "c4": 3, "c5": 4, "c6": {"c7": 5, "c8": 6}},
}


def parsed_table(**changed: object) -> pa.Table:
    bounds = pa.struct(
        [
            ("c1", pa.int64()),
            ("c2", pa.timestamp("us", "UTC")),
            ("c3", pa.date32()),
            ("c4", pa.decimal128(9, 2)),
            ("c5", pa.float32()),
            ("c6", pa.struct([("c7", pa.int32())])),
        ]
    )
    counts = pa.struct(
        [*((f"c{i}", pa.int64()) for i in range(1, 6)), ("c6", pa.struct([("c7", pa.int64()), ("c8", pa.int64())]))]
    )
    stats_type = pa.struct([("numRecords", pa.int64()), ("minValues", bounds), ("maxValues", bounds), ("nullCount", counts)])

    def at(second: int) -> datetime:
        return datetime(2024, 1, 1, 0, 0, second, 123000, UTC)

    stats = {
        "numRecords": 7,
        "minValues": {"c1": -5, "c2": at(0), "c3": date(2024, 1, 1), "c4": Decimal("1.25"), "c5": 0.5, "c6": {"c7": 3}},
        "maxValues": {"c1": 5, "c2": at(1), "c3": date(2024, 2, 1), "c4": Decimal("99.99"), "c5": 1.5, "c6": {"c7": 4}},
        "nullCount": TEXT["nullCount"],
    }
    return pa.table(
        {
            "path": ["f"],
            "partitionValues": pa.array([[("c9", "1.5")]], MAPPED),
            "size": [9],
            "stats": pa.array([None], pa.string()),
            "stats_parsed": pa.array([{**stats, **changed}], stats_type),
        }
    )


def test_statistics_as_columns_equal_statistics_as_text():
    assert [file.encoded for file in encoder().encode_table(parsed_table())] == [encoded(TEXT)]


def test_float_maxima_are_bounds_only_with_the_tag():
    """Other writers may have excluded NaN from them."""
    without_greatest = {**TEXT, "maxValues": {name: value for name, value in TEXT["maxValues"].items() if name != "c5"}}
    tags = {"tahoe.nanCounted": "true"}
    assert encoded(TEXT) == encoded(without_greatest) == encoded(without_greatest, tags=tags)
    assert len(encoded(TEXT, tags=tags)) > len(encoded(TEXT))
    tagged = parsed_table().append_column("tags", pa.array([list(tags.items())], MAPPED))
    assert [file.encoded for file in encoder().encode_table(tagged)] == [encoded(TEXT, tags=tags)]
    assert [file.encoded for file in encoder().encode_table(parsed_table())] == [encoded(TEXT)]


def test_a_timestamp_out_of_python_s_range_is_not_a_bound():
    far = parsed_table()
    type_ = far["stats_parsed"].type
    bounds = type_.field("maxValues").type
    most = pa.StructArray.from_arrays(
        [
            pa.array([5], pa.int64()),
            pa.array([2**62], pa.int64()).cast(pa.timestamp("us", "UTC")),
            pa.array([2**30], pa.int32()).cast(pa.date32()),
            *(pa.nulls(1, bounds.field(i).type) for i in range(3, 6)),
        ],
        fields=list(bounds),
    )
    stats = far["stats_parsed"].combine_chunks()
    children = [most if field.name == "maxValues" else stats.field(field.name) for field in type_]
    far = far.set_column(4, "stats_parsed", pa.StructArray.from_arrays(children, fields=list(type_)))
    (file,) = encoder().encode_table(far)
    assert file.encoded == encoded({**TEXT, "maxValues": {"c1": 5}})


def test_text_statistics_take_precedence_over_columns():
    both = parsed_table().set_column(3, "stats", pa.array([json.dumps({**TEXT, "numRecords": 8})]))
    (file,) = encoder().encode_table(both)
    assert file.record_count == 8


@pytest.mark.parametrize(
    "damage",
    [
        {"minValues": {"c6": 5}, "maxValues": {"c1": {"x": 1}}, "nullCount": []},
        {"minValues": [], "maxValues": "x", "nullCount": {"c1": -1, "c2": "3", "c3": None, "c4": True, "c5": 1.5}},
    ],
)
def test_malformed_statistics_are_omitted(damage):
    assert encoded({"numRecords": 7, **damage}) == encoded({"numRecords": 7})


@pytest.mark.parametrize(
    "stats", [None, "", "null", "[]", {}, {"numRecords": None}, {"numRecords": "7"}, {"numRecords": -1}, {"numRecords": True}]
)
def test_a_file_without_its_number_of_records_is_named(stats):
    with pytest.raises(CorruptTable, match="File f has no number of records"):
        encoded(stats)


def test_statistics_that_are_not_json_are_named():
    with pytest.raises(CorruptTable, match="statistics of file f"):
        encoded("{not json")


def test_a_deletion_vector_is_refused_from_actions_and_from_columns():
    vector = DeletionVectorDescriptor("i", "x", 1, 1)
    with pytest.raises(Unsupported, match="/f has a deletion vector"):
        encoded(TEXT, deletion_vector=vector)
    row = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}
    table = parsed_table().append_column("deletionVector", pa.array([row], DELETION_VECTOR_TYPE))
    with pytest.raises(Unsupported, match="/f has a deletion vector"):
        list(encoder().encode_table(table))


def test_a_missing_partition_value_is_named():
    with pytest.raises(CorruptTable, match="'part'"):
        encoded(TEXT, partition_values={})


def test_columns_with_a_collation_have_counts_and_no_bounds():
    collated = StructType(
        (column("s", PrimitiveType("string"), 1, __COLLATIONS={"s": "ICU.EN_CI"}), column("part", PrimitiveType("float"), 9))
    )
    stats = {"numRecords": 1, "minValues": {"c1": "A"}, "maxValues": {"c1": "b"}, "nullCount": {"c1": 0}}
    with_bounds, without = ({**stats}, {"numRecords": 1, "nullCount": {"c1": 0}})
    records = [file.encoded for file in encoder(collated).encode_adds([add(with_bounds), add(without)])]
    assert records[0] == records[1]


@pytest.mark.parametrize("text", [None, "", "__HIVE_DEFAULT_PARTITION__"])
def test_null_partitions_in_every_spelling(text):
    (file,) = encoder().encode_adds([add(TEXT, part=text)])
    assert file.partition == (None,)


def test_partition_summaries_separate_nulls_and_nans_from_bounds():
    spec = spec_of(SCHEMA, ("part",))
    files = list(encoder().encode_adds([add(TEXT, part=text) for text in ("NaN", None, "-1.5", "0.0", "2.5")]))
    (summary,) = partition_summaries(spec, [file.partition for file in files])
    single = spec.codecs[0].single
    assert (summary.contains_null, summary.contains_nan) == (True, True)
    assert (summary.lower_bound, summary.upper_bound) == (single(-1.5), single(2.5))
    (nothing,) = partition_summaries(spec, [(None,), (float("nan"),)])
    assert (nothing.lower_bound, nothing.upper_bound) == (None, None)
    (zeros,) = partition_summaries(spec, [(0.0,)])
    assert (zeros.lower_bound, zeros.upper_bound) == (single(-0.0), single(0.0))
