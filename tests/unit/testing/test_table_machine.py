"""The machine passes for Tahoe (`tests/model` runs it at length), and fails if a table differs from the model."""

from __future__ import annotations

from typing import ClassVar

import pytest

from tahoe import Table
from tahoe.store.log_store import LogStore
from tahoe.store.object_store import open_store
from tahoe.testing.row_model import Rows, arrow
from tahoe.testing.table_machine import TableMachine, run_histories

STORES: list[LogStore] = []


class OfMine(TableMachine):
    properties: ClassVar = {"delta.dataSkippingNumIndexedCols": "1"}

    def new_store(self) -> LogStore:
        STORES.append(super().new_store())
        return STORES[-1]


def test_tables_use_the_subclass_s_store_and_properties() -> None:
    STORES.clear()
    run_histories(OfMine, [1], steps=3)
    assert STORES
    tables = [Table(store.url, store=store) for store in STORES]
    assert all(table.snapshot().metadata.configuration["delta.dataSkippingNumIndexedCols"] == "1" for table in tables)


def test_a_seed_gives_the_same_history_again() -> None:
    def history() -> list[bytes]:
        STORES.clear()
        run_histories(OfMine, [4], steps=3)
        return [STORES[-1].get(entry.name) for entry in STORES[-1].list_from("_delta_log") if entry.name.endswith(".json")]

    assert history() == history()


def begun(*, mapped: str = "name", compacts: bool = False, converted: Rows | None = None) -> TableMachine:
    machine = TableMachine()
    machine.begin(vectors=True, feed=True, tracking=True, mapped=mapped, partitioned=True, compacts=compacts, converted=converted)
    return machine


def test_a_table_that_differs_from_the_model_fails() -> None:
    machine = begun()
    machine.append([(1, "a", 1)], None)
    machine.the_newest_rows_are_those_of_the_model()
    machine.versions[-1].append((2, "a", 2))
    machine.looked_at = -1
    with pytest.raises(AssertionError):
        machine.the_newest_rows_are_those_of_the_model()
    with pytest.raises(AssertionError):
        machine.teardown()


def test_a_write_unknown_to_the_model_fails() -> None:
    machine = begun()
    machine.session().append(arrow([(1, "a", 1)]))
    with pytest.raises(AssertionError):
        machine.the_newest_rows_are_those_of_the_model()


def test_rows_that_violate_the_constraint_must_be_refused() -> None:
    machine = begun()
    machine.constraint(on=True)
    machine.append([(1, "a", 99)], None)
    assert machine.rows == []
    machine.constraint(on=False)
    machine.append([(1, "a", 99)], None)
    assert machine.rows == [(1, "a", 99)]


def test_auto_compaction_makes_a_model_version_only_if_it_is_on() -> None:
    for is_on in (True, False):
        machine = begun(compacts=is_on)
        for key in range(2):
            machine.append([(key, "a", 1)], None)
        operations = [entry["operation"] for entry in machine.table.history()]
        assert operations.count("OPTIMIZE") == is_on
        assert len(machine.versions) == len(operations) == 3 + is_on
        machine.the_newest_rows_are_those_of_the_model()
        machine.teardown()


def test_a_history_may_begin_with_another_program_s_files() -> None:
    rows: Rows = [(1, "a", 1), (None, None, 2), (3, "a", None)]
    machine = begun(mapped="none", converted=rows)
    assert machine.table.history()[0]["operation"] == "CONVERT"
    machine.delete(None)
    machine.append([(7, "b", 7)], None)
    machine.the_newest_rows_are_those_of_the_model()
    machine.convert()
    machine.teardown()


def test_the_machine_s_default_store_is_a_new_one_in_memory() -> None:
    first, second = TableMachine().new_store(), TableMachine().new_store()
    assert first.url.startswith("memory://") and first.url != second.url
    assert open_store(first.url).url == first.url
