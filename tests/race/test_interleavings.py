"""Writers on faulty stores, in orders that seeds decide: nothing acknowledged is lost, nothing is there twice.

A failing run prints its seed; ``TAHOE_RACE_SEED=<seed>`` runs that one alone, ``TAHOE_RACE_RUNS=<n>`` runs n of them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import pytest

from tahoe.api.table import Table
from tahoe.base.clock import SeededClock
from tahoe.base.exceptions import CommitStateUnknown, DeltaConcurrentModificationException, StorageFailure
from tahoe.expr.row_condition import row_condition
from tahoe.ops.rows.insert import WriteOptions, stage_write
from tahoe.store.log_store import LogStore
from tahoe.store.object_store import open_store
from tahoe.testing.faulty_store import Faults, FaultyStore
from tahoe.testing.interleaving import Interleaver, SteppedStore
from tahoe.txn.commit import RetryPolicy
from tests.race.operations import SCHEMA, contents, rows
from tests.sampling import sampled

RUNS = int(os.environ.get("TAHOE_RACE_RUNS", "40"))
SEEDS = [int(os.environ["TAHOE_RACE_SEED"])] if "TAHOE_RACE_SEED" in os.environ else list(range(RUNS))
NOW_MS = time.time_ns() // 1_000_000  # the stores' own times are of today, and cleaning the log compares them with the clock
WRITERS, STEPS = 3, 4
FAULTS = Faults(
    answer_lost=0.1,
    answered_taken=0.05,
    request_lost=0.1,
    in_flight=0.05,
    refused=0.05,
    read_failed=0.02,
    write_failed=0.02,
    listed_late=0.1,
)


@dataclass
class Writer:
    """Appends to its own partition, replaces it, sets properties, and adds one to a counter that all writers share.

    It knows the expected rows of its partition. Every error counts as documented: a conflict or `StorageFailure` means that
    nothing was written; after `CommitStateUnknown`, `resolve()` decides.
    """

    number: int
    table: Table
    chance: SeededClock
    ids: set[int] = field(default_factory=set)
    increments: int = 0
    log: list[str] = field(default_factory=list)

    @property
    def part(self) -> str:
        return f"writer-{self.number}"

    def work(self) -> None:
        for step in range(STEPS):
            new_id = self.number * 1000 + step
            draw = self.chance.random()
            if draw < 0.4:
                self._until_done(f"append {new_id}", partial(self.table.append, rows(self.part, new_id)))
                self.ids.add(new_id)
            elif draw < 0.6:
                replace = partial(self.table.overwrite, rows(self.part, new_id), replace_where=f"part = '{self.part}'")
                self._until_done(f"replace by {new_id}", replace)
                self.ids = {new_id}
            elif draw < 0.9:
                self._until_done("increment", self._increment)
                self.increments += 1
            else:
                self._until_done("set a property", partial(self.table.set_properties, {self.part: str(step)}))

    def _increment(self) -> int:
        """Read the counter and write it one higher, in one transaction: an increment that is not serialised gets lost."""
        transaction = self.table.begin()
        assert transaction.snapshot is not None
        here = "part = 'counter'"
        counter = transaction.snapshot.scan(row_condition(here, transaction.snapshot.schema).predicate).to_arrow()
        (value,) = counter["id"].to_pylist()
        operation = stage_write(transaction, rows("counter", value + 1), WriteOptions("overwrite", replace_where=here))
        return self.table.commit(transaction, operation).version

    def _until_done(self, what: str, run: Callable[[], int]) -> None:
        for _ in range(200):
            try:
                self.log.append(f"{what}: version {run()}")
                return
            except CommitStateUnknown as unknown:
                self.log.append(f"{what}: {unknown.code}")
                if self._resolved(unknown):
                    return
            except (DeltaConcurrentModificationException, StorageFailure) as error:
                self.log.append(f"{what}: {error.code}")
        raise AssertionError(f"{what} did not succeed in 200 tries: {self.log}")

    def _resolved(self, unknown: CommitStateUnknown) -> bool:
        while True:
            try:
                return unknown.resolve()
            except StorageFailure:
                continue


def simulate(seed: int, inner: LogStore) -> tuple[list[Writer], Interleaver]:
    table = Table.create(inner.url, SCHEMA, partition_by=["part"], properties={"delta.checkpointInterval": "3"}, store=inner)
    table.append(rows("counter", 0))
    interleaver = Interleaver(seed)
    writers = []
    for number in range(WRITERS):
        store = FaultyStore(inner, FAULTS, seed=seed * 100 + number)
        clock = SeededClock(seed * 100 + 10 + number, start_ms=NOW_MS)
        faulty = Table(inner.url, store=SteppedStore(store, interleaver), clock=clock, policy=RetryPolicy(storage_attempts=4))
        writers.append(Writer(number, faulty, SeededClock(seed * 100 + 20 + number)))
    interleaver.run([writer.work for writer in writers])
    return writers, interleaver


@pytest.mark.parametrize("seed", sampled(SEEDS, 2))
def test_no_row_is_lost_or_doubled(seed: int, memory_url: str) -> None:
    inner = open_store(memory_url)
    writers, _ = simulate(seed, inner)
    log = f"seed {seed}\n" + "\n".join(f"{writer.part}: {line}" for writer in writers for line in writer.log)
    table = Table(inner.url, store=inner)
    expected = [(writer.part, new_id) for writer in writers for new_id in writer.ids]
    assert contents(table) == sorted([*expected, ("counter", sum(writer.increments for writer in writers))]), log
    assert [str(violation) for violation in table.check()] == [], log
    acknowledged = sorted(int(line.rpartition(" ")[2]) for writer in writers for line in writer.log if ": version " in line)
    assert len(acknowledged) == len(set(acknowledged)), log
    assert set(acknowledged) <= set(range(1, table.version() + 1)), log


def test_a_seed_gives_the_same_run_again(memory_url: str) -> None:
    runs = [simulate(SEEDS[0], open_store(f"{memory_url}-{run}")) for run in range(2)]
    assert runs[0][1].turns == runs[1][1].turns
    assert [writer.log for writer in runs[0][0]] == [writer.log for writer in runs[1][0]]
