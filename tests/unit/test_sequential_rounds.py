"""The sequential rounds of requests to an object store of each operation (docs/design/042-requests.md)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tahoe import Table
from tahoe.log.cleanup import clean_up_log
from tahoe.log.files.paths import parse
from tahoe.ops.copies import clone, convert, copy_files  # pools are replaced in loaded modules only
from tahoe.ops.upkeep import restore, vacuum, vacuum_files
from tahoe.store.log_store import Entry
from tests.sequential_rounds import RoundsStore

LOADED = (clone, convert, copy_files, restore, vacuum, vacuum_files)
PAGE = Path(__file__).parents[2] / "docs/design/042-requests.md"
VERSIONS = 5_000
FIRST_MS = 1_700_000_000_000


def test_the_documented_rounds_are_those_of_the_code() -> None:
    assert {**measured(), **measured_upkeep()} == documented()


@pytest.mark.soak
def test_a_log_of_100_000_versions_takes_one_more_round_at_most() -> None:
    old = OldStore()
    old_table(old, 100_000)
    rounds = rounds_in_an_old_table(old)
    of_5_000 = documented()
    assert rounds["history(1)"] == of_5_000["history(1) of 5,000 versions"]
    assert rounds["time travel"] <= of_5_000["time travel in 5,000 versions"] + 1 <= 8
    pages = (100_000 - VERSIONS) // 1_000
    assert rounds["VACUUM, dry run"] <= of_5_000["VACUUM, dry run, in 5,000 versions"] + 2 * pages


def documented() -> dict[str, int]:
    """The rows of the page's table: an operation and its rounds."""
    rows = re.findall(r"^\| ([^|]+?) \| (\d+) \|", PAGE.read_text(), re.MULTILINE)
    return {name: int(rounds) for name, rounds in rows}


def measured() -> dict[str, int]:
    """The rounds of one run of each operation."""
    small = RoundsStore()
    forty, parted, warm = RoundsStore(), RoundsStore(), small_table(small)
    Table.create(parted.url, {"id": "long", "n": "long"}, store=parted, partition_by=["id"])
    forty_files(forty, vectors=True)
    rows = pa.table({"id": [1]})
    operations = {
        "open": (small, lambda: Table(small.url, store=small).snapshot()),
        "list the live files": (small, lambda: Table(small.url, store=small).files()),
        "read the newest version again": (small, lambda: warm.snapshot()),
        "read 40 files": (forty, lambda: Table(forty.url, store=forty).to_arrow()),
        "append 40 files": (parted, lambda: Table(parted.url, store=parted).append(rows_of(range(40)))),
        "append, in the same process": (small, lambda: warm.append(rows)),
        "append, first in a process": (small, lambda: Table(small.url, store=small).append(rows)),
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


class OldStore(RoundsStore):
    """A store whose commits were written at the times in the commits of `old_table`, long ago."""

    def _entry(self, meta: Any) -> Entry:
        entry, parsed = super()._entry(meta), parse(meta["path"].removeprefix("table/"))
        if parsed is None or parsed.kind != "commit":
            return entry
        return replace(entry, modified_ms=FIRST_MS + 1000 * parsed.version)


def measured_upkeep() -> dict[str, int]:
    """The rounds of one run of each operation on a whole table."""
    old, folder = OldStore(), RoundsStore()
    old_table(old, VERSIONS)
    of_old = rounds_in_an_old_table(old)
    for number in range(40):
        pq.write_table(rows_of([number]), sink := pa.BufferOutputStream())
        folder.put(f"part-{number}.parquet", sink.getvalue().to_pybytes())
    return {
        "history(1) of 5,000 versions": of_old["history(1)"],
        "time travel in 5,000 versions": of_old["time travel"],
        "VACUUM, dry run, in 5,000 versions": of_old["VACUUM, dry run"],
        "checkpoint of 40 files": change_of(lambda table: table.checkpoint(), vectors=False),
        "CONVERT of 40 files": rounds_of(folder, lambda table: table.convert_to_delta()),
        "CLONE of 40 files": change_of(lambda table: table.clone("memory://sequential-rounds/clone"), vectors=False),
        "VACUUM that deletes 40 files": rounds_of(emptied_table(), lambda table: table.vacuum(0, retention_check=False)),
        "RESTORE of 40 files": rounds_of(emptied_table(), lambda table: table.restore(40)),
        "log cleanup of 40 versions": change_of(clean_up, vectors=False),
    }


def emptied_table() -> RoundsStore:
    """A table whose 40 files were removed by its last commit."""
    store = RoundsStore()
    forty_files(store, vectors=False)
    Table(store.url, store=store).delete("true")
    return store


def rounds_of(store: RoundsStore, run: Callable[[Table], object]) -> int:
    """The rounds of an operation of a table that this process has not opened."""
    with store.counted() as rounds:
        run(Table(store.url, store=store))
    return rounds.now


def rounds_in_an_old_table(store: RoundsStore) -> dict[str, int]:
    """The rounds of operations whose cost must not grow with the age of a table."""
    at = datetime.fromtimestamp((FIRST_MS + 1_234_567) / 1000, UTC)
    return {
        "history(1)": rounds_of(store, lambda table: table.history(1)),
        "time travel": rounds_of(store, lambda table: table.snapshot(timestamp=at)),
        "VACUUM, dry run": rounds_of(store, lambda table: table.vacuum(dry_run=True)),
    }


def clean_up(table: Table) -> None:
    """Clean up the log as if it were ten years old; the newest checkpoint stays."""
    snapshot = table.snapshot()
    clean_up_log(snapshot.store, snapshot.config, snapshot.timestamp_ms + 3650 * 86_400_000)


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
    return rounds_of(store, change)


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


def old_table(store: RoundsStore, versions: int) -> None:
    """A table with in-commit timestamps, a second apart, whose commits after the first add nothing; with a checkpoint near each end."""
    table = Table.create(store.url, {"id": "long"}, store=store, properties={"delta.enableInCommitTimestamps": "true"})
    for version in range(1, versions):
        time_ms = FIRST_MS + 1000 * version
        info = {
            "inCommitTimestamp": time_ms,
            "timestamp": time_ms,
            "operation": "WRITE",
            "operationParameters": {},
            "txnId": f"{version}",
        }
        store.put(f"_delta_log/{version:020d}.json", (json.dumps({"commitInfo": info}) + "\n").encode())
        if version in (1200, versions - 10):
            table.checkpoint()
