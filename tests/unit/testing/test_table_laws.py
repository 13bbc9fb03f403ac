"""The laws pass for sound tables, and each fails for a table that breaks it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from tahoe import Table
from tahoe.log.files.paths import commit_name
from tahoe.testing.table_laws import (
    after_changes,
    assert_feed_leads_from_version_to_version,
    assert_files_hold_as_many_rows_as_they_say,
    assert_filters_part_the_rows,
    assert_laws,
    assert_nothing_is_wrong,
    assert_row_ids_are_unique,
    conditions_on,
    counted_rows,
    versions_of,
)

SCHEMA = pa.schema([("id", pa.int64()), ("odd`name", pa.string()), ("at", pa.list_(pa.float64()))])
ALL = {"delta.enableChangeDataFeed": "true", "delta.enableRowTracking": "true"}


def rows(*ids: int | None) -> pa.Table:
    texts = [None if number is None else f"it's {number}" for number in ids]
    return pa.table([pa.array(ids), pa.array(texts), pa.array([[float("nan"), 1.0]] * len(ids))], schema=SCHEMA)


@pytest.fixture
def table(memory_url: str) -> Table:
    """Return a table with versions 0 to 3: created, two files of three rows each, and a row deleted by rewriting its file."""
    table = Table.create(memory_url, SCHEMA, properties={**ALL, "delta.enableDeletionVectors": "false"})
    table.append(rows(1, 2, 3))
    table.append(rows(4, 5, None))
    table.delete("id = 5")
    return table


class Faulty(Table):
    """A faulty reader: the rows and the feed pass through functions."""

    read: Callable[[pa.Table, str | None], pa.Table] = staticmethod(lambda rows, filter: rows)
    altered_feed: Callable[[pa.Table], pa.Table] = staticmethod(lambda changes: changes)

    def to_arrow(self, filter: Any = None, *args: Any, **named: Any) -> pa.Table:
        return self.read(super().to_arrow(filter, *args, **named), filter)

    def changes(self, *args: Any, **named: Any) -> pa.Table:
        return self.altered_feed(super().changes(*args, **named))


def faulty(table: Table, **faults: Any) -> Table:
    other = Faulty(table.url, store=table.store)
    other.__dict__.update(faults)
    return other


@pytest.mark.parametrize("vectors", [True, False])
def test_the_laws_pass_for_a_table_with_all_features(memory_url: str, vectors: bool) -> None:
    properties = {**ALL, "delta.enableDeletionVectors": str(vectors).lower(), "delta.columnMapping.mode": "name"}
    table = Table.create(memory_url, SCHEMA, properties=properties)
    table.append(rows(*range(10), None))
    table.update({"id": "id + 100"}, "id % 2 = 0")
    table.delete("id < 4")
    table.checkpoint()
    table.append(rows(7).append_column("more", pa.array([1])), merge_schema=True)
    assert_laws(table)


def test_an_empty_table_breaks_no_law(memory_url: str) -> None:
    assert_laws(Table.create(memory_url, SCHEMA))


@pytest.mark.damages_tables
def test_a_lost_file_is_detected(table: Table) -> None:
    assert_nothing_is_wrong(table)
    (path, *_) = table.files()["path"].to_pylist()
    table.store.delete(path)
    with pytest.raises(AssertionError, match=r"parquet"):
        assert_nothing_is_wrong(table)


def test_a_missing_row_is_reported_with_its_version(table: Table) -> None:
    assert_files_hold_as_many_rows_as_they_say(table, range(4))
    with pytest.raises(AssertionError, match="version 1: 2 rows are read, the log counts 3"):
        assert_files_hold_as_many_rows_as_they_say(faulty(table, read=lambda rows, filter: rows[1:]), [0, 1])


def test_a_feed_that_omits_a_row_is_detected(table: Table) -> None:
    assert_feed_leads_from_version_to_version(table, range(4))
    with pytest.raises(AssertionError, match=r"version 3: the feed leads to 1 rows too many, such as .*it.*s 5"):
        assert_feed_leads_from_version_to_version(faulty(table, altered_feed=lambda changes: changes[1:]), [2, 3])


def test_the_feed_is_checked_only_where_it_exists_and_between_neighbours(memory_url: str) -> None:
    table = Table.create(memory_url, SCHEMA)
    table.append(rows(1))
    table.set_properties({"delta.enableChangeDataFeed": "true"})
    assert_feed_leads_from_version_to_version(table, [0, 1, 2])
    assert_feed_leads_from_version_to_version(table, [0, 2])


def test_a_duplicate_row_id_is_detected(table: Table) -> None:
    assert_row_ids_are_unique(table, range(4))
    add_again = faulty(table, read=lambda rows, filter: pa.concat_tables([rows, rows[:1]]))
    with pytest.raises(AssertionError, match=r"version 2: duplicate or missing row ids: \[\d\]"):
        assert_row_ids_are_unique(add_again, [2])


def test_a_table_without_row_tracking_has_no_row_ids_to_check(memory_url: str) -> None:
    assert_row_ids_are_unique(Table.create(memory_url, SCHEMA), [0])


def test_a_row_that_a_filter_misses_is_reported_with_the_filter(table: Table) -> None:
    assert_filters_part_the_rows(table, ["id = 3", "id + 1 > 2"])
    skips_wrongly = faulty(table, read=lambda rows, filter: rows[:0] if filter == "id = 3" else rows)
    assert_filters_part_the_rows(skips_wrongly, ["id = 1"])
    with pytest.raises(AssertionError, match="filtered by id = 3: 1 rows missing"):
        assert_filters_part_the_rows(skips_wrongly, ["id = 1", "id = 3"])


def test_conditions_are_on_plain_columns_and_quote_unusual_names(table: Table) -> None:
    conditions = conditions_on(table)
    assert conditions[:3] == ["`id` is null", "`id` < 3", "`id` = 3"]
    assert conditions[3:] == ["`odd``name` is null", "`odd``name` < 'it\\'s 3'", "`odd``name` = 'it\\'s 3'"]


def test_versions_start_at_the_first_readable_version(table: Table) -> None:
    assert versions_of(table) == [0, 1, 2, 3]
    table.checkpoint()
    table.append(rows(8))
    table.store.delete(commit_name(0))
    assert versions_of(Table(table.url, store=table.store)) == [3, 4]


def test_deleting_a_missing_row_counts_below_zero() -> None:
    before = counted_rows(pa.table({"id": [1, 1, 2]}))
    kinds = ["delete", "update_preimage", "update_postimage", "insert", "delete"]
    changes = pa.table(
        {"id": [1, 2, 5, 9, 7], "_change_type": kinds, "_commit_version": [1] * 5, "_commit_timestamp": [None] * 5}
    )
    assert after_changes(before, changes) == Counter({"(1,)": 1, "(5,)": 1, "(9,)": 1, "(7,)": -1})


def test_rows_that_cannot_be_hashed_are_counted_and_nan_equals_itself() -> None:
    assert counted_rows(rows(1, 1)) == {repr((1, "it's 1", [float("nan"), 1.0])): 2}
