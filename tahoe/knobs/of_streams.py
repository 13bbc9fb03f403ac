"""Options of the writers of streams, one row each."""

from __future__ import annotations

from collections.abc import Mapping

from tahoe.knobs.knob import Knob, State, turned

__all__ = ["STREAM_WRITER_OPTIONS", "stream_writer_given"]

_KIND = "stream writer's option"
_WORKS = (
    *("path", "checkpointLocation", "queryName", "mergeSchema", "overwriteSchema", "userMetadata", "maxRecordsPerFile"),
    *("compression", "optimizeWrite", "fs.", "dfs.", "parquet."),
)
_NUMBERED = "Batches of a stream are numbered by the query's id and the batch's. The option is for foreachBatch."
STREAM_WRITER_OPTIONS: tuple[Knob, ...] = (
    *(Knob(name, State.WORKS, kind=_KIND) for name in _WORKS),
    *(Knob(name, State.NOTHING, _NUMBERED, _KIND) for name in ("txnAppId", "txnVersion")),
    Knob("dataChange", State.NOTHING, "What a stream writes is new.", _KIND, usual=("true",)),
    Knob("partitionOverwriteMode", State.NOTHING, "Output mode complete replaces all rows.", _KIND, usual=("static",)),
    Knob("delta.", State.NOTHING, "A stream sets no properties. Create the table first, or set them with ALTER TABLE.", _KIND),
    *(
        Knob(name, State.REFUSED, "A stream appends, or replaces all rows; use foreachBatch.", _KIND)
        for name in ("replaceWhere", "replaceOn", "replaceUsing", "targetAlias", "useNullIntolerantEqualityWithDPO")
    ),
    Knob(
        "writePartitionColumns",
        State.LATER,
        "Partition columns are written into data files only where the table demands it.",
        _KIND,
    ),
)
"""A name that ends with a point stands for all that begin so."""

_KNOBS = {knob.name.lower(): knob for knob in STREAM_WRITER_OPTIONS}


def stream_writer_given(options: Mapping[str, str]) -> None:
    """A stream's writer has these options: tell once of each of the reference's that changes nothing, or refuse it.

    Raises `Unsupported` (``TAHOE_OPTION_NOT_SUPPORTED``).
    """
    for name, value in options.items():
        begins = name.lower().partition(".")[0] + "."
        knob = _KNOBS.get(name.lower()) or _KNOBS.get(begins)
        if knob is not None:
            turned(knob if knob.name != "delta." else Knob(name, knob.state, knob.why, knob.kind), value)
