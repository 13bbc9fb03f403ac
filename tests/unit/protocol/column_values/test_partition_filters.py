"""Filters on a base column as filters on generated partition columns: no row is lost for any writer, and files are skipped."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tahoe import Table
from tahoe.expr.compute.compute import compute
from tahoe.expr.compute.evaluate import evaluate
from tahoe.expr.parse.parse_expression import parse_expression
from tahoe.expr.tree.predicate import Column, Comparison, In, IsNull, Literal, Not, Or, StartsWith
from tahoe.protocol.column_values.partition_filters import generated_partitions, with_implied
from tahoe.schema.arrow import to_arrow_schema, to_arrow_type
from tahoe.schema.types import DecimalType, PrimitiveType, StructField, StructType
from tests.sampling import examples

P = PrimitiveType
# A week that begins before year 1 has no instant in some time zones: DATE_TRUNC raises an error, and no file has such a row.
TIMES = st.datetimes(datetime(1, 1, 10), datetime(9999, 12, 28))
NEAR = st.builds(lambda seconds: datetime(2011, 12, 30) + timedelta(seconds=seconds), st.integers(-400_000, 400_000))
TEXTS = st.text("abZ0é\x00€𝄞", max_size=3)
BASES = {
    "timestamp": (TIMES | NEAR).map(lambda at: at.replace(tzinfo=UTC)),
    "timestamp_ntz": TIMES | NEAR,
    "date": (TIMES | NEAR).map(datetime.date),
    "string": TEXTS,
    "long": st.integers(-(2**40), 2**40) | st.integers(-5, 5),
    "integer": st.integers(-300, 300),
    "double": st.sampled_from([0.0, -0.0, 1.5, -1.5, float("nan")]),
    "boolean": st.booleans(),
}
GROWING = {
    "timestamp": ["CAST(b AS DATE)", "YEAR(b)", "DATE_TRUNC('HOUR', b)", "DATE_TRUNC('WEEK', b)", "TRUNC(b, 'MM')", "b"]
    + [f"DATE_FORMAT(b, '{pattern}')" for pattern in ("yyyy", "yyyy-MM", "yyyy-MM-dd-HH", "yyyyMMdd")],
    "timestamp_ntz": ["CAST(b AS DATE)", "YEAR(b)", "TRUNC(b, 'YEAR')", "b"]
    + [f"DATE_FORMAT(b, '{pattern}')" for pattern in ("yyyy-MM", "yyyy-MM-dd-HH")],
    "date": [
        "b",
        "YEAR(b)",
        "TRUNC(b, 'quarter')",
        "DATE_FORMAT(b, 'yyyy-MM-dd')",
        "DATE_TRUNC('MONTH', b)",
        "CAST(b AS TIMESTAMP)",
    ],
    "string": ["b", "SUBSTRING(b, 1, 2)", "SUBSTRING(b, 0, 1)", "LEFT(b, 2)", "SUBSTRING(b, 1)"],
    "long": ["b"],
    "integer": ["CAST(b AS BIGINT)"],
    "double": ["b"],
    "boolean": ["b"],
}
OTHERS = {
    "timestamp": ["MONTH(b)", "DAY(b)", "HOUR(b)", "DATE_FORMAT(b, 'MM-dd')", "LAST_DAY(b)", "DAYOFWEEK(b)"],
    "timestamp_ntz": ["MONTH(b)", "HOUR(b)", "DATE_FORMAT(b, 'dd-MM')"],
    "date": ["MONTH(b)", "DAY(b)", "DATE_FORMAT(b, 'yyyy-dd')", "DAYOFWEEK(b)", "HOUR(b)", "COALESCE(b, DATE'2020-01-01')"],
    "string": ["UPPER(b)", "LENGTH(b)", "SUBSTRING(b, 2, 1)", "SUBSTRING(b, -1, 1)", "CONCAT(b, 'x')", "COALESCE(b, '')"],
    "long": ["ABS(b)", "b % 10", "- b", "CAST(b AS STRING)"],
    "integer": ["b + 1", "b % 7"],
    "double": ["CAST(b AS STRING)"],
    "boolean": ["NOT b"],
}
CASES = [(kind, text) for some in (GROWING, OTHERS) for kind, texts in some.items() for text in texts]
ZONES = ("UTC", "Pacific/Apia", "Pacific/Kiritimati", "America/New_York", "Asia/Kathmandu", "Etc/GMT+12", "Pacific/Honolulu")


def schema_of(kind, text):
    base = StructField("b", P(kind))
    data_type = parse_expression(text, StructType((base,))).data_type
    return StructType((base, StructField("p", data_type, True, {"delta.generationExpression": text})))


def written(schema, text, zone, values):
    """The rows, as the log and the files of a writer in a time zone have them."""
    data = pa.table({"b": pa.array(values, to_arrow_type(schema.field("b").data_type))})
    made = compute(parse_expression(text, StructType((schema.field("b"),)), zone), data)
    values = [None if value == "" else value for value in made.to_pylist()]
    return data.append_column("p", pa.array(values, to_arrow_type(schema.field("p").data_type))).cast(to_arrow_schema(schema))


@st.composite
def questions(draw):
    kind, text = draw(st.sampled_from(CASES))
    values = draw(st.lists(st.none() | BASES[kind], min_size=1, max_size=4))
    literals = BASES[kind] | st.sampled_from([value for value in values if value is not None] or [None])
    column = Column(("b",))

    def leaf():
        compared = st.builds(
            lambda op, value: Comparison(op, column, Literal(value, P(kind))),
            st.sampled_from(["=", "<=>", "<", "<=", ">", ">=", "!="]),
            literals,
        )
        among = st.lists(literals, min_size=1, max_size=3).map(
            lambda found: In(column, tuple(Literal(v, P(kind)) for v in found))
        )
        begun = literals.map(lambda value: StartsWith(column, value or "")) if kind == "string" else among
        return compared | among | begun | st.just(IsNull(column)) | compared.map(Not)

    predicate = draw(leaf() | st.lists(leaf(), min_size=2, max_size=2).map(lambda parts: Or(tuple(parts))))
    return kind, text, draw(st.sampled_from(ZONES)), values, predicate


SAMOA = ("date", "DATE_FORMAT(b, 'yyyy-MM-dd')", "Pacific/Apia", [date(2011, 12, 30)])

SAMOA_BY_CLOCK = ("timestamp_ntz", "DATE_FORMAT(b, 'yyyy-MM-dd-HH')", "Pacific/Apia", [datetime(2011, 12, 30, 11)])


@settings(max_examples=examples(200), deadline=None)
@given(questions())
@example((*SAMOA, Comparison("=", Column(("b",)), Literal(date(2011, 12, 30), P("date")))))
@example((*SAMOA_BY_CLOCK, Comparison("<=", Column(("b",)), Literal(datetime(2011, 12, 30, 12), P("timestamp_ntz")))))
@example(("string", "SUBSTRING(b, 1, 2)", "UTC", [""], Comparison("<", Column(("b",)), Literal("a", P("string")))))
@example(("double", "CAST(b AS STRING)", "UTC", [-0.0], Comparison("=", Column(("b",)), Literal(0.0, P("double")))))
def test_no_row_is_lost(question):
    no_row_is_lost(question)


@pytest.mark.soak
@settings(max_examples=20_000, deadline=None)
@given(questions())
def test_no_row_is_lost_of_many(question):
    no_row_is_lost(question)


def no_row_is_lost(question):
    kind, text, zone, values, predicate = question
    schema = schema_of(kind, text)
    rows = written(schema, text, zone, values)
    implied = with_implied(predicate, generated_partitions(schema, ["p"]))
    meant, remaining = (evaluate(item, rows).to_pylist() for item in (predicate, implied))
    assert [item for item, answer in enumerate(meant) if answer] == [item for item, answer in enumerate(remaining) if answer]


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in GROWING.items() for text in texts])
def test_monotonic_expressions_turn_every_comparison_into_one(kind, text):
    (partition,) = generated_partitions(schema_of(kind, text), ["p"])
    assert partition.grows
    values = {"timestamp": datetime(2020, 5, 5, tzinfo=UTC), "timestamp_ntz": datetime(2020, 5, 5), "date": date(2020, 5, 5)}
    literal = Literal(values.get(kind, {"string": "abc", "double": 0.5, "boolean": True}.get(kind, 7)), P(kind))
    for op in ("=", "<", "<=", ">", ">="):
        assert partition.implied(Comparison(op, Column(("b",)), literal)) is not None
    assert partition.implied(Comparison("!=", Column(("b",)), literal)) is None
    assert partition.implied(IsNull(Column(("b",)))) == IsNull(Column(("p",)))


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in OTHERS.items() for text in texts])
def test_expressions_that_are_not_monotonic_imply_no_comparison(kind, text):
    for partition in generated_partitions(schema_of(kind, text), ["p"]):
        assert not partition.grows
        assert partition.implied(Comparison(">", Column(("b",)), Literal(None, P(kind)))) is None


def test_a_month_implies_its_number_and_of_a_timestamp_those_that_a_time_zone_can_have_shown():
    (partition,) = generated_partitions(schema_of("date", "MONTH(b)"), ["p"])
    actual = partition.implied(Comparison("=", Column(("b",)), Literal(date(2020, 5, 5), P("date"))))
    assert str(actual) == "`p` = 5"
    (partition,) = generated_partitions(schema_of("timestamp", "MONTH(b)"), ["p"])

    def implied(day):
        at = Literal(datetime(2020, 5, day, tzinfo=UTC), P("timestamp"))
        return str(partition.implied(Comparison("=", Column(("b",)), at)))

    assert implied(5) == "`p` IN (5)"
    assert implied(1) == "`p` IN (4, 5)"
    (partition,) = generated_partitions(schema_of("timestamp", "HOUR(b)"), ["p"])
    assert implied(5) == "None"


def test_years_that_text_does_not_sort_stay():
    (partition,) = generated_partitions(schema_of("timestamp", "DATE_FORMAT(b, 'yyyy-MM')"), ["p"])
    actual = partition.implied(Comparison(">", Column(("b",)), Literal(datetime(2020, 5, 5, tzinfo=UTC), P("timestamp"))))
    rows = pa.table({"p": ["+10000-01", "2020-05", "2020-04", None]})
    assert evaluate(actual, rows).to_pylist() == [True, True, False, True]


def test_unparsed_expressions_and_those_on_more_columns_are_ignored():
    two = StructField("p", P("long"), True, {"delta.generationExpression": "b + c"})
    strange = StructField("q", P("long"), True, {"delta.generationExpression": "my_udf(b)"})
    other_type = StructField("r", P("long"), True, {"delta.generationExpression": "CAST(b AS INT)"})
    schema = StructType((StructField("b", P("long")), StructField("c", P("long")), two, strange, other_type))
    assert generated_partitions(schema, ["p", "q", "r"]) == ()


def test_a_scan_reads_the_files_that_may_have_rows(tmp_path):
    inner = StructType((StructField("at", P("timestamp")), StructField("n", DecimalType(5, 2))))
    schema = StructType(
        (
            StructField("id", P("long")),
            StructField("s", inner),
            StructField("day", P("date"), True, {"delta.generationExpression": "CAST(s.at AS DATE)"}),
        )
    )
    for mode in ("none", "name"):
        table = Table.create(tmp_path / mode, schema, partition_by=["day"], properties={"delta.columnMapping.mode": mode})
        days = [datetime(2020, 1, day, 12, tzinfo=UTC) for day in range(1, 11)]
        data = [{"id": n, "s": {"at": at, "n": None}} for n, at in enumerate([*days, None])]
        table.append(pa.Table.from_pylist(data, to_arrow_schema(StructType(schema.fields[:2]))))
        table.set_properties({"delta.dataSkippingNumIndexedCols": "0"})
        for condition, rows, files in (
            ("s.at >= TIMESTAMP'2020-01-08 00:00:00'", [7, 8, 9], 4),
            ("s.at = TIMESTAMP'2020-01-05 12:00:00'", [4], 3),
            ("s.at IS NULL", [10], 1),
            ("NOT (s.at > TIMESTAMP'2020-01-02 12:00:00')", [0, 1], 3),
        ):
            assert sorted(table.to_arrow(filter=condition)["id"].to_pylist()) == rows
            assert len(table.files(filter=condition)) <= files
        assert table.delete("s.at < TIMESTAMP'2020-01-03 00:00:00'").num_affected_rows == 2
