"""The check of tables that tests write finds them, and reports their violations."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import tahoe
from tests.written_tables import broken_rules, tables_in_memory, tables_of_tahoe

pytestmark = pytest.mark.damages_tables


def test_tables_whose_every_commit_tahoe_wrote_are_looked_at_and_no_others(tmp_path: Path) -> None:
    for name in ("ours", "below/ours", "theirs"):
        table = tahoe.Table(str(tmp_path / name))
        table.append(pa.table({"id": [1]}))
    (tmp_path / "theirs" / "_delta_log" / f"{1:020d}.json").write_text('{"commitInfo":{"engineInfo":"Another/1"}}\n')
    assert [store.url for store in tables_of_tahoe(tmp_path)] == [f"file://{tmp_path}/{name}" for name in ("below/ours", "ours")]
    assert list(broken_rules(tables_of_tahoe(tmp_path), set())) == []


def test_faults_of_a_table_are_reported_unless_they_are_known(tmp_path: Path) -> None:
    tahoe.Table(str(tmp_path / "t")).append(pa.table({"id": [1]}))
    next((tmp_path / "t").glob("*.parquet")).unlink()
    (reported,) = broken_rules(tables_of_tahoe(tmp_path), set())
    assert "Data Files: live-files-are-there" in reported
    assert list(broken_rules(tables_of_tahoe(tmp_path), {"live-files-are-there"})) == []


def test_tables_in_memory_are_looked_at_too(memory_url: str) -> None:
    tahoe.Table(memory_url).append(pa.table({"id": [1]}))
    name = memory_url.removeprefix("memory://").partition("/")[0]
    assert [store.url for store in tables_in_memory([name])] == [memory_url]
