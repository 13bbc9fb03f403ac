"""Common mistakes on Spark: an uncaught error prints the user's lines and a short message, which names the table and the remedy.

An error that has nothing to do with Delta is printed as Spark prints it.
"""

from __future__ import annotations

import json
import linecache
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from tahoe import Table
from tahoe.exceptions import NotFound
from tahoe.log.files.paths import commit_name
from tahoe.spark.entry_points.short_errors import is_short
from tahoe.tables import DeltaTable
from tests.spark.mistakes import MISTAKES, Mistake

pytestmark = pytest.mark.damages_tables("reading damaged tables is a mistake too")

MOST_ROWS = 12
ROW = 120
"""The rows of a terminal of this width that an error may take; longer lines are wrapped."""
DATABASE = "mistakes"
_TABLES = (
    "CREATE TABLE orders (id BIGINT, name STRING, day DATE) USING delta",
    "INSERT INTO orders VALUES (1, 'a', NULL), (2, 'b', NULL)",
    "INSERT INTO orders VALUES (3, 'c', NULL)",
    "CREATE TABLE checked (id BIGINT, name STRING, day DATE) USING delta",
    "INSERT INTO checked VALUES (1, 'a', NULL)",
    "ALTER TABLE checked ADD CONSTRAINT positive CHECK (id > 0)",
    "CREATE TABLE required (id BIGINT NOT NULL, name STRING) USING delta",
    "CREATE TABLE only_appended (id BIGINT) USING delta TBLPROPERTIES ('delta.appendOnly' = 'true')",
    "CREATE TABLE generated (id BIGINT, double BIGINT GENERATED ALWAYS AS (id * 2)) USING delta",
    "CREATE TABLE numbered (id BIGINT GENERATED ALWAYS AS IDENTITY, name STRING) USING delta",
    "CREATE TABLE updates USING delta AS SELECT 1L AS id, 'x' AS name",
    "CREATE TABLE twice USING delta AS SELECT 1L AS id, 'x' AS name UNION ALL SELECT 1L, 'y'",
    "CREATE TABLE plain_parquet (id BIGINT) USING parquet",
)


