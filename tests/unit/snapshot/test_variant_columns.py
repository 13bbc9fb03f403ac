"""Variants without Spark: their two parts are read and written as they are; what a file holds taken apart is refused by name."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import tahoe
from tahoe.exceptions import InvalidRequest, SchemaMismatch, Unsupported
from tahoe.schema.arrow import VARIANT

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


ONE, TWO = ({"value": bytes([12, number]), "metadata": b"\x01\x00\x00"} for number in (1, 2))
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("v", VARIANT),
        ("s", pa.struct([("w", VARIANT)])),
        ("l", pa.list_(VARIANT)),
        ("m", pa.map_(pa.string(), VARIANT)),
    ]
)


def test_variants_are_read_as_their_two_parts(table: tahoe.Table) -> None:
    rows = table.to_arrow()
    assert rows.schema.field("v").type == VARIANT
    assert rows.to_pylist()[0] == {"id": 1, "v": ONE, "s": {"v": ONE}, "l": None}
    assert table.to_arrow(columns=["id"], filter="v is not null and id > 1")["id"].to_pylist() == [2, 3]
    assert str(table.schema()) == "struct<id:long,v:variant,s:struct<v:variant>,l:array<variant>>"


def made(path: Path, **properties: str) -> tahoe.Table:
    found = tahoe.Table.create(path, SCHEMA, properties={"delta.enableChangeDataFeed": "true", **properties})
    rows = [
        {"id": 1, "v": ONE, "s": {"w": TWO}, "l": [ONE, None], "m": [("k", TWO)]},
        {"id": 2, "v": None, "s": None, "l": None, "m": None},
        {"id": 3, "v": TWO, "s": {"w": None}, "l": [], "m": [("k", None)]},
    ]
    found.append(pa.Table.from_pylist(rows, SCHEMA))
    return found


@pytest.mark.parametrize("properties", [{}, {"delta.columnMapping.mode": "id"}, {"delta.enableDeletionVectors": "true"}], ids=str)
def test_they_are_written_changed_and_laid_out_anew(tmp_path: Path, properties: dict[str, str]) -> None:
    table = made(tmp_path / "t", **properties)
    assert {"variantType"} <= table.snapshot().config.protocol.reader_features
    table.append(pa.table({"id": [4]}))
    assert table.to_arrow(filter="v is null").sort_by("id")["id"].to_pylist() == [2, 4]
    assert table.to_arrow(filter="s.w is not null").sort_by("id")["id"].to_pylist() == [1]
    # `nullCount` is all that the specification knows of a variant's statistics.
    assert len(table.files(filter="v is not null")) == 1
    table.update({"id": "id * 10"}, "id = 1")
    table.delete("v is null and id = 2")
    source = table.to_arrow(filter="id = 10").set_column(0, "id", pa.array([5]))
    table.merge(source, "source.id = target.id").when_not_matched_insert_all().execute()
    table.optimize()
    shown = {row["id"]: row["v"] for row in table.to_arrow().to_pylist()}
    assert shown == {3: TWO, 4: None, 10: ONE, 5: ONE}
    assert table.to_arrow(filter="id = 5")["l"].to_pylist() == [[ONE, None]]
    assert table.changes(1).filter(pc.field("_change_type") == "delete")["v"].to_pylist() == [None]
    assert not table.check(deep=True)


def test_a_variant_neither_partitions_nor_orders_rows(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest) as error:
        tahoe.Table.create(tmp_path / "p", SCHEMA, partition_by=["v"])
    assert error.value.code == "DELTA_INVALID_PARTITION_COLUMN_TYPE"
    table = made(tmp_path / "t")
    for call in (lambda: table.cluster_by(["v"]), lambda: table.optimize(zorder_by=["v"]), lambda: table.delete("v = 1")):
        with pytest.raises(InvalidRequest, match="variant"):
            call()


def test_what_is_no_variant_is_not_written_as_one(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    for values in (pa.array([7]), pa.array([{"value": b"x"}]), pa.array([{"value": b"x", "metadata": None}]), pa.array(["{}"])):
        with pytest.raises(SchemaMismatch):
            table.append(pa.table({"id": [9], "v": values}))
    assert table.version() == 1


def test_iceberg_s_side_refuses_them_by_name(tmp_path: Path) -> None:
    properties = {"delta.enableIcebergCompatV3": "true", "delta.universalFormat.enabledFormats": "iceberg"}
    with pytest.raises(InvalidRequest, match="'v' of type variant, which the Iceberg side cannot show"):
        made(tmp_path / "t", **properties)


def test_a_variant_that_a_file_holds_taken_apart_is_refused_with_its_file_and_column(tmp_path: Path) -> None:
    table = made(tmp_path / "t", **{"delta.enableVariantShredding": "true"})
    file = next((tmp_path / "t").glob("*.parquet"))
    rows = pq.read_table(file)
    apart = pa.array([{"metadata": ONE["metadata"], "value": None, "typed_value": 1}, None, ONE])
    pq.write_table(rows.set_column(1, "v", apart), file)
    log = tmp_path / "t" / "_delta_log" / f"{1:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    add = next(action["add"] for action in actions if "add" in action)
    add["size"] = file.stat().st_size
    log.write_text("".join(json.dumps(action) + "\n" for action in actions if "commitInfo" not in action))
    for crc in log.parent.glob("*.crc"):
        crc.unlink()
    table = tahoe.Table(tmp_path / "t")
    assert table.to_arrow(columns=["id", "s"]).num_rows == 3
    with pytest.raises(Unsupported, match=r"'v' of data file .* is a shredded variant") as error:
        table.to_arrow()
    assert error.value.facts["file"] == file.name
    assert not table.check(deep=True)
