"""`tahoe detail`: a summary of the table on one screen."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.cli.arguments import AsJson, Path, StorageOptions, open_table
from tahoe.cli.output import print_json, print_pairs
from tahoe.cli.secrets import HIDDEN, is_secret_name
from tahoe.cli.text import ago, amount, moment, size


def detail(path: Path, option: StorageOptions = [], json: AsJson = False) -> None:  # noqa: B006 - read by typer, never changed
    """Show the table's schema, partitioning, size, protocol and properties."""
    table = open_table(path, option)
    snapshot = table.snapshot()
    facts = {**table.detail(), "version": snapshot.version}
    properties = facts.get("properties") or {}
    facts["properties"] = {name: HIDDEN if is_secret_name(name) else value for name, value in properties.items()}
    if json:
        print_json({**facts, "schema": snapshot.schema.to_json_value()})
        return
    print_pairs([*_pairs(facts), *((f"  {column.name}", _type(column)) for column in snapshot.schema)])


def _pairs(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "table", str(facts["location"])
    for name in ("name", "description"):
        if facts.get(name):
            yield name, str(facts[name])
    yield "id", str(facts["id"])
    yield "version", f"{facts['version']}, {_when(facts['lastModified'])}"
    if facts.get("createdAt"):
        yield "created", _when(facts["createdAt"])
    yield "files", f"{amount(facts['numFiles'])}, {size(facts['sizeInBytes'])}"
    for name, key in (("partitioned by", "partitionColumns"), ("clustered by", "clusteringColumns")):
        if facts.get(key):
            yield name, ", ".join(facts[key])
    yield "protocol", f"reader {facts['minReaderVersion']}, writer {facts['minWriterVersion']}"
    if facts.get("tableFeatures"):
        yield "features", ", ".join(facts["tableFeatures"])
    for name, value in sorted(facts["properties"].items()):
        yield "property", f"{name} = {value}"
    yield "columns", ""


def _when(time: datetime) -> str:
    return f"{ago(round(time.timestamp() * 1000), SYSTEM_CLOCK.now_ms())} ({moment(time)})"


def _type(column: Any) -> str:
    return f"{column.data_type}{'' if column.nullable else ' not null'}"
