"""Year, month, day and hour of one column as one filter: no matching file of any writer is skipped, and other files are."""

from __future__ import annotations

import itertools
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.compute.compute import compute
from tahoe.expr.compute.evaluate import evaluate
from tahoe.expr.parse.parse_expression import parse_expression
from tahoe.expr.tree.predicate import And, Column, Comparison, In, IsNull, Literal, Not, Or
from tahoe.protocol.column_values.partition_filters import generated_partitions, with_implied
from tahoe.protocol.column_values.time_parts import time_parts
from tahoe.protocol.partition import serialize
from tahoe.protocol.skipping import keep
from tahoe.schema.arrow import to_arrow_type
from tahoe.schema.types import PrimitiveType, StructField, StructType
from tests.generated_columns import CASES, generated_table
from tests.sampling import examples

P = PrimitiveType
B = Column(("b",))
TIMES = (
    st.datetimes()
    | st.sampled_from([datetime.min, datetime(1, 1, 3), datetime(9999, 12, 28), datetime.max])
    | st.builds(lambda hours: datetime(2011, 12, 30) + timedelta(hours=hours), st.integers(-100, 100))
    | st.builds(lambda hours: datetime(1994, 12, 31) + timedelta(hours=hours), st.integers(-100, 100))
    | st.sampled_from([datetime(2020, 2, 29), datetime(2020, 3, 1), datetime(2020, 12, 31, 23, 59, 59), datetime(2021, 1, 1)])
)
BASES = {"timestamp": TIMES.map(lambda at: at.replace(tzinfo=UTC)), "timestamp_ntz": TIMES, "date": TIMES.map(datetime.date)}
PARTS = [
    *("YEAR(b)", "QUARTER(b)", "MONTH(b)", "DAY(b)", "DAYOFYEAR(b)", "HOUR(b)", "MINUTE(b)", "CAST(b AS DATE)", "TRUNC(b, 'MM')"),
    *("DATE_TRUNC('HOUR', b)", "DATE_FORMAT(b, 'yyyy')", "DATE_FORMAT(b, 'MM-dd')", "DATE_FORMAT(b, 'MM')", "b"),
    *("TRUNC(b, 'WEEK')", "DATE_FORMAT(b, 'HH:mm')", "MONTH(ADD_MONTHS(b, 5))", "DATE_FORMAT(TRUNC(b, 'YEAR'), 'yyyy-MM')"),
]
ZONES = ("UTC", "Pacific/Apia", "Pacific/Kiritimati", "America/New_York", "Asia/Kathmandu", "Etc/GMT+12", "Asia/Manila")


def schema_of(kind, texts):
    base = StructField("b", P(kind))
    types = [parse_expression(text, StructType((base,))).data_type for text in texts]
    columns = zip(texts, types, strict=True)
    made = (StructField(f"p{n}", item, True, {"delta.generationExpression": text}) for n, (text, item) in enumerate(columns))
    return StructType((base, *made))


def files_of(schema, zone, values):
    """One file for each value, with the texts of its partition as a writer in a time zone puts them into the log."""
    data = pa.table({"b": pa.array(values, to_arrow_type(schema.field("b").data_type))})
    texts = []
    for column in schema.fields[1:]:
        made = compute(parse_expression(column.metadata["delta.generationExpression"], schema, zone), data).to_pylist()
        if column.data_type == P("timestamp"):  # as older writers do: their wall clock, without a zone
            made = [None if item is None else shown(item, zone) for item in made]
            texts.append([None if item is None else serialize(item, P("timestamp_ntz")) for item in made])
        else:
            texts.append([serialize(item, column.data_type) for item in made])
    names = [column.name for column in schema.fields[1:]]
    maps = [list(zip(names, row, strict=True)) for row in zip(*texts, strict=True)]
    return data, pa.table({"partitionValues": pa.array(maps, pa.map_(pa.string(), pa.string()))})


def is_writable(schema, zone, value):
    """Whether a writer in the time zone can compute the partition: a zone may move the first and last days out of the calendar."""
    try:
        files_of(schema, zone, [value])
    except InvalidRequest as error:
        if error.code != "DATETIME_OVERFLOW":
            raise
        return False
    return True


def shown(instant, zone):
    try:
        return instant.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    except OverflowError:
        return instant.replace(tzinfo=None)


@st.composite
def questions(draw):
    kind = draw(st.sampled_from(sorted(BASES)))
    known = [text for text in PARTS if kind != "timestamp_ntz" or not text.startswith("DATE_TRUNC")]
    texts = draw(st.lists(st.sampled_from(known), min_size=1, max_size=5, unique=True))
    values = draw(st.lists(st.none() | BASES[kind], min_size=1, max_size=4))
    near = st.sampled_from([value for value in values if value is not None] or [draw(BASES[kind])])
    literals = BASES[kind] | near
    leaf = (
        st.builds(
            lambda op, value: Comparison(op, B, Literal(value, P(kind))),
            st.sampled_from(["=", "<=>", "<", "<=", ">", ">=", "!="]),
            literals,
        )
        | st.lists(literals, min_size=1, max_size=3).map(lambda found: In(B, tuple(Literal(v, P(kind)) for v in found)))
        | st.just(IsNull(B))
    )
    pairs = st.tuples(leaf, leaf)
    return kind, texts, draw(st.sampled_from(ZONES)), values, draw(leaf | leaf.map(Not) | pairs.map(Or) | pairs.map(And))


EDGES = [datetime.min, datetime(1, 1, 3), datetime(9999, 12, 28), datetime.max]


