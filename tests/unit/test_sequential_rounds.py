"""The sequential rounds of requests to an object store of each operation (docs/design/042-requests.md)."""

from __future__ import annotations

import json
import re
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
    warm = small_table(small)
    old_table(old)
    rows = pa.table({"id": [1]})
    at = datetime.fromtimestamp((FIRST_MS + 1_234_567) / 1000, UTC)
    operations = {
        "open": (small, lambda: Table(small.url, store=small).snapshot()),
        "list the live files": (small, lambda: Table(small.url, store=small).files()),
        "read the newest version again": (small, lambda: warm.snapshot()),
        "append, first in a process": (small, lambda: Table(small.url, store=small).append(rows)),
        "history(1) of 5,000 versions": (old, lambda: Table(old.url, store=old).history(1)),
        "time travel in 5,000 versions": (old, lambda: Table(old.url, store=old).snapshot(timestamp=at)),
    }
    rounds = {}
    for name, (store, run) in operations.items():
        with store.counted() as simulated:
            run()
        rounds[name] = simulated.now
    return rounds


def small_table(store: RoundsStore) -> Table:
    """A table with a checkpoint and two commits after it."""
    table = Table.create(store.url, {"id": "long"}, store=store)
    for number in range(4):
        table.append(pa.table({"id": [number]}))
        if number == 1:
            table.checkpoint()
    return table


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
