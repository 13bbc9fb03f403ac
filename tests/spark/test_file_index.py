"""Repeated queries reuse the listing of their files, and only theirs."""

from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tahoe import CorruptTable, Table
from tahoe.spark.scan.file_index import FileIndex

DAYS = [datetime.datetime(2024, 1, day, tzinfo=datetime.UTC) for day in range(1, 11)]


@pytest.fixture(scope="module")
def table(spark, tmp_path_factory):
    """Ten files, one for each day, of ten rows each; the day is in three columns."""
    path = str(tmp_path_factory.mktemp("listed"))
    batches = []
    for number, day in enumerate(DAYS):
        ids = range(10 * number, 10 * number + 10)
        batches.append(pa.table({"id": ids, "day": [day] * 10, "word": [f"w{number}".encode()] * 10, "part": [str(number)] * 10}))
    table = Table.create(path, batches[0].schema, partition_by=["part"])
    for batch in batches:
        table.append(batch)
    return path


@pytest.fixture
def listings(monkeypatch):
    """The numbers of files of the listings that are made, not reused."""
    made, files_of = [], FileIndex.files_of

    def recorded(index, *filters):
        files = files_of(index, *filters)
        made.append(len(files))
        return files

    monkeypatch.setattr(FileIndex, "files_of", recorded)
    return made


def many(numbers) -> str:
    return ", ".join(str(number) for number in numbers)


def ids_of(spark, table, condition: str) -> list[int]:
    rows = spark.read.format("delta").load(table).where(condition).select("id", "word").collect()
    return sorted(row.id for row in rows)


@pytest.mark.parametrize(
    ("condition", "first", "second"),
    [
        ("id IN ({})", many(range(12)), many(range(40, 55))),
        ("part IN ({})", many(f"'{n}'" for n in range(8)), many(f"'{n}'" for n in range(11, 31))),
        ("part IN ({})", many(f"'{n}'" for n in range(8)), many(f"'{n}'" for n in (9, *range(11, 31)))),
        ("day = {}", "timestamp'2024-01-02 00:00:00Z'", "timestamp'2024-01-05 00:00:00Z'"),
        ("word = {}", "X'7731'", "X'7735'"),
        ("part = {}", "'1'", "'2'"),
        ("id = {}", "11", "12"),
        ("part LIKE {}", "'1%'", "'2%'"),
        ("length(part || {}) = 3", "'aa'", "'b'"),
        ("part = '{}'", '\\"exprId\\":{1}', '\\"exprId\\":{2}'),
    ],
)
def test_filters_that_differ_read_their_own_files(spark, table, condition, first, second):
    rows = spark.createDataFrame(
        [(id, DAYS[id // 10], bytearray(b"w%d" % (id // 10)), str(id // 10)) for id in range(100)], ["id", "day", "word", "part"]
    )
    for values in (first, second, first, second):
        text = condition.format(values)
        assert ids_of(spark, table, text) == sorted(row.id for row in rows.where(text).collect())


def test_a_query_with_the_filters_of_an_earlier_one_lists_no_files(spark, table, listings):
    for condition in ("id > 75 AND part < '9'", "id > 15"):
        before = len(listings)
        assert [ids_of(spark, table, condition) for _ in range(3)].count(ids_of(spark, table, condition)) == 3
        assert len(listings) == before + 1


@pytest.mark.parametrize("change", ["longer", "link", "gone"])
@pytest.mark.damages_tables
def test_files_of_a_reused_listing_are_checked_again(spark, tmp_path, change, listings):
    path = str(tmp_path / "table")
    Table(path).append(pa.table({"id": range(100)}))
    file = next(Path(path).glob("*.parquet"))
    query = spark.read.format("delta").load(path).where("id > 5").agg({"id": "sum"})
    assert [query.select("*").first()[0] for _ in range(2)] == [4935, 4935]
    assert listings == [1]
    elsewhere = tmp_path / "elsewhere.parquet"
    file.rename(elsewhere)
    if change == "longer":
        pq.write_table(pa.table({"id": range(5_000)}), file)
    elif change == "link":
        file.symlink_to(elsewhere)
    codes = {"longer": "TAHOE_DATA_FILE_SIZE", "link": "TAHOE_PATH_OUTSIDE_TABLE", "gone": "FAILED_READ_FILE"}
    with pytest.raises(Exception, match=file.name) as caught:
        query.select("*").first()
    assert codes[change] in str(getattr(caught.value, "code", caught.value))
    assert isinstance(caught.value, CorruptTable) or change == "gone"
