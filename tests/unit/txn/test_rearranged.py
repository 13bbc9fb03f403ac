"""Operations that conflict with a commit that only rearranged rows are retried automatically."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.exceptions import ConcurrentDeleteReadException, DeltaConcurrentModificationException
from tahoe.store.log_store import LogStore
from tahoe.store.object_store import open_store
from tahoe.testing.faulty_store import Answer, WrappedStore
from tahoe.txn.rearranged import retry_if_rearranged


class Overtaken(WrappedStore):
    """Runs another operation just before each commit is sent, a number of times."""

    def __init__(self, inner: LogStore, other: Callable[[], object], times: int = 1) -> None:
        super().__init__(inner)
        self.other, self.times = other, times

    def _call(self, method: str, name: str, run: Callable[[], Answer]) -> Answer:
        if method == "put_if_absent" and self.times:
            self.times -= 1
            self.other()
        return run()


ROWS = {"id": range(6), "v": [0] * 6}
OPERATIONS: dict[str, Callable[[Table], object]] = {
    "delete": lambda table: table.delete("id = 3"),
    "update": lambda table: table.update({"v": "1"}, "id = 3"),
    "merge": lambda table: (
        table.merge(pa.table({"id": [3], "v": [1]}), "target.id = source.id").when_matched_update_all().execute()
    ),
}


@pytest.fixture(params=["true", "false"])
def store(request: pytest.FixtureRequest) -> LogStore:
    store = open_store(f"memory://{SYSTEM_CLOCK.uuid()}/table")
    properties = {"delta.enableDeletionVectors": request.param}
    table = Table.create(store.url, pa.table(ROWS).schema, properties=properties, store=store)
    table.append(pa.table(ROWS).slice(0, 4))
    table.append(pa.table(ROWS).slice(4))
    return store


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_concurrent_optimize_makes_no_difference(store: LogStore, name: str) -> None:
    concurrent = Table(store.url, store=store)
    OPERATIONS[name](Table(store.url, store=Overtaken(store, concurrent.optimize)))
    values = dict(zip(*(concurrent.to_arrow()[column].to_pylist() for column in ("id", "v")), strict=True))
    expected = dict.fromkeys(range(6), 0)
    if name == "delete":
        del expected[3]
    else:
        expected[3] = 1
    assert values == expected
    assert [commit["operation"] for commit in concurrent.history(2)] == [name.upper(), "OPTIMIZE"]
    assert concurrent.check(deep=True) == []


def test_a_change_of_the_same_row_meanwhile_is_still_a_conflict(store: LogStore) -> None:
    concurrent = Table(store.url, store=store)
    with pytest.raises(DeltaConcurrentModificationException):
        Table(store.url, store=Overtaken(store, lambda: concurrent.update({"v": "5"}, "id = 3"))).delete("id = 3")


def test_rows_that_can_be_read_once_are_not_merged_twice(store: LogStore) -> None:
    table = Table(store.url, store=Overtaken(store, Table(store.url, store=store).optimize))
    source = pa.table({"id": [3], "v": [1]}).to_reader()
    with pytest.raises(ConcurrentDeleteReadException):
        table.merge(source, "target.id = source.id").when_matched_update_all().execute()


def test_repeated_conflicts_are_reported() -> None:
    runs = []

    def run() -> None:
        runs.append(1)
        raise ConcurrentDeleteReadException("lost", only_rearranged=True)

    with pytest.raises(ConcurrentDeleteReadException):
        retry_if_rearranged(run)
    assert len(runs) == 100
