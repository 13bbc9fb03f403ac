"""Tables made by statements, by names and by paths: rows, schema, entry of the catalog and history of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, TahoeError, Unsupported
from tahoe.spark.names.entries import entry_of
from tahoe.tables import DeltaTable

DATABASE = "made"
KINDS = ("managed", "external", "path")


@dataclass(frozen=True)
class Made:
    """A table to be made in one of the three ways."""

    spark: SparkSession
    kind: str
    folder: Path

    @property
    def name(self) -> str:
        return f"delta.`{self.folder / 'p'}`" if self.kind == "path" else f"{DATABASE}.{self.kind}"

    @property
    def location(self) -> str:
        return f"LOCATION '{self.folder / 'at a%20place'}'" if self.kind == "external" else ""

    def sql(self, text: str) -> list[tuple]:
        filled = text.replace("{t}", self.name).replace("{location}", self.location)
        return [tuple(row) for row in self.spark.sql(filled).collect()]

    def history(self) -> tuple[str, dict, dict]:
        """Operation, parameters and metrics of the newest commit."""
        row = DeltaTable.forName(self.spark, self.name).history(1).first()
        return row.operation, row.operationParameters, row.operationMetrics

    def entry(self) -> dict[str, object] | None:
        return entry(self.spark, f"{DATABASE}.{self.kind}") if self.kind != "path" else None


def entry(spark: SparkSession, name: str) -> dict[str, object] | None:
    """The entry in the catalog, as text."""
    actual = entry_of(spark, name.split("."))
    if actual is None:
        return None
    return {
        "type": str(actual.tableType().name()),
        "provider": actual.provider().get(),
        "schema": str(actual.schema().json()),
        "partitions": actual.partitionColumnNames().size(),
        "properties": {k: v for k, v in dict(jvm_map(actual.properties())).items() if not k.startswith("transient")},
        "storage": dict(jvm_map(actual.storage().properties())),
        "comment": actual.comment().get() if actual.comment().isDefined() else None,
        "location": str(actual.location().getPath()),
    }


def jvm_map(found) -> list[tuple[str, str]]:
    text = str(found.mkString("\0"))
    return [tuple(pair.split(" -> ", 1)) for pair in text.split("\0") if pair]


@pytest.fixture(scope="module", autouse=True)
def database(spark) -> Iterator[None]:
    spark.sql(f"CREATE DATABASE {DATABASE}")
    yield
    spark.sql(f"DROP DATABASE {DATABASE} CASCADE")


@pytest.fixture(params=KINDS)
def made(request, spark, tmp_path) -> Iterator[Made]:
    actual = Made(spark, request.param, tmp_path)
    yield actual
    if actual.kind != "path":
        spark.sql(f"DROP TABLE IF EXISTS {actual.name}")


EMPTY = {"schema": '{"type":"struct","fields":[]}', "partitions": 0, "properties": {}, "storage": {}, "provider": "delta"}


def test_a_life_of_statements_in_each_of_the_three_ways(made):
    """One test walks the statements, as each begins where the last one ended."""
    managed = str(made.kind == "managed").lower()
    made.sql(
        "CREATE TABLE {t} (id BIGINT NOT NULL COMMENT 'key', day DATE, twice BIGINT GENERATED ALWAYS AS (id * 2)) USING delta "
        "PARTITIONED BY (day) {location} COMMENT 'of days' TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'team' = 'me')"
    )
    operation, parameters, metrics = made.history()
    assert (operation, metrics) == ("CREATE TABLE", {})
    assert parameters == {
        "isManaged": managed,
        "description": "of days",
        "partitionBy": '["day"]',
        "clusterBy": "[]",
        "properties": '{"delta.enableChangeDataFeed":"true","team":"me"}',
    }
    actual = DeltaTable.forName(made.spark, made.name)._table.schema()
    assert [(c.name, str(c.data_type), c.nullable) for c in actual] == [
        ("id", "long", False),
        ("day", "date", True),
        ("twice", "long", True),
    ]
    assert actual.field("id").metadata == {"comment": "key"}
    assert actual.field("twice").metadata == {"delta.generationExpression": "id * 2"}
    if made.kind != "path":
        assert EMPTY.items() <= made.entry().items()
        assert (made.entry()["type"], made.entry()["comment"]) == (made.kind.upper(), "of days")
        assert made.entry()["location"].endswith("at a%20place" if made.kind == "external" else "made.db/managed")

    made.sql("CREATE TABLE IF NOT EXISTS {t} (other INT) USING delta {location}")
    assert made.history()[1]["description"] == "of days"

    made.sql("CREATE OR REPLACE TABLE {t} USING delta PARTITIONED BY (odd) AS SELECT id, id % 2 AS odd FROM range(10)")
    operation, parameters, metrics = made.history()
    assert (operation, parameters["partitionBy"], parameters["properties"], parameters["isManaged"]) == (
        "CREATE OR REPLACE TABLE AS SELECT",
        '["odd"]',
        "{}",
        managed,
    )
    assert metrics.keys() == {"numFiles", "numOutputRows", "numOutputBytes", "numRemovedFiles", "numRemovedBytes"}
    assert made.sql("SELECT sum(id), count(DISTINCT odd) FROM {t}") == [(45, 2)]

    made.sql("REPLACE TABLE {t} USING delta AS SELECT id + 1 AS id FROM {t} WHERE odd = 0")  # reads the table that it replaces
    assert made.history()[0] == "REPLACE TABLE AS SELECT"
    assert sorted(made.sql("SELECT * FROM {t}")) == [(1,), (3,), (5,), (7,), (9,)]

    made.sql("REPLACE TABLE {t} (name STRING) USING delta")
    assert made.history()[0] == "REPLACE TABLE"
    assert made.sql("SELECT count(*), count(name) FROM {t}") == [(0, 0)]
    assert made.sql("SELECT count(*) FROM {t} VERSION AS OF 2") == [(5,)]
    if made.kind != "path":
        assert EMPTY.items() <= made.entry().items()


def test_a_table_as_select_is_one_commit_with_its_rows(made):
    made.sql(
        "CREATE TABLE {t} USING delta PARTITIONED BY (odd) {location} COMMENT 'c' AS SELECT id, id % 2 AS odd FROM range(10)"
    )
    operation, parameters, metrics = made.history()
    assert (operation, parameters["description"], parameters["partitionBy"]) == ("CREATE TABLE AS SELECT", "c", '["odd"]')
    assert (metrics["numOutputRows"], set(metrics)) == ("10", {"numFiles", "numOutputRows", "numOutputBytes"})
    assert made.sql("SELECT sum(id) FROM {t} WHERE odd = 1") == [(25,)]
    assert DeltaTable.forName(made.spark, made.name)._table.version() == 0


def test_a_table_that_is_there_is_not_created_again(made):
    made.sql("CREATE TABLE {t} (id INT) USING delta {location}")
    for text in ("CREATE TABLE {t} (id INT) USING delta {location}", "CREATE TABLE {t} USING delta {location} AS SELECT 1 AS id"):
        if made.kind == "path":
            with pytest.raises(InvalidRequest) as raised:
                made.sql(text)
            assert raised.value.code == "DELTA_TABLE_ALREADY_EXISTS"
        else:
            with pytest.raises(AnalysisException) as error:
                made.sql(text)
            assert error.value.getCondition() == "TABLE_OR_VIEW_ALREADY_EXISTS"
    assert DeltaTable.forName(made.spark, made.name)._table.version() == 0


REFUSED: list[tuple[str, type[Exception], str]] = [
    ("CREATE TABLE {t} (id INT) USING delta CLUSTERED BY (id) INTO 3 BUCKETS", Unsupported, "Bucketing"),
    ("CREATE TABLE {t} (id INT) USING delta CLUSTER BY (nowhere)", TahoeError, "nowhere"),
    ("CREATE TABLE {t} (at TIMESTAMP) USING delta PARTITIONED BY (years(at))", Unsupported, "years"),
    ("CREATE TABLE {t} (id INT DEFAULT 3) USING delta", TahoeError, "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED"),
    (
        "CREATE TABLE {t} (id BIGINT GENERATED ALWAYS AS IDENTITY, k INT) USING delta PARTITIONED BY (id)",
        TahoeError,
        "DELTA_IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED",
    ),
    ("CREATE TABLE {t} (c STRING COLLATE UTF8_LCASE) USING delta", Unsupported, "collation"),
    ("CREATE TABLE {t} (id INT) USING delta PARTITIONED BY (nowhere)", TahoeError, "nowhere"),
    ("CREATE TABLE {t} (id INT) USING delta TBLPROPERTIES ('delta.nope' = '1')", TahoeError, "DELTA_UNKNOWN_CONFIGURATION"),
    ("CREATE TABLE {t} (id INT, g INT GENERATED ALWAYS AS (nowhere)) USING delta", TahoeError, "nowhere"),
    ("CREATE TABLE {t} (id INT, ID INT) USING delta", TahoeError, "COLUMN_ALREADY_EXISTS"),
    ("CREATE TABLE {t} USING delta AS SELECT nowhere", AnalysisException, "nowhere"),
    ("CREATE TABLE {t} USING delta AS SELECT raise_error('no rows') + id AS a FROM range(3)", Exception, "no rows"),
    ("REPLACE TABLE {t} (id INT) USING delta", Exception, "(cannot be found|DELTA_CANNOT_REPLACE_MISSING_TABLE)"),
    ("CREATE OR REPLACE TABLE {t} USING delta", TahoeError, "DELTA_SCHEMA_NOT_PROVIDED"),
]


@pytest.mark.parametrize("kind", ["managed", "path"])
@pytest.mark.parametrize(("text", "error", "words"), REFUSED, ids=[text[12:60] for text, *_ in REFUSED])
def test_a_creation_that_fails_leaves_neither_entry_nor_table(spark, tmp_path, kind, text, error, words):
    made = Made(spark, kind, tmp_path)
    with pytest.raises(error, match=f"(?is){words}"):
        made.sql(text)
    assert kind == "path" or made.entry() is None
    assert not Table(str(tmp_path / "p")).exists()
    made.sql("CREATE TABLE {t} USING delta AS SELECT 1 AS id")  # the leftovers of the failure do not interfere
    assert made.sql("SELECT * FROM {t}") == [(1,)]
    if kind == "managed":
        spark.sql(f"DROP TABLE {made.name}")
