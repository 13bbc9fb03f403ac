"""A table in use whose columns, and parts of columns, got other names, went, and came again under names that are taken in its files."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from tahoe import Table

__all__ = ["EXPECTED", "RENAMED", "STARTS", "renamed_table"]

STARTS = {"name": "name", "id": "id", "upgraded": None}
"""The mode that the table is made with; None: it is made without column mapping, which comes when there are rows."""
RENAMED = "ä b.c;{}"
_INNER = pa.struct([("x", pa.int64()), ("y", pa.string())])
_SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("a", pa.int64()),
        ("s", _INNER),
        ("l", pa.list_(_INNER)),
        ("m", pa.map_(pa.string(), _INNER)),
        ("p", pa.string()),
    ]
)
EXPECTED = [
    {
        "id": i,
        "s": {"X,1": i, "y": None},
        "l": [{"X 2": i}],
        "m": [("k", {"X\t3": i, "y": "v"})],
        "P art=1": f"p{i % 2}",
        "a": None,
        RENAMED: None,
    }
    for i in range(3)
]


def _rows(ids: Iterable[int]) -> pa.Table:
    inner = ({"x": i, "y": "v"} for i in ids)
    return pa.Table.from_pylist(
        [
            {"id": item["x"], "a": item["x"] * 10, "s": item, "l": [item], "m": {"k": item}, "p": f"p{item['x'] % 2}"}
            for item in inner
        ],
        _SCHEMA,
    )


def renamed_table(path: str, mode: str | None) -> Table:
    """Rows 0 to 2, as `EXPECTED` has them; row 3 is deleted by a vector. The rows of versions before the changes have all columns."""
    properties = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true", "delta.checkpointInterval": "3"}
    if mode is not None:
        properties["delta.columnMapping.mode"] = mode
    table = Table.create(path, _SCHEMA, partition_by=["p"], properties=properties)
    table.append(_rows(range(4)))
    if mode is None:
        table.set_properties({"delta.columnMapping.mode": "name"})
    table.delete("id = 3")
    for name, new in (("a", RENAMED), ("p", "P art=1"), ("s.x", "X,1"), ("l.element.x", "X 2"), ("m.value.x", "X\t3")):
        table.rename_column(name, new)
    table.drop_columns(["s.y", "l.element.y"])
    table.add_columns(pa.schema([("y", pa.string())]), inside="s")
    table.add_columns(pa.schema([("a", pa.int64())]))
    table.drop_columns([f"`{RENAMED}`"])
    table.add_columns(pa.schema([(RENAMED, pa.int64())]))
    return table
