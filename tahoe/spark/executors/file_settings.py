"""The settings of a session for the data files that Tahoe writes in Python: compression, rows of a file, length limits of texts. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tahoe.ops.write.writer import WriterOptions
from tahoe.protocol.config import TableConfig
from tahoe.schema.mapping import transform_fields
from tahoe.schema.text_limits import DECLARED_TYPE, limits_of
from tahoe.schema.types import StructField

AS_STRING = "spark.sql.legacy.charVarcharAsString"
_COMPRESSION, _MOST_ROWS = "spark.sql.parquet.compression.codec", "spark.sql.files.maxRecordsPerFile"
FILE_SETTINGS = (AS_STRING, _COMPRESSION, _MOST_ROWS)
_CODEC = "delta.parquet.compression.codec"


def config_of_files(config: TableConfig, settings: Mapping[str, str]) -> TableConfig:
    """Return the configuration with which files are written: with the session's compression if the table has none, and without length
    limits of texts if char and varchar are strings in the session.

    Args:
        settings: `FILE_SETTINGS` of the session; those that are not set are absent.
    """
    metadata, codec = config.metadata, settings.get(_COMPRESSION)
    if codec is not None and config.properties.parquet_compression_codec is None:
        metadata = replace(metadata, configuration={**metadata.configuration, _CODEC: codec})
    if settings.get(AS_STRING, "").lower() == "true" and any(limits_of(column) is not None for column in config.schema):
        metadata = replace(metadata, schema_string=transform_fields(config.schema, _without_limit).to_json())
    return config if metadata is config.metadata else replace(config, metadata=metadata)


def options_of_files(options: WriterOptions, settings: Mapping[str, str]) -> WriterOptions:
    """Return the options with the session's limit for the rows of a file, unless they have one."""
    limit = int(settings.get(_MOST_ROWS, "0"))
    return options if options.max_rows_per_file is not None or limit <= 0 else replace(options, max_rows_per_file=limit)


def _without_limit(field: StructField) -> StructField:
    return replace(field, metadata={key: value for key, value in field.metadata.items() if key != DECLARED_TYPE})
