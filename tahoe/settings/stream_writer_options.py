"""delta-spark's options of stream writers, one row each."""

from __future__ import annotations

from collections.abc import Mapping

from tahoe.settings.setting import Setting, State, check_setting

_KIND = "stream writer's option"
_WORKS = (
    *("path", "checkpointLocation", "queryName", "mergeSchema", "overwriteSchema", "userMetadata", "maxRecordsPerFile"),
    *("compression", "optimizeWrite", "fs.", "dfs.", "parquet."),
)
_NUMBERED = "A stream identifies its batches by query id and batch number. Use the option in foreachBatch."
STREAM_WRITER_OPTIONS: tuple[Setting, ...] = (
    *(Setting(name, State.WORKS, kind=_KIND) for name in _WORKS),
    *(Setting(name, State.NO_EFFECT, _NUMBERED, _KIND) for name in ("txnAppId", "txnVersion")),
    Setting("dataChange", State.NO_EFFECT, "A stream writes new rows only.", _KIND, usual=("true",)),
    Setting("partitionOverwriteMode", State.NO_EFFECT, "Output mode complete replaces all rows.", _KIND, usual=("static",)),
    Setting("delta.", State.NO_EFFECT, "A stream sets no table properties. Create the table first, or use ALTER TABLE.", _KIND),
    *(
        Setting(name, State.REFUSED, "A stream appends or replaces all rows; use foreachBatch.", _KIND)
        for name in ("replaceWhere", "replaceOn", "replaceUsing", "targetAlias", "useNullIntolerantEqualityWithDPO")
    ),
    Setting(
        "writePartitionColumns",
        State.PLANNED,
        "Partition columns are written into data files only if the table requires it.",
        _KIND,
    ),
)
"""A name that ends with a dot is a prefix."""

_BY_NAME = {setting.name.lower(): setting for setting in STREAM_WRITER_OPTIONS}


def check_stream_writer_options(options: Mapping[str, str]) -> None:
    """Check a stream writer's options: warn once about each option of delta-spark without effect, raise for refused ones.

    Raises `Unsupported` (``TAHOE_OPTION_NOT_SUPPORTED``).
    """
    for name, value in options.items():
        prefix = name.lower().partition(".")[0] + "."
        setting = _BY_NAME.get(name.lower()) or _BY_NAME.get(prefix)
        if setting is not None:
            check_setting(setting if setting.name != "delta." else Setting(name, setting.state, setting.why, setting.kind), value)
