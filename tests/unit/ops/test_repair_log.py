"""REPAIR of checkpoints and checksums: after any loss, the table has the same state, and `check` finds nothing."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.exceptions import CorruptTable
from tahoe.log.checksum import read_checksum
from tahoe.log.files.last_checkpoint import read_last_checkpoint
from tahoe.log.files.paths import LAST_CHECKPOINT, SIDECAR_FOLDER, checkpoint_name, checksum_name
from tahoe.log.segment import checkpoints_in

pytestmark = pytest.mark.damages_tables

ROWS = pa.table({"id": [1, 2, 3]})


def made(url: str, policy: str, commits: int = 4) -> Table:
    properties = {"delta.checkpointPolicy": policy, "delta.checkpointInterval": "2"}
    table = Table.create(url, ROWS.schema, properties=properties)
    for _ in range(commits):
        table.append(ROWS)
    return table


def damage(table: Table, name: str) -> None:
    """A byte of a text, or of a Parquet footer."""
    body = bytearray(table.store.get(name))
    body[-30] ^= 0xFF
    table.store.put(name, bytes(body))


def checkpoints(table: Table, version: int) -> list[str]:
    return [name for c in checkpoints_in(table.store.list_from("_delta_log")).get(version, ()) for name in c.names]


@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_a_damaged_checkpoint_checksum_and_hint_are_reported_and_made_again(memory_url: str, policy: str) -> None:
    table = made(memory_url, policy)
    (checkpoint,) = checkpoints(table, 4)
    for name in (checkpoint, checksum_name(4), LAST_CHECKPOINT):
        damage(table, name)
    reported = Table(memory_url).repair_log(dry_run=True)
    assert (reported.version, reported.dry_run, len(reported.findings)) == (4, True, 3)
    assert all(any(name in finding for finding in reported.findings) for name in (checkpoint, checksum_name(4), LAST_CHECKPOINT))
    assert reported.deleted == ((checkpoint,) if policy == "v2" else ()) and "would be rewritten" in str(reported)
    assert len(Table(memory_url).repair_log(dry_run=True).findings) == 3, "a dry run does nothing"
    done = Table(memory_url).repair_log()
    assert (done.findings, done.deleted, "were rewritten" in str(done)) == (reported.findings, reported.deleted, True)
    assert Table(memory_url).repair_log(dry_run=True).findings == ()
    assert Table(memory_url).check() == [] and Table(memory_url).to_arrow().num_rows == 12
    hint = read_last_checkpoint(table.store)
    assert hint is not None and hint.version == 4 and len(checkpoints(table, 4)) == 1


def test_a_sidecar_that_several_checkpoints_share_is_relied_on_no_more(memory_url: str) -> None:
    table = made(memory_url, "v2", commits=2)
    (shared,) = (entry.name for entry in table.store.list_from(SIDECAR_FOLDER))
    damage(table, shared)
    done = table.repair_log()
    assert shared.rpartition("/")[2] in done.findings[0]
    table.append(ROWS)
    table.append(ROWS)
    assert Table(memory_url).repair_log(dry_run=True).findings == ()
    assert Table(memory_url).to_arrow().num_rows == 12


def test_a_checksum_that_is_gone_and_a_checkpoint_that_never_was_are_made(memory_url: str) -> None:
    table = made(memory_url, "classic", commits=1)
    table.store.delete(checksum_name(1))
    assert "has no checksum" in table.repair_log(dry_run=True).findings[0]
    assert table.store.head(checkpoint_name(1)) is None
    table.repair_log()
    assert table.store.head(checkpoint_name(1)) and table.store.head(checksum_name(1))
    assert Table(memory_url).check() == []


def test_a_damaged_checkpoint_of_an_older_version_is_reported_and_stays(memory_url: str) -> None:
    table = made(memory_url, "classic")
    damage(table, checkpoint_name(2))
    done = table.repair_log()
    assert checkpoint_name(2) in done.findings[0] and done.deleted == () and table.store.head(checkpoint_name(2))


def test_a_log_that_contradicts_itself_is_not_guessed_at(memory_url: str) -> None:
    table = made(memory_url, "classic", commits=2)
    table.store.delete(checkpoint_name(2))
    damage(table, f"_delta_log/{1:020d}.json")
    with pytest.raises(CorruptTable, match=r"00000000000000000001\.json"):
        Table(memory_url).repair_log()
    assert table.store.head(checkpoint_name(2)) is None


def test_the_rewritten_checksum_keeps_the_timestamp_of_its_commit(tmp_path: Path) -> None:
    properties = {"delta.enableInCommitTimestamps": "true", "delta.checkpointInterval": "3"}
    table = Table.create(tmp_path / "t", pa.schema([("id", pa.int64())]), properties=properties)
    for number in range(3):
        table.append(pa.table({"id": [number]}))
    before = read_checksum(table.store, 3)
    Table(tmp_path / "t").repair_log()
    after = read_checksum(table.store, 3)
    assert before is not None and after is not None
    assert (after.in_commit_timestamp, after.transaction_id) == (before.in_commit_timestamp, before.transaction_id)
    assert after.in_commit_timestamp is not None and table.check(strict=True) == []
