"""Tables without UniForm as the conversion sees them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import tahoe
from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.protocol.iceberg_compat import deletes_form, format_version, uniform_is_enabled
from tahoe.protocol.properties import TableProperties
from tahoe.snapshot.snapshot import Snapshot
from tahoe.uniform.convert import without_uniform
from tahoe.uniform.convert.without_uniform import actions_with_uniform, metadata_with_uniform, with_uniform
from tahoe.uniform.formats.iceberg_schema import iceberg_schema

NESTED = pa.schema(
    [
        ("id", pa.int64()),
        ("m", pa.map_(pa.string(), pa.list_(pa.struct([("a.b", pa.int32())])))),
        ("s", pa.struct([("id", pa.int64())])),
    ]
)


def snapshot_of(path: Path, schema: pa.Schema, properties: dict[str, str] | None = None) -> Snapshot:
    return tahoe.Table.create(path, schema, properties=properties).snapshot()


def ids_by_name(snapshot: Snapshot) -> dict[str, int]:
    return {field["name"]: field["id"] for field in iceberg_schema(with_uniform(snapshot).schema)["fields"]}


def test_a_table_without_column_mapping_gets_an_id_for_each_part(tmp_path: Path) -> None:
    shown = with_uniform(snapshot_of(tmp_path / "t", NESTED))
    properties = TableProperties(shown.metadata.configuration)
    assert uniform_is_enabled(properties)
    assert (format_version(properties), deletes_form(properties)) == (2, "position")
    identity, mapped, struct = iceberg_schema(shown.schema)["fields"]
    parts = [
        identity["id"],
        mapped["id"],
        mapped["type"]["key-id"],
        mapped["type"]["value-id"],
        mapped["type"]["value"]["element-id"],
        mapped["type"]["value"]["element"]["fields"][0]["id"],
        struct["id"],
        struct["type"]["fields"][0]["id"],
    ]
    assert len(set(parts)) == len(parts)
    assert all(0 < number < 2**31 - 1000 for number in parts)


def test_ids_stay_when_columns_are_added_in_front_and_when_the_schema_is_replaced(tmp_path: Path) -> None:
    table = tahoe.Table.create(tmp_path / "t", pa.schema([("a", pa.int64()), ("b", pa.string())]))
    before = ids_by_name(table.snapshot())
    table.overwrite(pa.table({"c": [1], "b": ["x"]}), overwrite_schema=True)
    after = ids_by_name(table.snapshot())
    assert after["b"] == before["b"]
    assert after["c"] not in before.values()


def test_column_mapping_keeps_its_ids_and_names(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path / "t", pa.schema([("a", pa.int64())]), {"delta.columnMapping.mode": "name"})
    assert with_uniform(snapshot).schema == snapshot.schema


def test_elements_without_ids_are_refused_under_column_mapping(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path / "t", NESTED, {"delta.columnMapping.mode": "name"})
    with pytest.raises(InvalidRequest, match="column 'm' without ids for its elements"):
        with_uniform(snapshot)


def test_a_type_that_iceberg_lacks_is_refused_with_its_column(tmp_path: Path) -> None:
    table = tahoe.Table.create(tmp_path / "t", {"id": "long", "v": "variant"})
    with pytest.raises(InvalidRequest, match="column 'v' of type variant"):
        with_uniform(table.snapshot())


def test_two_columns_with_one_id_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = snapshot_of(tmp_path / "t", pa.schema([("a", pa.int64()), ("b", pa.int64())]))
    monkeypatch.setattr(without_uniform, "_id_of", lambda path: 7)
    with pytest.raises(Unsupported, match="columns 'a' and 'b' get the same id, 7"):
        with_uniform(snapshot)


def test_properties_that_configure_uniform_are_omitted(tmp_path: Path) -> None:
    named = {"delta.universalFormat.config.iceberg.catalogs": "prod:a.b", "other": "kept"}
    snapshot = snapshot_of(tmp_path / "t", pa.schema([("a", pa.int64())]), named)
    configuration = metadata_with_uniform(snapshot.metadata, False).configuration
    assert configuration["other"] == "kept"
    assert not [value for value in configuration.values() if "prod" in value]
    assert "prod:a.b" in snapshot.metadata.configuration.values()


def test_iceberg_compat_v3_stays_in_force(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path / "t", NESTED, {"delta.enableIcebergCompatV3": "true"})
    properties = TableProperties(with_uniform(snapshot).metadata.configuration)
    assert (format_version(properties), deletes_form(properties)) == (3, "vector")


def test_of_a_commit_only_the_metadata_changes(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path / "t", pa.schema([("a", pa.int64())]))
    actions = actions_with_uniform([snapshot.protocol, snapshot.metadata], False)
    assert actions == [snapshot.protocol, metadata_with_uniform(snapshot.metadata, False)]
