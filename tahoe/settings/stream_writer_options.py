"""Options of the writers of streams, one row each."""

from __future__ import annotations

from collections.abc import Mapping

from tahoe.settings.setting import Setting, State, check_setting

__all__ = ["STREAM_WRITER_OPTIONS", "check_stream_writer_options"]

_KIND = "stream writer's option"
_WORKS = (
    *("path", "checkpointLocation", "queryName", "mergeSchema", "overwriteSchema", "userMetadata", "maxRecordsPerFile"),
    *("compression", "optimizeWrite", "fs.", "dfs.", "parquet."),
)
_NUMBERED = "Batches of a stream are numbered by the query's id and the batch's. The option is for foreachBatch."
STREAM_WRITER_OPTIONS: tuple[Setting, ...] = (
    *(Setting(name, State.WORKS, kind=_KIND) for name in _WORKS),
    *(Setting(name, State.NO_EFFECT, _NUMBERED, _KIND) for name in ("txnAppId", "txnVersion")),
    Setting("dataChange", State.NO_EFFECT, "What a stream writes is new.", _KIND, usual=("true",)),
    Setting("partitionOverwriteMode", State.NO_EFFECT, "Output mode complete replaces all rows.", _KIND, usual=("static",)),
    Setting(
        "delta.", State.NO_EFFECT, "A stream sets no properties. Create the table first, or set them with ALTER TABLE.", _KIND
    ),
    *(
        Setting(name, State.REFUSED, "A stream appends, or replaces all rows; use foreachBatch.", _KIND)
        for name in ("replaceWhere", "replaceOn", "replaceUsing", "targetAlias", "useNullIntolerantEqualityWithDPO")
    ),
    Setting(
        "writePartitionColumns",
        State.PLANNED,
        "Partition columns are written into data files only where the table demands it.",
        _KIND,
    ),
)
"""A name that ends with a point stands for all that begin so."""

_BY_NAME = {setting.name.lower(): setting for setting in STREAM_WRITER_OPTIONS}


def check_stream_writer_options(options: Mapping[str, str]) -> None:
    """A stream's writer has these options: tell once of each of the reference's that changes nothing, or refuse it.

    Raises `Unsupported` (``TAHOE_OPTION_NOT_SUPPORTED``).
    """
    for name, value in options.items():
        begins = name.lower().partition(".")[0] + "."
        setting = _BY_NAME.get(name.lower()) or _BY_NAME.get(begins)
        if setting is not None:
            check_setting(setting if setting.name != "delta." else Setting(name, setting.state, setting.why, setting.kind), value)
