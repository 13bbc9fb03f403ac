"""Data skipping case by case: skipped files, files that must be read, and the source of the statistics."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tahoe.expr.row_condition import row_condition
from tahoe.expr.tree.predicate import (
    FALSE,
    TRUE,
    UNKNOWN,
    Column,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Literal,
    Not,
    Predicate,
    StartsWith,
)
from tahoe.protocol.skipping import keep, stats_predicate, wanted_statistics
from tahoe.protocol.statistics.bounds import NAN_COUNTED
from tahoe.protocol.statistics.collect import stats_arrow_type
from tahoe.protocol.statistics.stats_json import parse_statistics
from tahoe.schema.types import ArrayType, DecimalType, PrimitiveType, StructField, StructType


def field(name: str, type_name: str, **metadata: Any) -> StructField:
    return StructField(name, PrimitiveType(type_name), metadata=metadata)


SCHEMA = StructType(
    (
        field("id", "long"),
        field("s", "string"),
        field("x", "double"),
        field("t", "timestamp"),
        field("n", "timestamp_ntz"),
        field("b", "binary"),
        field("o", "boolean"),
        StructField("dec", DecimalType(10, 2)),
        StructField("list", ArrayType(PrimitiveType("long"))),
        StructField("st", StructType((field("y", "integer"),))),
        field("p", "string"),
        field("q", "date"),
    )
)
PARTITIONED = ["p", "q"]


def files_of(*statistics: str | None, partitions: list[dict[str, str | None]] | None = None, counts_nan: bool = True) -> pa.Table:
    tags = [[(NAN_COUNTED, "true")] if counts_nan else None] * len(statistics)
    values = partitions or [{"p": "1", "q": "2020-01-01"}] * len(statistics)
    return pa.table(
        {
            "partitionValues": pa.array([list(each.items()) for each in values], pa.map_(pa.string(), pa.string())),
            "stats": pa.array(statistics, pa.string()),
            "tags": pa.array(tags, pa.map_(pa.string(), pa.string())),
        }
    )


def kept(condition: str | Predicate, *statistics: str | None, schema: StructType = SCHEMA, **options: Any) -> list[bool]:
    predicate = row_condition(condition, schema).predicate if isinstance(condition, str) else condition
    mask = keep(predicate, files_of(*statistics, **options), schema, PARTITIONED)
    assert isinstance(mask, pa.BooleanArray)
    assert mask.null_count == 0
    return mask.to_pylist()


def bounds(column: str, least: Any, greatest: Any, nulls: int = 0, rows: int = 10) -> str:
    def quoted(value: Any) -> str:
        return f'"{value}"' if isinstance(value, str) else str(value)

    return (
        f'{{"numRecords":{rows},"minValues":{{"{column}":{quoted(least)}}},'
        f'"maxValues":{{"{column}":{quoted(greatest)}}},"nullCount":{{"{column}":{nulls}}}}}'
    )


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("id = 10", True),
        ("id = 9", False),
        ("id = 21", False),
        ("id <=> 20", True),
        ("id <=> 21", False),
        ("id < 10", False),
        ("id <= 10", True),
        ("id > 20", False),
        ("id >= 20", True),
        ("id != 10", True),
        ("id IN (1, 2, 15)", True),
        ("id IN (1, 2, 25)", False),
        ("id NOT IN (1, 2)", True),
        ("id IN (1, NULL)", False),
        ("id NOT IN (1, NULL)", False),
        ("id IS NULL", False),
        ("id IS NOT NULL", True),
        ("NOT (id > 5)", False),
        ("id > 5 AND id < 8", False),
        ("id < 5 OR id > 15", True),
        ("id < 5 OR id > 25", False),
        ("id = NULL", False),
        ("id < 1000000000000000000000", True),
        ("id = 10.5", False),
        ("true", True),
        ("false", False),
    ],
)
def test_a_file_with_values_from_10_to_20(condition: str, expected: bool) -> None:
    assert kept(condition, bounds("id", 10, 20)) == [expected]


def test_without_statistics_every_file_is_kept() -> None:
    for statistics in (None, "{}", '{"numRecords":10}', "not json", '{"numRecords":10,"minValues":{"s":"a"}}'):
        assert kept("id = 5", statistics) == [True]
        assert kept("id IS NULL", statistics) == [True]
        assert kept("id IS NOT NULL", statistics) == [True]


def test_one_bound_alone_is_used() -> None:
    assert kept("id = 5", '{"numRecords":1,"minValues":{"id":6}}') == [False]
    assert kept("id = 5", '{"numRecords":1,"maxValues":{"id":4}}') == [False]
    assert kept("id > 5", '{"numRecords":1,"minValues":{"id":6}}') == [True]


def test_a_file_of_nulls_alone_matches_only_is_null() -> None:
    only_nulls = '{"numRecords":10,"nullCount":{"id":10}}'
    assert kept("id = 5", only_nulls) == [False]
    assert kept("id != 5", only_nulls) == [False]
    assert kept("id <=> 5", only_nulls) == [False]
    assert kept("id IS NOT NULL", only_nulls) == [False]
    assert kept("id IS NULL", only_nulls) == [True]
    assert kept("id <=> NULL", only_nulls) == [True]
    assert kept("NOT (id <=> 5)", only_nulls) == [True]


def test_a_column_with_one_value_is_known_not_to_match_its_opposite() -> None:
    assert kept("id != 7", bounds("id", 7, 7)) == [False]
    assert kept("id NOT IN (7, 8)", bounds("id", 7, 7)) == [False]
    assert kept("id NOT IN (8)", bounds("id", 7, 7)) == [True]
    assert kept("NOT (id <=> 7)", bounds("id", 7, 7)) == [False]
    assert kept("NOT (id <=> 7)", bounds("id", 7, 7, nulls=1)) == [True]
    assert kept("s NOT LIKE 'ab%'", bounds("s", "abc", "abd")) == [False]
    assert kept("s NOT LIKE 'ab%'", bounds("s", "abc", "ac")) == [True]


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [("b", True), ("bc", True), ("bcd", True), ("a", False), ("c", True), ("cz", False), ("d", False), ("bb", False), ("", True)],
)
def test_a_prefix_meets_texts_from_bcd_to_ca(prefix: str, expected: bool) -> None:
    assert kept(f"s LIKE '{prefix}%'", bounds("s", "bcd", "ca")) == [expected]


def test_a_long_list_keeps_the_file_of_each_value_and_skips_files_beyond_all() -> None:
    values = range(0, 9_700, 100)
    condition = f"id IN ({', '.join(map(str, values))})"
    assert kept(condition, *(bounds("id", value, value) for value in values)) == [True] * len(values)
    assert kept(condition, bounds("id", -5, -1), bounds("id", 9_601, 20_000)) == [False, False]


def test_a_greatest_timestamp_of_the_log_may_have_lost_its_microseconds() -> None:
    same = bounds("t", "2020-01-01T00:00:00.123Z", "2020-01-01T00:00:00.123Z")
    assert kept("t > '2020-01-01 00:00:00.123456Z'", same) == [True]
    assert kept("t = '2020-01-01 00:00:00.123999Z'", same) == [True]
    assert kept("t > '2020-01-01 00:00:00.124Z'", same) == [False]
    assert kept("t < '2020-01-01 00:00:00.123Z'", same) == [False]
    assert kept("t != '2020-01-01 00:00:00.123Z'", same) == [True]
    assert kept("t NOT IN ('2020-01-01 00:00:00.123Z')", same) == [True]
    assert kept("n > '2020-01-01 00:00:00.123456'", bounds("n", "2020-01-01T00:00:00.123", "2020-01-01T00:00:00.123")) == [True]
    assert kept("n > '0001-01-01 00:00:00'", bounds("n", "2020-01-01T00:00:00.123", "2020-01-01T00:00:00.123")) == [True]


def test_nan_in_the_statistics_of_spark_is_no_upper_bound() -> None:
    with_nan = bounds("x", 1.0, "NaN")
    assert kept("x > 1e308", with_nan) == [True]
    assert kept("x = CAST('NaN' AS DOUBLE)", with_nan) == [True]
    assert kept("x < 1", with_nan) == [False]
    assert kept("x != 1", bounds("x", 1.0, "NaN")) == [True]
    assert kept("x = CAST('NaN' AS DOUBLE)", bounds("x", 1.0, 2.0)) == [False]
    assert kept("x <= CAST('NaN' AS DOUBLE)", bounds("x", 1.0, 2.0)) == [True]
    assert kept("x > CAST('NaN' AS DOUBLE)", bounds("x", 1.0, 2.0)) == [False]
    assert kept("x = 0.0", bounds("x", -0.0, -0.0)) == [True]
    assert kept("x = -0.0", bounds("x", 0.0, 0.0)) == [True]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("x > 5", True),
        ("x >= 5", True),
        ("x = 5", True),
        ("x IN (5, 6)", True),
        ("x != 1", True),
        ("NOT (x < 5)", True),
        ("x > 5 OR id > 100", True),
        ("x = CAST('NaN' AS DOUBLE)", True),
        ("x < 1", False),
        ("x <= 0.5", False),
        ("x = 0.5", False),
        ("x IN (0, 0.5)", False),
        ("x > 5 AND x < 1", False),
    ],
)
def test_greatest_floats_are_not_used_of_files_without_the_tag(condition: str, expected: bool) -> None:
    """NaN is greater than 5, and writers that leave it out state 1.0 as the greatest of 1.0 and NaN."""
    assert kept(condition, bounds("x", 1.0, 1.0), counts_nan=False) == [expected]
    if "!=" not in condition and "id" not in condition:
        assert kept(condition, bounds("x", 1.0, 1.0), counts_nan=True) == [False]
    wide = bounds("id", 1, 4), bounds("id", 6, 9)
    assert kept("id > 5", *wide, counts_nan=False) == [False, True]


def test_tags_count_file_by_file() -> None:
    first, other = files_of(bounds("x", 1.0, 1.0)), files_of(bounds("x", 1.0, 1.0), counts_nan=False)
    both = pa.concat_tables([other, first, other])
    predicate = row_condition("x > 5", SCHEMA).predicate
    assert keep(predicate, both, SCHEMA, PARTITIONED).to_pylist() == [True, False, True]
    assert keep(predicate, both.drop_columns(["tags"]), SCHEMA, PARTITIONED).to_pylist() == [True, True, True]


def test_infinity_is_read_as_unknown() -> None:
    assert kept("x > 5", bounds("x", "-Infinity", "Infinity")) == [True]


def test_wide_bounds_are_still_bounds() -> None:
    wide = bounds("id", 10, 20, nulls=3)[:-1] + ',"tightBounds":false}'
    assert kept("id = 5", wide) == [False]
    assert kept("id = 15", wide) == [True]
    assert kept("id IS NULL", wide) == [True]
    assert kept("id IS NOT NULL", wide) == [True]
    assert kept("id IS NULL", bounds("id", 10, 20)[:-1] + ',"tightBounds":false}') == [False]


def test_columns_without_bounds_are_judged_by_their_nulls_alone() -> None:
    assert kept("b = X'00'", '{"numRecords":2,"nullCount":{"b":0}}', '{"numRecords":2,"nullCount":{"b":2}}') == [True, False]
    assert kept("o", '{"numRecords":2,"nullCount":{"o":0}}', '{"numRecords":2,"nullCount":{"o":2}}') == [True, False]
    assert kept("list IS NULL", '{"numRecords":2,"nullCount":{"list":0}}', '{"numRecords":2,"nullCount":{"list":1}}') == [
        False,
        True,
    ]
    assert kept("st IS NULL", '{"numRecords":2,"nullCount":{"st":{"y":0}}}') == [True]


def test_nested_columns_have_nested_statistics() -> None:
    nested = '{"numRecords":2,"minValues":{"st":{"y":5}},"maxValues":{"st":{"y":6}},"nullCount":{"st":{"y":0}}}'
    assert kept("st.y = 5", nested) == [True]
    assert kept("st.y = 7", nested) == [False]
    assert kept("st.y IS NULL", nested) == [False]


def test_decimals_are_compared_exactly() -> None:
    actual = bounds("dec", 12345678.10, 12345678.11)
    assert kept("dec = 12345678.105", actual) == [False]
    assert kept("dec > 12345678.10", actual) == [True]
    assert kept("dec > 12345678.11", actual) == [False]


def test_partition_values_decide_exactly() -> None:
    partitions: list[dict[str, str | None]] = [
        {"p": "a", "q": "2020-01-01"},
        {"p": None, "q": None},
        {"p": "", "q": "2021-01-01"},
        {},
    ]
    none = (None, None, None, None)
    assert kept("p = 'a'", *none, partitions=partitions) == [True, False, False, False]
    assert kept("p != 'a'", *none, partitions=partitions) == [False, False, False, False]
    assert kept("p IS NULL", *none, partitions=partitions) == [False, True, True, True]
    assert kept("NOT (p <=> 'a')", *none, partitions=partitions) == [False, True, True, True]
    assert kept("q > DATE '2020-06-01'", *none, partitions=partitions) == [False, False, True, False]
    assert kept("q NOT IN (DATE '2020-01-01', NULL)", *none, partitions=partitions) == [False, False, False, False]
    assert kept("p NOT LIKE 'b%'", *none, partitions=partitions) == [True, False, False, False]
    assert kept("P = 'a' OR q = '2021-01-01'", *none, partitions=partitions) == [True, False, True, False]


def test_partitions_and_statistics_work_together() -> None:
    statistics = (bounds("id", 1, 2), bounds("id", 1, 2), bounds("id", 8, 9), None)
    partitions: list[dict[str, str | None]] = [{"p": "a"}, {"p": "b"}, {"p": "a"}, {"p": "a"}]
    assert kept("p = 'a' AND id = 1", *statistics, partitions=partitions) == [True, False, False, True]
    assert kept("p = 'b' OR id = 8", *statistics, partitions=partitions) == [False, True, True, True]
    assert kept("NOT (p = 'a' AND id < 5)", *statistics, partitions=partitions) == [False, True, True, True]


def test_statistics_are_not_even_read_of_files_that_the_partition_leaves_out() -> None:
    files = files_of("{}", "{}", partitions=[{"p": "a"}, {"p": "b"}])
    predicate = row_condition("p = 'none' AND id = 1", SCHEMA).predicate
    assert keep(predicate, files, SCHEMA, PARTITIONED).to_pylist() == [False, False]


@pytest.mark.parametrize("constant", [TRUE, FALSE, UNKNOWN], ids=str)
def test_constants_keep_all_or_nothing(constant: Predicate) -> None:
    assert kept(constant, None, None) == [constant == TRUE] * 2


def test_an_empty_table_has_an_empty_mask() -> None:
    assert kept("id = 1 AND p = 'a'") == []


def test_columns_that_the_schema_does_not_have_say_nothing() -> None:
    assert kept(IsNull(Column(("gone",))), None) == [True]
    assert kept(IsNotNull(Column(("st", "gone"))), None) == [True]


def test_renamed_columns_are_found_by_their_physical_names() -> None:
    physical = "delta.columnMapping.physicalName"
    schema = StructType(
        (
            field("new", "long", **{physical: "old"}),
            field("old", "long", **{physical: "col-1"}),
            field("p", "string", **{physical: "col-p"}),
        )
    )
    statistics = (
        '{"numRecords":1,"minValues":{"old":1,"col-1":5},"maxValues":{"old":1,"col-1":5},"nullCount":{"old":0,"col-1":0}}'
    )
    partitions: list[dict[str, str | None]] = [{"col-p": "a"}]
    assert kept("new = 1", statistics, schema=schema, partitions=partitions) == [True]
    assert kept("new = 5", statistics, schema=schema, partitions=partitions) == [False]
    assert kept("old = 5 AND p = 'a'", statistics, schema=schema, partitions=partitions) == [True]
    assert kept("p = 'b'", statistics, schema=schema, partitions=partitions) == [False]


def test_names_that_are_hard_to_quote_are_only_names() -> None:
    schema = StructType((field("a`.`b", "long"), field('it\'s "x"', "long")))
    text = '{"numRecords":1,"minValues":{"a`.`b":1,"it\'s \\"x\\"":5},"maxValues":{"a`.`b":1},"nullCount":{"a`.`b":0}}'
    assert kept("`a``.``b` = 2", text, schema=schema) == [False]
    assert kept('`it\'s "x"` < 5', text, schema=schema) == [False]


def test_a_double_that_was_float_is_judged_with_the_float_s_few_digits_in_mind() -> None:
    changes = [{"fromType": "float", "toType": "double"}]
    schema = StructType((field("x", "double", **{"delta.typeChanges": changes}),))
    short = bounds("x", 0.1, 0.1)  # the file's value is 0.10000000149011612
    assert kept("x >= 0.10000000149011612D", short, schema=schema) == [True]
    assert kept("x != 0.1D", short, schema=schema) == [True]
    assert kept("x > 0.11D", short, schema=schema) == [False]
    assert kept("x < 0.09D", short, schema=schema) == [False]


@pytest.mark.parametrize(
    ("data_type", "condition", "statistics", "expected"),
    [
        (PrimitiveType("long"), "x = 5000000000", bounds("x", 1, 2), False),
        (PrimitiveType("double"), "x = 1.5D", bounds("x", 1, 2), True),
        (DecimalType(20, 4), "x = 2.0001", bounds("x", 1, 2), False),
        (DecimalType(20, 4), "x = 1.2500", bounds("x", 1.25, 1.25), True),
        (PrimitiveType("timestamp_ntz"), "x = '2020-01-01 00:00:00'", bounds("x", "2020-01-01", "2020-01-01"), True),
        (PrimitiveType("timestamp_ntz"), "x > '2020-01-02 00:00:00'", bounds("x", "2020-01-01", "2020-01-01"), False),
    ],
)
def test_statistics_of_before_a_type_was_widened_still_count(
    data_type: Any, condition: str, statistics: str, expected: bool
) -> None:
    assert kept(condition, statistics, schema=StructType((StructField("x", data_type),))) == [expected]


def test_collated_texts_are_not_judged_by_the_order_of_bytes() -> None:
    schema = StructType((field("s", "string", __COLLATIONS={"s": "icu.UNICODE_CI"}),))
    is_a = Comparison("=", Column(("s",)), Literal("A", PrimitiveType("string")))
    assert kept(is_a, bounds("s", "a", "b"), schema=schema) == [True]
    assert kept(is_a, '{"numRecords":2,"nullCount":{"s":2}}', schema=schema) == [False]
    by_bytes = StructType((field("s", "string", __COLLATIONS={"s": "spark.UTF8_BINARY"}),))
    assert kept(is_a, bounds("s", "a", "b"), schema=by_bytes) == [False]


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (Comparison("=", Column(("p",)), Literal("A", PrimitiveType("string"))), [True, True, False]),
        (Comparison("!=", Column(("p",)), Literal("a", PrimitiveType("string"))), [True, True, False]),
        (Comparison("<=>", Column(("p",)), Literal("A", PrimitiveType("string"))), [True, True, False]),
        (Comparison("<=>", Column(("p",)), Literal(None, PrimitiveType("string"))), [False, False, True]),
        (In(Column(("p",)), (Literal("A", PrimitiveType("string")),)), [True, True, False]),
        (Not(In(Column(("p",)), (Literal("a", PrimitiveType("string")),))), [True, True, False]),
        (StartsWith(Column(("p",)), "A"), [True, True, False]),
        (Not(StartsWith(Column(("p",)), "a")), [True, True, False]),
        (IsNull(Column(("p",))), [False, False, True]),
        (IsNotNull(Column(("p",))), [True, True, False]),
    ],
    ids=str,
)
def test_a_partition_of_collated_texts_is_known_to_be_null_or_not_and_no_more(predicate: Predicate, expected: list[bool]) -> None:
    schema = StructType((field("p", "string", __COLLATIONS={"p": "spark.UTF8_LCASE"}),))
    partitions: list[dict[str, str | None]] = [{"p": "a"}, {"p": "b"}, {"p": None}]
    assert kept(predicate, None, None, None, schema=schema, partitions=partitions) == expected


def test_parsed_statistics_are_used_where_they_are_and_texts_elsewhere() -> None:
    files = files_of(bounds("id", 1, 2), bounds("id", 5, 6), None, None)
    parsed = parse_statistics(pa.array([None, bounds("id", 1, 1), bounds("id", 5, 5), None]), stats_arrow_type(SCHEMA))
    predicate = row_condition("id = 1", SCHEMA).predicate
    assert keep(predicate, files.append_column("stats_parsed", parsed), SCHEMA, PARTITIONED).to_pylist() == [
        True,
        True,
        False,
        True,
    ]


def test_parsed_statistics_of_an_older_schema_count_as_far_as_they_go() -> None:
    old = pa.struct(
        {"numRecords": pa.int64(), "minValues": pa.struct({"id": pa.int32(), "x": pa.string()}), "nullCount": pa.int64()}
    )
    parsed = pa.array([{"numRecords": 1, "minValues": {"id": 5, "x": "b"}, "nullCount": 7}], old)
    files = pa.table({"stats_parsed": parsed})
    assert keep(row_condition("id < 5", SCHEMA).predicate, files, SCHEMA, []).to_pylist() == [False]
    assert keep(row_condition("id > 5", SCHEMA).predicate, files, SCHEMA, []).to_pylist() == [True]
    assert keep(row_condition("x < 0", SCHEMA).predicate, files, SCHEMA, []).to_pylist() == [True]


def test_nan_in_parsed_statistics_is_the_greatest_number() -> None:
    kind = pa.struct({"minValues": pa.struct({"x": pa.float64()}), "maxValues": pa.struct({"x": pa.float64()})})
    nan = float("nan")
    parsed = pa.array(
        [{"minValues": {"x": 1.0}, "maxValues": {"x": nan}}, {"minValues": {"x": nan}, "maxValues": {"x": nan}}], kind
    )
    files = pa.table({"stats_parsed": parsed})
    assert keep(row_condition("x > 5", SCHEMA).predicate, files, SCHEMA, []).to_pylist() == [True, True]
    assert keep(row_condition("x < 5", SCHEMA).predicate, files, SCHEMA, []).to_pylist() == [True, False]


@pytest.mark.parametrize("keys", [["p", "q"], ["q", "p"], ["p"]], ids=str)
def test_partition_values_are_found_in_maps_of_any_layout(keys: list[str]) -> None:
    values = [{key: f"{key}{i}" for key in keys} for i in range(5)]
    maps = pa.array([list(each.items()) for each in values], pa.map_(pa.string(), pa.string()))
    mixed = pa.array([[], *[list(each.items())[::-1] for each in values], None], pa.map_(pa.string(), pa.string()))
    schema = StructType((field("p", "string"), field("q", "string")))
    predicate = row_condition("p IN ('p1', 'p3')", schema).predicate
    chunks = pa.chunked_array([maps.slice(1, 2), maps.slice(3), mixed])
    expected = [True, False, True, False, False, False, True, False, True, False, False]
    assert keep(predicate, pa.table({"partitionValues": chunks}), schema, ["p", "q"]).to_pylist() == expected


def test_a_long_list_of_literals_becomes_a_few_ranges() -> None:
    numbers = ", ".join(str(i * 10) for i in range(1_000))
    assert kept(f"id IN ({numbers})", bounds("id", 500, 600), bounds("id", -5, -1), bounds("id", 10_000, 20_000)) == [
        True,
        False,
        False,
    ]
    condition = stats_predicate(row_condition(f"id IN ({numbers})", SCHEMA).predicate, SCHEMA, PARTITIONED)
    assert str(condition).count("minValues") <= 32
    assert kept(f"x IN ({numbers}, CAST('NaN' AS DOUBLE))", bounds("x", 1.0, "NaN"), bounds("x", -2.0, -1.0)) == [True, False]


def test_the_condition_over_statistics_can_be_read() -> None:
    def condition(text: str) -> str:
        return str(stats_predicate(row_condition(text, SCHEMA).predicate, SCHEMA, PARTITIONED))

    assert condition("id < 5") == "`hasValues`.`id` = true AND `minValues`.`id` < 5"
    assert condition("id IS NULL") == "`nullCount`.`id` > 0"
    assert condition("p = 'a'") == "`partitionValues`.`p` IS NOT NULL AND `partitionValues`.`p` = 'a'"
    assert condition("st IS NULL") == "None"
    assert condition("st IS NULL OR id = 5") == "None"
    assert condition("id = NULL") == "false"


def test_the_wanted_statistics_are_no_more_than_the_condition_reads() -> None:
    condition = stats_predicate(row_condition("id < 5 AND st.y > 3 AND p = 'a'", SCHEMA).predicate, SCHEMA, PARTITIONED)
    assert condition is not None
    assert wanted_statistics(condition, SCHEMA) == pa.struct(
        {
            "numRecords": pa.int64(),
            "nullCount": pa.struct({"id": pa.int64(), "st": pa.struct({"y": pa.int64()})}),
            "maxValues": pa.struct({"st": pa.struct({"y": pa.int32()})}),
            "minValues": pa.struct({"id": pa.int64()}),
        }
    )