@pytest.mark.parametrize("kind", BASES)
def test_a_filter_at_the_ends_of_the_calendar_reads_everything_that_it_cannot_decide(kind):
    parts = [text for text in PARTS if kind != "timestamp_ntz" or not text.startswith("DATE_TRUNC")]
    for text, edge in itertools.product(parts, EDGES):
        schema = schema_of(kind, [text, *{"YEAR(b)", "MONTH(b)"} - {text}])
        value = edge.date() if kind == "date" else edge.replace(tzinfo=UTC) if kind == "timestamp" else edge
        _, files = files_of(schema, "UTC", [datetime(2020, 2, 29).date() if kind == "date" else value.replace(year=2020), None])
        for op in ("=", "<", ">"):
            implied = with_implied(Comparison(op, B, Literal(value, P(kind))), generated_partitions(schema, schema.names[1:]))
            selected = keep(implied, files, schema, schema.names[1:]).to_pylist()
            assert selected[0] or op == "=" or (op == "<") == (edge.year == 1), (text, edge, op)


KIRITIMATI = ("date", ["YEAR(b)", "DATE_FORMAT(b, 'MM')"], "Pacific/Kiritimati", [date(1994, 12, 31)])
"""A day that there never was: its midnight is in the next year."""
FIRST_DAYS = Comparison("=", B, Literal(date(1, 1, 3), P("date")))


@settings(max_examples=examples(150), deadline=None)
@given(questions())
@example((*KIRITIMATI, Comparison(">", B, Literal(date(1994, 12, 30), P("date")))))
@example(("date", ["YEAR(b)", "DATE_FORMAT(TRUNC(b, 'YEAR'), 'yyyy-MM')"], "Pacific/Apia", [date(1, 1, 3)], FIRST_DAYS))
@example((*KIRITIMATI, Comparison("=", B, Literal(date(1994, 12, 31), P("date")))))
def test_no_row_is_lost(question):
    no_row_is_lost(question)


@pytest.mark.soak
@settings(max_examples=10_000, deadline=None)
@given(questions())
def test_no_row_is_lost_of_many(question):
    no_row_is_lost(question)


def no_row_is_lost(question):
    kind, texts, zone, values, predicate = question
    schema = schema_of(kind, texts)
    names = [column.name for column in schema.fields[1:]]
    rows, files = files_of(schema, zone, [value for value in values if is_writable(schema, zone, value)])
    implied = with_implied(predicate, generated_partitions(schema, names))
    selected = keep(implied, files, schema, names).to_pylist()
    meant = evaluate(predicate, rows).to_pylist()
    assert [number for number, item in enumerate(meant) if item and not selected[number]] == []


@pytest.mark.parametrize("nested", [False, True], ids=["", "nested"])
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_every_expression_that_the_reference_derives_from_leaves_out_files(tmp_path, case, nested):
    table, base = generated_table(tmp_path, case, nested=nested)
    every = len(table.files())
    for text, files in case.files.items():
        condition = text.format(b=base)
        meant = table.to_arrow(filter=condition)["id"].to_pylist()
        assert meant, condition
        assert len(table.files(filter=condition)) == files < every, condition


def chains(kind, *texts):
    schema = schema_of(kind, texts)
    return [[item.column.name for item in chain.parts] for chain in time_parts(generated_partitions(schema, schema.names[1:]))]


def test_monotonic_parts_of_time():
    assert chains("timestamp", "HOUR(b)", "MONTH(b)", "YEAR(b)", "DAY(b)") == [["p2", "p1", "p3", "p0"]]
    assert chains("timestamp", "YEAR(b)", "DAY(b)", "HOUR(b)") == []
    assert chains("date", "YEAR(b)", "QUARTER(b)", "MONTH(b)") == [["p0", "p1", "p2"]]
    assert chains("timestamp", "CAST(b AS DATE)", "HOUR(b)") == [["p0", "p1"]]
    assert chains("timestamp", "YEAR(b)", "DAYOFYEAR(b)", "HOUR(b)") == [["p0", "p1", "p2"]]
    assert chains("timestamp", "DATE_FORMAT(b, 'yyyy')", "DATE_FORMAT(b, 'MM-dd')", "HOUR(b)") == [["p0", "p1", "p2"]]


def test_parts_of_time_that_are_not_monotonic():
    assert chains("date", "YEAR(b)", "DATE_FORMAT(b, 'MM')") == []  # of one day the year, and the month of another
    assert chains("timestamp", "YEAR(b)", "MONTH(ADD_MONTHS(b, 5))") == []
    assert chains("timestamp", "DATE_FORMAT(TRUNC(b, 'YEAR'), 'yyyy-MM')", "DAY(b)") == []
    assert chains("timestamp", "TRUNC(b, 'WEEK')", "DAY(b)") == []
    assert chains("timestamp", "DATE_TRUNC('DAY', b)", "HOUR(b)") == []  # an instant that the writer's zone decides has no equal
    assert chains("timestamp", "MONTH(b)", "DAY(b)") == []


def test_a_chain_says_the_same_as_its_words():
    schema = schema_of("date", ["YEAR(b)", "MONTH(b)"])
    (chain,) = time_parts(generated_partitions(schema, ["p0", "p1"]))
    actual = chain.implied(Comparison(">", B, Literal(date(2020, 5, 5), P("date"))))
    assert str(actual) == "`p0` > 2020 OR (`p0` = 2020 AND `p1` >= 5)"
    assert chain.implied(IsNull(B)) is None
