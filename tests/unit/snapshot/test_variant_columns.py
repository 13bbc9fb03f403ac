"""A table with variant columns is read but for these, which are refused by name; nothing is written to it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tahoe
from tahoe.exceptions import Unsupported

FIELDS = [
    {"name": "id", "type": "long", "nullable": True, "metadata": {}},
    {"name": "v", "type": "variant", "nullable": True, "metadata": {}},
    {"name": "s", "type": {"type": "struct", "fields": [{"name": "v", "type": "variant", "nullable": True}]}, "nullable": True},
    {"name": "l", "type": {"type": "array", "elementType": "variant", "containsNull": True}, "nullable": True},
]


@pytest.fixture(params=["variantType", "variantType-preview", "variantShredding-preview"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> tahoe.Table:
    features = sorted({request.param, "variantType"})
    variant = pa.array([{"metadata": b"\x01\x00\x00", "value": b"\x0c\x01"}] * 3)
    rows = pa.table(
        {"id": [1, 2, 3], "v": variant, "s": pa.array([{"v": {"metadata": b"\x01\x00\x00", "value": b"\x0c\x01"}}] * 3)}
    )
    pq.write_table(rows, tmp_path / "a.parquet")
    actions = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}},
        {
            "metaData": {
                "id": "i",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": FIELDS}),
                "partitionColumns": [],
                "configuration": {},
            }
        },
        {
            "add": {
                "path": "a.parquet",
                "partitionValues": {},
                "size": (tmp_path / "a.parquet").stat().st_size,
                "modificationTime": 1,
                "dataChange": True,
            }
        },
    ]
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / f"{0:020d}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))
    return tahoe.Table(tmp_path)


def test_the_other_columns_are_read(table: tahoe.Table) -> None:
    assert table.to_arrow(columns=["id"])["id"].to_pylist() == [1, 2, 3]
    assert table.to_arrow(columns=["id"], filter="id > 1")["id"].to_pylist() == [2, 3]
    assert str(table.schema()) == "struct<id:long,v:variant,s:struct<v:variant>,l:array<variant>>"


@pytest.mark.parametrize(("columns", "refused"), [(None, "v, s, l"), (["v"], "v"), (["id", "l"], "l"), (["s"], "s")])
def test_variant_columns_are_refused_by_name(table: tahoe.Table, columns: list[str] | None, refused: str) -> None:
    with pytest.raises(Unsupported, match=f"cannot read: {refused}"):
        table.to_arrow(columns=columns)


def test_a_filter_on_a_variant_is_refused_by_name(table: tahoe.Table) -> None:
    with pytest.raises(Unsupported, match="cannot read: v"):
        table.to_arrow(columns=["id"], filter="v is not null")


def test_nothing_is_written_to_it(table: tahoe.Table) -> None:
    with pytest.raises(Unsupported, match="variant"):
        table.append(pa.table({"id": [4]}))
    with pytest.raises(Unsupported, match="variant"):
        table.delete("id = 1")
