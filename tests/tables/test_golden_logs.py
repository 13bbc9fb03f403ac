"""The logs of other writers: their live files are those that deltalake sees, and both read the same from a checkpoint of Tahoe."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tahoe.log.checkpoints.checkpoint_writer import write_checkpoint
from tahoe.log.files.live_files import add_files, remove_files
from tahoe.log.files.paths import LAST_CHECKPOINT
from tahoe.log.replay import LogReader
from tahoe.log.segment import segment_for
from tahoe.protocol.config import TableConfig
from tahoe.store.object_store import open_store
from tests.tables.golden import ABSENT, REFUSED, ROOT

pytestmark = pytest.mark.skipif(not ROOT.is_dir(), reason=ABSENT)

TABLES = sorted(actual.parent for actual in ROOT.rglob("_delta_log")) if ROOT.is_dir() else []
READABLE = [table for table in TABLES if table not in [refusal.path for refusal in REFUSED]]
# Tables whose schema is empty, which deltalake does not open, and those where it takes two spellings of one path for two files.
NOT_FOR_DELTALAKE = {
    "deltalog-commit-info",
    "update-deleted-directory",
    "canonicalized-paths-normal-a",
    "canonicalized-paths-normal-b",
    "canonicalized-paths-special-a",
    "canonicalized-paths-special-b",
}


def _name(table: Path) -> str:
    return str(table.relative_to(ROOT)).removesuffix("/delta").rpartition("/")[2]


@pytest.mark.parametrize("table", READABLE, ids=_name)
def test_live_files_are_those_that_deltalake_sees_and_stay_so_in_our_checkpoint(table: Path, tmp_path: Path) -> None:
    shutil.copytree(table / "_delta_log", tmp_path / "_delta_log", copy_function=shutil.copyfile)
    for path in [tmp_path / "_delta_log", *(tmp_path / "_delta_log").rglob("*")]:
        path.chmod(0o755)
    store = open_store(str(tmp_path))
    segment = segment_for(store)
    state, files, tombstones = (
        LogReader(store, segment).state(),
        LogReader(store, segment).files(),
        LogReader(store, segment).tombstones(),
    )
    theirs = _paths_of_deltalake(table, tmp_path)
    if theirs is not None:
        assert sorted(files.column("path").to_pylist()) == theirs
    if (tmp_path / LAST_CHECKPOINT).exists():
        store.delete(LAST_CHECKPOINT)  # of a table that was written by hand, it may be wrong
    config = TableConfig(state.protocol, state.metadata, store.url)
    properties = replace(
        state.metadata, configuration={**state.metadata.configuration, "delta.checkpoint.writeStatsAsJson": "true"}
    )
    write_checkpoint(store, segment.version, state, files, tombstones, replace(config, metadata=properties), now_ms=0)
    again = segment_for(store)
    assert again.checkpoint is not None and again.tail() == ()
    read = LogReader(store, again).state()
    assert (read.protocol, read.metadata) == (state.protocol, state.metadata)
    assert (read.transactions, read.domains) == (state.transactions, state.domains)
    live = [replace(file, data_change=False) for file in add_files(files)]
    assert sorted(add_files(LogReader(store, again).files()), key=repr) == sorted(live, key=repr)
    remaining = [remove.key for remove in remove_files(LogReader(store, again).tombstones())]
    assert sorted(remaining, key=str) == sorted((remove.key for remove in remove_files(tombstones)), key=str)
    assert _paths_of_deltalake(table, tmp_path) == theirs


def _paths_of_deltalake(table: Path, copy: Path) -> list[str] | None:
    if _name(table) in NOT_FOR_DELTALAKE:
        return None
    return sorted(DeltaTable(str(copy)).get_add_actions().column("path").to_pylist())
