"""Money moves between two tables from many processes that are killed: at every pair of versions that can be seen, none is lost or made."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tahoe.api.several_tables import read_together
from tahoe.api.table import Table
from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.coordinator.sql_coordinator import SqlCoordinator
from tahoe.log.files.commits import read_commit
from tahoe.protocol.actions import CommitInfo
from tests.postgresql import postgresql_server
from tests.race.processes import start, started, wait_until_ready

ACCOUNTS, BALANCE = 8, 1_000
TOTAL = 2 * ACCOUNTS * BALANCE
SCHEMA = pa.schema([("account", pa.int64()), ("balance", pa.int64())])
PROPERTIES = {"delta.feature.catalogManaged": "supported", "delta.enableDeletionVectors": "true"}


@pytest.fixture(scope="module")
def postgresql() -> Iterator[str]:
    with postgresql_server() as url:
        yield url


def race(folder: Path, url: str, *, payers: int, deaths: int, transfers: int, seed: int = 0) -> None:
    """About so many transfers by payers of whom so many are killed on the way, and replaced; and the audit."""
    chance, coordinator = random.Random(seed), SqlCoordinator(url)
    paths = [str(folder / "here"), str(folder / "there")]
    tables = [Table.create(path, SCHEMA, properties=PROPERTIES, coordinator=coordinator) for path in paths]
    for table in tables:
        table.append(pa.table({"account": range(ACCOUNTS), "balance": [BALANCE] * ACCOUNTS}, SCHEMA), max_rows_per_file=2)
    task = {"paths": paths, "coordinator": url, "accounts": ACCOUNTS, "transfers": 1_000_000}
    said: list[str] = []
    over = threading.Event()
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(payers + deaths + 1) as pool:
        stack.callback(over.set)  # also where something here fails
        all_payers = [stack.enter_context(started("tests.race.payer", {**task, "seed": n})) for n in range(payers + deaths)]
        for payer in all_payers:
            wait_until_ready(payer)
        seen = pool.submit(watch, [Table(path, coordinator=coordinator) for path in paths], over)
        ended = []
        for payer in all_payers[:payers]:
            start(payer)
            ended.append(pool.submit(payer.communicate))
        killed_at = sorted(chance.sample(range(2, transfers), deaths))
        for number, version in enumerate(killed_at):
            wait_for_version(coordinator, tables[0], version)
            SYSTEM_CLOCK.sleep(chance.random() / 4)
            all_payers[number].kill()
            start(all_payers[payers + number])
            ended.append(pool.submit(all_payers[payers + number].communicate))
        wait_for_version(coordinator, tables[0], transfers)
        for payer in all_payers[deaths:]:
            payer.kill()
        for item in ended:
            stdout, stderr = item.result()
            assert stderr == ""
            said += [line for line in stdout.splitlines(keepends=True) if line.endswith("\n")]
        over.set()
        pairs = seen.result()
    audit(tables, [tuple(map(int, line.split())) for line in said], pairs)


def wait_for_version(coordinator: SqlCoordinator, table: Table, version: int) -> None:
    while (coordinator.managed([table.url])[table.url].last_version or 0) < version:
        SYSTEM_CLOCK.sleep(0.02)


def watch(tables: list[Table], over: threading.Event) -> set[tuple[int, int]]:
    """The pairs of versions that a reader has seen; in each, the total is complete."""
    seen: set[tuple[int, int]] = set()
    while not over.is_set():
        here, there = read_together(*tables)
        assert money(here.scan().to_arrow()) + money(there.scan().to_arrow()) == TOTAL, (here, there)
        seen.add((here.version, there.version))
    return seen


def audit(tables: list[Table], acknowledged: list[tuple[int, ...]], seen: set[tuple[int, int]]) -> None:
    last = [snapshot.version for snapshot in read_together(*tables)]
    transactions = [{transaction_id(table, version): version for version in range(2, table.version() + 1)} for table in tables]
    assert list(transactions[0]) == list(transactions[1]), "one table has a commit of a transaction, and the other has not"
    pairs = [(1, 1), *zip(transactions[0].values(), transactions[1].values(), strict=True)]
    print(f"\n{len(pairs)} pairs of versions, {len(acknowledged)} acknowledged, {len(seen)} seen by a reader meanwhile")  # noqa: T201
    assert pairs[-1] == tuple(last)
    assert set(acknowledged) <= set(pairs) and seen <= set(pairs)
    assert len(acknowledged) > len(pairs) / 2 and len(seen) > 3, "hardly anything happened: this tests nothing"
    for here, there in pairs:
        assert money(tables[0].to_arrow(version=here)) + money(tables[1].to_arrow(version=there)) == TOTAL, (here, there)
    for table in tables:
        assert table.check(strict=True) == []
        assert table.append(pa.table({"account": [ACCOUNTS], "balance": [0]}, SCHEMA)) == table.version(), (
            "the next writer goes on"
        )


def transaction_id(table: Table, version: int) -> str | None:
    return next(action.transaction_id for action in read_commit(table.store, version) if isinstance(action, CommitInfo))


def money(rows: pa.Table) -> int:
    total: int = pc.sum(rows["balance"]).as_py()
    return total


@pytest.mark.long
def test_no_money_is_lost_between_two_tables_whoever_is_killed(tmp_path: Path) -> None:
    """Starting processes and auditing each pair take the time. `make soak` has eight payers, and kills a hundred of them."""
    race(tmp_path, f"sqlite:///{tmp_path}/coordinator.db", payers=2, deaths=2, transfers=12)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_no_money_is_lost_by_a_hundred_deaths_among_eight(tmp_path: Path) -> None:
    for seed in range(5):
        race(tmp_path / str(seed), f"sqlite:///{tmp_path}/coordinator.db", payers=8, deaths=20, transfers=400, seed=seed)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_no_money_is_lost_by_a_hundred_deaths_among_eight_over_postgresql(tmp_path: Path, postgresql: str) -> None:
    for seed in range(5):
        race(tmp_path / str(seed), postgresql, payers=8, deaths=20, transfers=400, seed=seed)
