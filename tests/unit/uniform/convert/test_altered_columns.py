"""The Iceberg side of a table whose columns are renamed, dropped, moved and added: ids are stable and never reused."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

from tahoe import Table
from tahoe.testing.iceberg_verifier import newest_document, verify

PROPERTIES = {
    "delta.universalFormat.enabledFormats": "iceberg",
    "delta.columnMapping.mode": "name",
}
ROWS = pa.table({"id": [1, 2], "s": [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}], "l": [[1], [2, 3]], "p": ["k", "j"]})


def fields(document) -> dict[str, int]:
    schema = next(candidate for candidate in document["schemas"] if candidate["schema-id"] == document["current-schema-id"])
    return {field["name"]: field["id"] for field in schema["fields"]}


@pytest.mark.parametrize("compat", [2, 3])
def test_column_ids_survive_renames_and_are_never_reused(tmp_path, compat):
    properties = {**PROPERTIES, f"delta.enableIcebergCompatV{compat}": "true"}
    if compat == 3:
        properties["delta.enableRowTracking"] = "true"
    table = Table.create(tmp_path / "t", ROWS.schema, partition_by=["p"], properties=properties)
    table.append(ROWS)
    table.uniform.sync()
    before = fields(newest_document(table.store))
    table.rename_column("p", "part")
    table.rename_column("s.a", "aa")
    table.drop_columns(["l", "s.b"])
    table.change_column("id", after="part", comment="the key")
    table.add_columns(pa.schema([("l", pa.list_(pa.int64()))]), first=True)
    table.append(pa.table({"id": [3], "s": [{"aa": 3}], "part": ["k"], "l": [[7]]}))
    table.uniform.sync()
    assert verify(table.store) == table.version()
    document = newest_document(table.store)
    after = fields(document)
    assert (after["part"], after["id"], after["s"]) == (before["p"], before["id"], before["s"])
    assert after["l"] > max(before.values()) and list(after) == ["l", "s", "part", "id"]
    assert [spec["fields"][0]["name"] for spec in document["partition-specs"] if spec["spec-id"] == document["default-spec-id"]]
    assert document["last-column-id"] == table.snapshot().config.properties.max_column_id
    if compat == 2:  # PyIceberg reads no row ids
        hint = (tmp_path / "t" / "metadata" / "version-hint.text").read_text()
        shown = StaticTable.from_metadata(f"{table.url}/metadata/v{hint}.metadata.json")
        rows = shown.scan().to_arrow().sort_by("id").to_pylist()
        assert rows == table.to_arrow().sort_by("id").to_pylist()
