"""Settings of a session for data files, in both kinds of session: Spark writes them in classic ones, Tahoe over Spark Connect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.session_settings import with_settings
from tests.spark.written import codec_of, data_files

COMMANDS = {
    "append": lambda spark, table, path: spark.range(6, 9, 1, 1).write.format("delta").mode("append").save(path),
    "CTAS": lambda spark, table, path: spark.sql(f"CREATE TABLE delta.`{path}2` USING delta AS SELECT * FROM {table}"),
    "UPDATE": lambda spark, table, path: spark.sql(f"UPDATE {table} SET id = id + 1"),
    "MERGE": lambda spark, table, path: spark.sql(
        f"MERGE INTO {table} t USING (SELECT explode(sequence(7, 12)) AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
    ),
    "DELETE": lambda spark, table, path: spark.sql(f"DELETE FROM {table} WHERE id = 1"),
}


@pytest.fixture
def path(either_session: Any, tmp_path: Path) -> str:
    """A table with one file of six rows."""
    either_session.range(0, 6, 1, 1).write.format("delta").save(str(tmp_path / "table"))
    return str(tmp_path / "table")


def new_files(path: str, old: set[Path]) -> list[Path]:
    return [file for file in [*data_files(path), *data_files(f"{path}2")] if file not in old]


@pytest.mark.parametrize("command", COMMANDS)
def test_compression_and_rows_of_a_file(either_session, path, command):
    old = set(data_files(path))
    settings = {"spark.sql.parquet.compression.codec": "zstd", "spark.sql.files.maxRecordsPerFile": "2"}
    with with_settings(either_session, settings):
        COMMANDS[command](either_session, f"delta.`{path}`", path)
    files = new_files(path, old)
    assert len(files) >= 2 and {codec_of(file) for file in files} == {"ZSTD"}


@pytest.mark.parametrize("zorder", ["", " ZORDER BY (id)"])
def test_compression_of_optimize(either_session, path, zorder):
    either_session.range(6, 9, 1, 1).write.format("delta").mode("append").save(path)
    old = set(data_files(path))
    with with_settings(either_session, {"spark.sql.parquet.compression.codec": "zstd"}):
        either_session.sql(f"OPTIMIZE delta.`{path}`{zorder}")
    (file,) = new_files(path, old)
    assert codec_of(file) == "ZSTD" and file.name.endswith(".zstd.parquet")


def test_the_property_of_a_table_and_an_option_take_precedence(either_session, path):
    old = set(data_files(path))
    with with_settings(either_session, {"spark.sql.parquet.compression.codec": "zstd"}):
        either_session.range(1).write.format("delta").mode("append").option("compression", "gzip").save(path)
        either_session.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.parquet.compression.codec' = 'lz4_raw')")
        either_session.range(1).write.format("delta").mode("append").save(path)
    assert {codec_of(file) for file in new_files(path, old)} == {"GZIP", "LZ4"}
