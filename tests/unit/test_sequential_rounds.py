"""The sequential rounds of requests to an object store of each operation (docs/design/042-requests.md)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from tahoe import Table
from tests.sequential_rounds import RoundsStore

PAGE = Path(__file__).parents[2] / "docs/design/042-requests.md"
VERSIONS = 5_000
FIRST_MS = 1_700_000_000_000


def test_the_documented_rounds_are_those_of_the_code() -> None:
    assert measured() == documented()


def documented() -> dict[str, int]:
    """The rows of the page's table: an operation and its rounds."""
    rows = re.findall(r"^\| ([^|]+?) \| (\d+) \|", PAGE.read_text(), re.MULTILINE)
    return {name: int(rounds) for name, rounds in rows}


def measured() -> dict[str, int]:
    """The rounds of one run of each operation."""
    small, old = RoundsStore(), RoundsStore()
    forty, parted, warm = RoundsStore(), RoundsStore(), small_table(small)
    Table.create(parted.url, {"id": "long", "n": "long"}, store=parted, partition_by=["id"])
    forty_files(forty, vectors=True)
    old_table(old)
    rows = pa.table({"id": [1]})
    at = datetime.fromtimestamp((FIRST_MS + 1_234_567) / 1000, UTC)
    operations = {
        "open": (small, lambda: Table(small.url, store=small).snapshot()),
        "list the live files": (small, lambda: Table(small.url, store=small).files()),
        "read the newest version again": (small, lambda: warm.snapshot()),
        "read 40 files": (forty, lambda: Table(forty.url, store=forty).to_arrow()),
        "append 40 files": (parted, lambda: Table(parted.url, store=parted).append(rows_of(range(40)))),
        "append, in the same process": (small, lambda: warm.append(rows)),
        "append, first in a process": (small, lambda: Table(small.url, store=small).append(rows)),
        "history(1) of 5,000 versions": (old, lambda: Table(old.url, store=old).history(1)),
        "time travel in 5,000 versions": (old, lambda: Table(old.url, store=old).snapshot(timestamp=at)),
    }
    rounds = {}
    for name, (store, run) in operations.items():
        with store.counted() as simulated:
            run()
        rounds[name] = simulated.now
    changes = [change_of(operation, vectors) for operation in (delete, update, merge) for vectors in (True, False)]
    rounds["DELETE, UPDATE, MERGE of 40 files"] = max(changes)
    rounds["OPTIMIZE of 40 files"] = change_of(lambda table: table.optimize(), vectors=False)
    return rounds


def small_table(store: RoundsStore) -> Table:
    """A table with a checkpoint and two commits after it."""
    table = Table.create(store.url, {"id": "long"}, store=store)
    for number in range(4):
        table.append(pa.table({"id": [number]}))
        if number == 1:
            table.checkpoint()
    return table


def rows_of(ids: Iterable[int]) -> pa.Table:
    """Rows with these ids."""
    return pa.table({"id": list(ids), "n": [0 for _ in ids]})


def forty_files(store: RoundsStore, vectors: bool) -> None:
    """A table of 40 files with ten rows each, and a checkpoint."""
    properties = {"delta.enableDeletionVectors": str(vectors).lower()}
    table = Table.create(store.url, {"id": "long", "n": "long"}, store=store, properties=properties)
    for number in range(40):
        table.append(rows_of(range(10 * number, 10 * number + 10)))
    table.checkpoint()


def change_of(change: Callable[[Table], object], vectors: bool) -> int:
    """The rounds of a change of a row in each of 40 files."""
    store = RoundsStore()
    forty_files(store, vectors)
    with store.counted() as rounds:
        change(Table(store.url, store=store))
    return rounds.now


def delete(table: Table) -> object:
    """Delete a row of each file."""
    return table.delete("id % 10 = 3")


def update(table: Table) -> object:
    """Update a row of each file."""
    return table.update({"n": "n + 1"}, "id % 10 = 3")


def merge(table: Table) -> object:
    """Update a row of each file, and insert a row."""
    source = rows_of(range(3, 410, 10))
    return table.merge(source, "target.id = source.id").when_matched_update_all().when_not_matched_insert_all().execute()


def old_table(store: RoundsStore) -> None:
    """A table with in-commit timestamps, a second apart, whose commits after the first add nothing; with a checkpoint near each end."""
    table = Table.create(store.url, {"id": "long"}, store=store, properties={"delta.enableInCommitTimestamps": "true"})
    for version in range(1, VERSIONS):
        time_ms = FIRST_MS + 1000 * version
        info = {
            "inCommitTimestamp": time_ms,
            "timestamp": time_ms,
            "operation": "WRITE",
            "operationParameters": {},
            "txnId": f"{version}",
        }
        store.put(f"_delta_log/{version:020d}.json", (json.dumps({"commitInfo": info}) + "\n").encode())
        if version in (1200, VERSIONS - 10):
            table.checkpoint()
