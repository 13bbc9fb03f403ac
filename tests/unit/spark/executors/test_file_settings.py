"""The settings of a session for data files that Tahoe writes."""

from __future__ import annotations

import json

import pytest

from tahoe.ops.write.writer import WriterOptions
from tahoe.protocol.actions import Metadata, Protocol
from tahoe.protocol.config import TableConfig
from tahoe.schema.text_limits import limits_of
from tahoe.spark.executors.file_settings import AS_STRING, config_of_files, options_of_files

CODEC, MOST = "spark.sql.parquet.compression.codec", "spark.sql.files.maxRecordsPerFile"
FIELD = {"name": "w", "type": "string", "nullable": True, "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "varchar(2)"}}
SCHEMA = json.dumps({"type": "struct", "fields": [FIELD]})


def config(**properties: str) -> TableConfig:
    return TableConfig(Protocol(1, 2), Metadata("id", SCHEMA, configuration=properties), "memory://t")


@pytest.mark.parametrize(
    ("of_table", "settings", "codec"),
    [({}, {}, None), ({}, {CODEC: "zstd"}, "zstd"), ({"delta.parquet.compression.codec": "gzip"}, {CODEC: "zstd"}, "gzip")],
)
def test_the_compression_of_the_table_takes_precedence(of_table, settings, codec):
    assert config_of_files(config(**of_table), settings).properties.parquet_compression_codec == codec


def test_texts_have_no_limit_if_they_are_strings_in_the_session():
    table = config()
    assert limits_of(config_of_files(table, {AS_STRING: "false"}).schema.field("w")) is not None
    assert limits_of(config_of_files(table, {AS_STRING: "true"}).schema.field("w")) is None
    assert config_of_files(table, {}) is table


@pytest.mark.parametrize(
    ("of_writer", "setting", "rows"), [(None, {}, None), (None, {MOST: "0"}, None), (None, {MOST: "5"}, 5), (3, {MOST: "5"}, 3)]
)
def test_the_rows_of_a_file(of_writer, setting, rows):
    assert options_of_files(WriterOptions(of_writer), setting).max_rows_per_file == rows
