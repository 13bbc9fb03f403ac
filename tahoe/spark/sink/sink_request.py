"""Converts the output mode, partitioning and options of a stream's writer to a request, checked when the query starts. Pure.

Each commit of a stream records its own transaction identifier: the id of the query and the number of the batch. So transaction options and
settings of the session have no effect. One transaction option without the other is an error, as for other writers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.schema.evolve import can_coerce
from tahoe.settings.stream_writer_options import check_stream_writer_options
from tahoe.spark.commands.write_options import Insert, WriterCall, insert_request
from tahoe.spark.names.options import path_option
from tahoe.spark.write.idempotent import application, without_application

_MODES = {"append": "Append", "complete": "Overwrite"}
_OF_SPARK = ("checkpointlocation", "queryname", "path")
_NOT_FOLLOWED = ("txnappid", "txnversion", "datachange", "partitionoverwritemode")
_PARTITIONS = "spark.sql.sources.partitionOverwriteMode"


def sink_request(
    output_mode: str,
    partition_by: Sequence[str] | None,
    options: Mapping[str, str],
    settings: Mapping[str, str],
    *,
    cluster_by: Sequence[str] | None = None,
) -> Insert:
    """Return the request of ``df.writeStream.format("delta")``: each batch is appended, or replaces all rows (``complete``).

    Args:
        output_mode: ``append`` or ``complete``, case-insensitive.
        settings: of the session that starts the query.

    Raises:
        Unsupported: ``DELTA_UNSUPPORTED_OUTPUT_MODE``; options whose expected effect is not supported.
        InvalidRequest: options with invalid values, and one transaction option without the other.
    """
    mode = _MODES.get(output_mode.lower())
    if mode is None:
        raise Unsupported(
            f"A Delta table takes a stream's rows in the output modes append and complete, found '{output_mode}'. Use foreachBatch with a "
            "MERGE for rows that change.",
            code="DELTA_UNSUPPORTED_OUTPUT_MODE",
        )
    lowered = {key.lower(): text for key, text in options.items()}
    application(lowered.get("txnappid"), lowered.get("txnversion"))
    check_stream_writer_options(options)
    followed = {
        key: text
        for key, text in options.items()
        if key.lower() not in (*_OF_SPARK, *_NOT_FOLLOWED) and not key.lower().startswith("delta.")
    }
    # A batch in complete mode replaces all rows, independent of the session's overwrite mode.
    followed_settings = {key: text for key, text in without_application(settings).items() if key != _PARTITIONS}
    call = WriterCall(mode, followed, partition_by or None, cluster_by)
    return insert_request(call, followed_settings, same_types=False, stores=can_coerce)


def path_of_stream(path: str | None, options: Mapping[str, str]) -> str:
    """Return the path of a stream's writer, from the argument of ``start`` or its options.

    Raises `InvalidRequest`: ``TAHOE_AMBIGUOUS_TABLE``, ``DELTA_PATH_DOES_NOT_EXIST``.
    """
    in_options = path_option(options)
    if path is not None and in_options is not None:
        raise InvalidRequest(
            "The path is given twice, as the option 'path' and as an argument of start(); leave one out.",
            code="TAHOE_AMBIGUOUS_TABLE",
        )
    chosen = path if path is not None else in_options
    if chosen is None:
        raise InvalidRequest(
            "The table's path is not specified. Name it: start(path), or its name: toTable(name).",
            code="DELTA_PATH_DOES_NOT_EXIST",
        )
    return chosen
