"""Indexes that follow their table are found again by their text, whichever of those with one text lives longest."""

from __future__ import annotations

import gc

import pyarrow as pa

from tahoe import Table
from tahoe.spark.scan.file_index import FileIndex


def test_one_that_follows_is_found_as_long_as_any_with_its_text_lives(tmp_path):
    table = Table.create(tmp_path, pa.schema([("id", pa.int64())]))
    first, second = (FileIndex(None, table.snapshot(), time_zone="UTC", follows=table) for _ in range(2))
    text = second.text
    assert FileIndex.of_text(text) is first
    del first
    gc.collect()
    assert FileIndex.of_text(text).shows(table.snapshot())
    fixed = FileIndex(None, table.snapshot(), time_zone="UTC")
    assert FileIndex.of_text(fixed.text).follows is None


def test_the_last_made_may_go_first(tmp_path):
    table = Table.create(tmp_path, pa.schema([("id", pa.int64())]))
    stays = FileIndex(None, table.snapshot(), time_zone="UTC", follows=table)
    FileIndex(None, table.snapshot(), time_zone="UTC", follows=table)
    gc.collect()
    text = stays.text
    assert FileIndex.of_text(text) is stays
