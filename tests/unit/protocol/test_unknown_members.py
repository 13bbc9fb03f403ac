"""Unknown members and actions, in files of the log other than commits: ignored, and the data of other writers kept.

Checkpoints of each kind are rewritten with an invented member in each of their actions, and earlier commits are deleted, so that readers
need the checkpoint (PROTOCOL.md, "Checkpoints", "Sidecar Files", "Last Checkpoint File", "Version Checksum File").
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tahoe.api.table import Table
from tahoe.base.exceptions import CorruptTable, TahoeError
from tahoe.log.files.last_checkpoint import checksum_of_json

pytestmark = pytest.mark.damages_tables

Rows = list[dict[str, Any]]
INVENTED = {"deep": [{"er": None}], "text": "ü"}
INVENTED_TYPE = pa.struct({"deep": pa.list_(pa.struct({"er": pa.int8()})), "text": pa.string()})
STATISTIC = {"deep": {"id": [1, None]}, "text": "ü"}
KINDS: Mapping[str, Mapping[str, str]] = {
    "classic": {},
    "in parts": {},
    "v2 parquet": {"delta.checkpointPolicy": "v2"},
    "v2 json": {"delta.checkpointPolicy": "v2"},
}


def made(path: Path, kind: str) -> Table:
    """A table with one of each object that may have unknown members, and one checkpoint."""
    properties = {"delta.enableDeletionVectors": "true", "somebodys.property": "kept"}
    schema = pa.schema([pa.field("id", pa.int64(), metadata={"comment": "c"})])
    table = Table.create(path, schema, properties={**properties, **KINDS[kind]})
    table.append(pa.table({"id": [1, 2, 3]}), app=("a", 7))
    table.delete("id = 2")
    table.add_feature("domainMetadata")
    commit = commit_of(path, table.version())
    actions = [json.loads(line) for line in commit.read_text().splitlines() if "commitInfo" not in line]
    actions.append({"domainMetadata": {"domain": "somebodys", "configuration": '{"any": ["thing"]}', "removed": False}})
    commit.write_text("".join(json.dumps(action) + "\n" for action in actions))
    for checksum in commit.parent.glob("*.crc"):
        checksum.unlink()
    table = Table(path)
    table.checkpoint()
    return table


def commit_of(path: Path, version: int) -> Path:
    return path / "_delta_log" / f"{version:020d}.json"


def rows_of(file: Path) -> tuple[pa.Schema, Rows]:
    content = pq.read_table(file)
    return content.schema, content.to_pylist()


def with_invented(schema: pa.Schema, rows: Rows) -> tuple[pa.Schema, Rows]:
    """A member more in each action, and one action more."""
    fields = [pa.field(each.name, pa.struct([*each.type, ("inventedMember", INVENTED_TYPE)])) for each in schema]
    changed = [
        {name: None if value is None else value | {"inventedMember": INVENTED} for name, value in row.items()} for row in rows
    ]
    names = [each.name for each in schema]
    changed.append({**dict.fromkeys(names), "inventedAction": INVENTED})
    return pa.schema([*fields, ("inventedAction", INVENTED_TYPE)]), changed


def of_others(rows: Rows) -> None:
    """Data of others where an action has a place for it: tags, options of the format, a statistic."""
    for row in rows:
        if row.get("add"):
            row["add"]["tags"] = [("SOMEBODYS_TAG", "kept")]
            row["add"]["stats"] = json.dumps(json.loads(row["add"]["stats"]) | {"inventedStatistic": STATISTIC})
        if row.get("metaData"):
            row["metaData"]["format"]["options"] = [("somebodys", "option")]
            row["metaData"]["configuration"].append(("delta.inventedProperty", "kept"))


def change(path: Path, kind: str) -> None:
    """Replace the one checkpoint of a table by a file of its kind with the invented members."""
    log = path / "_delta_log"
    (top,) = log.glob("*.checkpoint*.parquet")
    for sidecar in (log / "_sidecars").glob("*.parquet"):
        schema, rows = rows_of(sidecar)
        of_others(rows)
        schema, rows = with_invented(schema, rows)
        pq.write_table(pa.Table.from_pylist(rows, schema), sidecar)
    schema, rows = rows_of(top)
    of_others(rows)
    for row in rows:
        if row.get("sidecar"):
            row["sidecar"]["sizeInBytes"] = (log / "_sidecars" / row["sidecar"]["path"]).stat().st_size
            row["sidecar"]["tags"] = [("SOMEBODYS_TAG", "kept")]
        if row.get("checkpointMetadata"):
            row["checkpointMetadata"]["tags"] = [("somebodys", "tag")]
    schema, rows = with_invented(schema, rows)
    top.unlink()
    version = top.name[:20]
    if kind == "v2 json":
        top.with_suffix(".json").write_text("".join(json.dumps(as_json(row)) + "\n" for row in rows))
    elif kind == "in parts":
        for part, some in ((1, rows[:-2]), (2, rows[-2:])):
            name = f"{version}.checkpoint.{part:010d}.{2:010d}.parquet"
            pq.write_table(pa.Table.from_pylist(some, schema), log / name)
    else:
        pq.write_table(pa.Table.from_pylist(rows, schema), top)
    (log / "_last_checkpoint").unlink()
    for older in range(int(version)):
        commit_of(path, older).unlink()


def as_json(row: dict[str, Any]) -> dict[str, Any]:
    """A row as a line of a V2 checkpoint in JSON spells it: members that are null are not there, maps are objects."""

    def spelled(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: spelled(part) for name, part in value.items() if part is not None}
        if isinstance(value, list) and value and isinstance(value[0], tuple):
            return dict(value)
        return value

    empty_maps = {"metaData": ("configuration",), "add": ("partitionValues",)}
    reported = {name: spelled(value) for name, value in row.items() if value is not None}
    for name, members in empty_maps.items():
        for member in members if name in reported else ():
            reported[name][member] = dict(reported[name].get(member) or {})
    return reported


@pytest.mark.parametrize("kind", KINDS)
def test_checkpoints_with_unknown_fields_are_read_and_foreign_data_is_kept(tmp_path: Path, kind: str) -> None:
    made(tmp_path, kind)
    change(tmp_path, kind)
    table = Table(tmp_path)
    assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 3]
    table.append(pa.table({"id": [4]}), app=("b", 1))
    table.set_properties({"mine": "too"})
    table.checkpoint()
    for commit in (tmp_path / "_delta_log").glob("[0-9]*.json"):
        if "checkpoint" not in commit.name and int(commit.stem) < table.version():
            commit.unlink()  # so that Tahoe's checkpoint is read
    actual = Table(tmp_path)
    snapshot = actual.snapshot()
    assert sorted(actual.to_arrow()["id"].to_pylist()) == [1, 3, 4]
    assert {name: txn.version for name, txn in snapshot.state.transactions.items()} == {"a": 7, "b": 1}
    assert snapshot.state.domains["somebodys"].configuration == '{"any": ["thing"]}'
    configuration = snapshot.metadata.configuration
    assert [configuration[name] for name in ("somebodys.property", "delta.inventedProperty", "mine")] == ["kept", "kept", "too"]
    assert dict(snapshot.metadata.format_options) == {"somebodys": "option"}
    (old,) = [row for row in actual.files().to_pylist() if row["deletionVector"] is not None]
    assert dict(old["tags"]) == {"SOMEBODYS_TAG": "kept"}
    assert json.loads(old["stats"])["inventedStatistic"] == STATISTIC
    assert actual.check() == []


# -- small files -------------------------------------------------------------------------------------------------------------


def json_file(path: Path, **members: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **members}))


def test_a_checksum_and_the_pointer_may_say_more_than_we_know(tmp_path: Path) -> None:
    table = Table.create(tmp_path, pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1, 2, 3]}))
    table.checkpoint()
    log = tmp_path / "_delta_log"
    checksum = log / f"{1:020d}.crc"
    content = json.loads(checksum.read_text())
    content["metadata"]["inventedMember"] = content["protocol"]["inventedMember"] = INVENTED
    checksum.write_text(json.dumps(content | {"inventedMember": INVENTED, "inventedHistogram": {"bins": [1]}}))
    pointer = json.loads((log / "_last_checkpoint").read_text()) | {"inventedMember": INVENTED}
    pointer["tags"] = {**pointer.get("tags", {}), "somebodys": "tag"}
    pointer["checksum"] = checksum_of_json(pointer)
    (log / "_last_checkpoint").write_text(json.dumps(pointer))
    actual = Table(tmp_path)
    assert actual.to_arrow()["id"].to_pylist() == [1, 2, 3]
    assert actual.append(pa.table({"id": [4]})) == 2 and actual.check() == []


# -- deletion vectors --------------------------------------------------------------------------------------------------------


def with_vector(path: Path, change: Callable[[dict[str, Any]], Any]) -> Table:
    """A table with one dead row, whose vector's descriptor is changed."""
    table = Table.create(path, pa.schema([("id", pa.int64())]), properties={"delta.enableDeletionVectors": "true"})
    table.append(pa.table({"id": [1, 2, 3]}))
    table.delete("id = 2")
    commit = commit_of(path, 2)
    actions = [json.loads(line) for line in commit.read_text().splitlines() if "commitInfo" not in line]
    change(next(action["add"] for action in actions if "add" in action)["deletionVector"])
    commit.write_text("".join(json.dumps(action) + "\n" for action in actions))
    (path / "_delta_log" / f"{2:020d}.crc").unlink()
    return Table(path)


def test_a_vectors_descriptor_may_say_more_than_we_know(tmp_path: Path) -> None:
    table = with_vector(tmp_path, lambda vector: vector.update(inventedMember=INVENTED))
    assert table.to_arrow()["id"].to_pylist() == [1, 3]
    table.checkpoint()
    table.delete("id = 3")
    assert table.to_arrow()["id"].to_pylist() == [1] and table.check() == []


@pytest.mark.parametrize("storage_type", ["x", "U", "", "inline", None, 7])
def test_a_vector_in_a_place_that_we_do_not_know_is_refused_and_no_dead_row_comes_back(
    tmp_path: Path, storage_type: object
) -> None:
    with pytest.raises(TahoeError) as error:
        with_vector(tmp_path, lambda vector: vector.update(storageType=storage_type)).to_arrow()
    assert isinstance(error.value, CorruptTable) and error.value.code