@pytest.fixture(scope="module")
def world(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The names of the statements: tables by name in a database of their own, and by path."""
    root = tmp_path_factory.mktemp("mistakes")
    spark.sql(f"CREATE DATABASE {DATABASE} LOCATION '{root}/database'")
    spark.sql(f"USE {DATABASE}")
    for statement in _TABLES:
        spark.sql(statement)
    rows = spark.range(3).coalesce(1)
    paths = {name: str(root / name) for name in ("path", "lost", "corrupt", "broken_log", "newer", "updated", "other")}
    paths["path"] = str(root / "by_path")
    for path in paths.values():
        rows.write.format("delta").save(path)
    _damage(paths)
    checkpoint = str(root / "checkpoint")
    # The checkpoint is that of `updated`, whose rows then change.
    query = spark.readStream.format("delta").load(paths["updated"]).writeStream.format("noop")
    query.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
    spark.sql(f"UPDATE delta.`{paths['updated']}` SET id = 9 WHERE id = 1")
    rows.write.parquet(f"{root}/parquet")
    yield {
        "spark": spark,
        "root": str(root),
        "parquet": f"{root}/parquet",
        **paths,
        "checkpoint": checkpoint,
        "rows": rows,
        "more": rows.selectExpr("id", "id AS more"),
        "delta": None,
        "orders": DeltaTable.forName(spark, "orders").alias("t"),
        "updates": spark.table("updates").alias("s"),
        "stream": lambda path, **options: spark.readStream.format("delta").options(**options).load(path),
        "DeltaTable": DeltaTable,
    }
    spark.sql("USE default")
    spark.sql(f"DROP DATABASE {DATABASE} CASCADE")


def _damage(paths: dict[str, str]) -> None:
    for file in Path(paths["lost"]).glob("*.parquet"):
        file.unlink()
    for file in Path(paths["corrupt"]).glob("*.parquet"):
        file.write_bytes(b"x" * file.stat().st_size)
    (Path(paths["broken_log"]) / commit_name(1)).write_text("{nope")
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["newer"], "writerFeatures": ["newer"]}
    (Path(paths["newer"]) / commit_name(1)).write_text(json.dumps({"protocol": protocol}))


@pytest.fixture(autouse=True)
def _as_users_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TAHOE_TRACEBACK", raising=False)


def error_of(statement: str, world: dict[str, Any]) -> Exception:
    """Return the error of a program of one line, with the traceback that Python's hook gets."""
    linecache.cache["job.py"] = (len(statement), None, [f"{statement}\n"], "job.py")
    names = {**world, "delta": world["spark"].read.format("delta")}
    try:
        exec(compile(statement, "job.py", "exec"), names)
    except Exception as error:  # noqa: BLE001 - of any class
        return error.with_traceback(_without_first(error.__traceback__))
    raise AssertionError(f"{statement} raised nothing")


def _without_first(frames: TracebackType | None) -> TracebackType | None:
    return None if frames is None else frames.tb_next


def printed(error: Exception, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the text that Python prints for an uncaught error."""
    capsys.readouterr()
    sys.excepthook(type(error), error, error.__traceback__)
    return capsys.readouterr().err


def rows_of(text: str) -> int:
    """Return the rows of a terminal that a text takes."""
    return sum(max(1, -(-len(line) // ROW)) for line in text.rstrip().splitlines())


@pytest.mark.parametrize("mistake", MISTAKES, ids=[f"{number}-{mistake.code}" for number, mistake in enumerate(MISTAKES)])
def test_a_mistake_is_printed_in_a_few_lines(mistake: Mistake, world: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    error = error_of(mistake.statement, world)
    assert not capsys.readouterr().err, "nothing is printed before Python prints the error"
    text = printed(error, capsys)
    assert getattr(error, "getCondition", str)() == mistake.code, text
    assert mistake.code in text or mistake.code.startswith("_LEGACY"), text
    assert text.startswith('Traceback (most recent call last):\n  File "job.py", line 1, in <module>\n'), text
    assert rows_of(text) <= MOST_ROWS, text
    for unwanted in ("\tat ", "pyspark/", "py4j/", "tahoe/spark", "+- ", "object at 0x"):
        assert unwanted not in text, text
    for expected in mistake.texts:
        assert expected in text, text


def test_there_are_a_hundred_mistakes() -> None:
    assert len(MISTAKES) >= 100
    assert len({mistake.statement for mistake in MISTAKES}) == len(MISTAKES)


@pytest.mark.parametrize(
    "statement",
    [
        'spark.sql("SELECT nam FROM plain_parquet")',
        'spark.range(3).select("nam")',
        'spark.sql("SELECT * FROM nothing")',
        'spark.sql("SELEC 1")',
        'spark.range(3).selectExpr("id / 0").collect()',
        'spark.read.parquet(f"{root}/nothing")',
    ],
)
def test_an_error_without_a_delta_table_is_printed_as_spark_does(
    statement: str, world: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    error = error_of(statement, world)
    assert not is_short(error)
    text = printed(error, capsys)
    sys.__excepthook__(type(error), error, error.__traceback__)
    assert text == capsys.readouterr().err
    assert "pyspark/" in text


def test_the_whole_traceback_is_printed_on_request_and_kept_by_the_error(
    world: dict[str, Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    statement = 'orders.merge(updates, "t.id = s.id").whenMatchedUpdate(set={"name": "s.nme"}).execute()'
    error = error_of(statement, world)
    short = printed(error, capsys)
    assert isinstance(error.__cause__, AnalysisException)
    assert len(traceback.format_exception(error)) > MOST_ROWS, "the error keeps its frames"
    monkeypatch.setenv("TAHOE_TRACEBACK", "1")
    assert len(printed(error, capsys).splitlines()) > 2 * len(short.splitlines())
    assert "\n+- " in str(error_of('spark.table("orders").select("nam")', world)), "with Spark's plan"


def test_a_missing_data_file_is_still_an_error_of_py4j(world: dict[str, Any]) -> None:
    error = error_of("delta.load(lost).collect()", world)
    assert isinstance(error, Py4JJavaError)
    assert isinstance(error, NotFound)
    assert error.java_exception.getCause() is not None


def test_notebooks_render_the_users_lines(world: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for statement in ('spark.table("orders").select("nam")', "delta.load(parquet)"):
        error: Any = error_of(statement, world)
        lines = error._render_traceback_()
        assert lines[1] == '  File "job.py", line 1, in <module>'
        assert len(lines) <= MOST_ROWS
    assert not hasattr(error_of('spark.range(3).select("nam")', world), "_render_traceback_")
    monkeypatch.setenv("TAHOE_TRACEBACK", "1")
    for statement in ('spark.table("orders").select("nam")', "delta.load(parquet)"):
        assert not hasattr(error_of(statement, world), "_render_traceback_"), "IPython then shows its own"


def test_lines_of_the_user_inside_a_batch_function_are_shown(world: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    def each(batch: DataFrame, number: int) -> None:
        batch.selectExpr("id", "id AS more").write.format("delta").mode("append").save(world["path"])

    query = 'stream(other).writeStream.foreachBatch(each).option("checkpointLocation", f"{root}/k2").trigger(availableNow=True).start()'
    error = error_of(f"{query}.awaitTermination()", {**world, "each": each})
    text = printed(error, capsys)
    assert "in each" in text
    assert "DELTA_METADATA_MISMATCH" in text


PROGRAM = """
import sys
import tahoe
from pyspark.sql import SparkSession

path, java_options = sys.argv[1:]
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
spark = tahoe.enable(builder.config("spark.driver.extraJavaOptions", java_options).getOrCreate())
print("BEGIN", file=sys.stderr, flush=True)
spark.sql(f"MERGE INTO delta.`{path}` t USING delta.`{path}` s ON t.id = s.idd WHEN MATCHED THEN DELETE")
"""


# A Spark of its own: Python's hook runs only in a program that ends with the error.
@pytest.mark.own_jvm
@pytest.mark.long
@pytest.mark.parametrize("variable", ["", "1"])
def test_a_program_prints_the_same_lines(variable: str, tmp_path: Path, java_options: str) -> None:
    Table.create(tmp_path / "t", pa.schema({"id": pa.int64()}))
    job = tmp_path / "job.py"
    job.write_text(PROGRAM)
    command = [sys.executable, str(job), str(tmp_path / "t"), java_options]
    environment = {**os.environ, "TAHOE_TRACEBACK": variable}
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False, env=environment)
    assert done.returncode == 1
    _, _, text = done.stderr.partition("BEGIN\n")
    assert text.startswith("Traceback (most recent call last):\n"), text
    assert "DELTA_MERGE_UNRESOLVED_EXPRESSION" in text
    assert (rows_of(text) <= MOST_ROWS) == (not variable), text
    assert ("pyspark/" in text) == bool(variable), text
