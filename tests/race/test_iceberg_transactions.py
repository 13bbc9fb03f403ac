"""Rows move between two tables in transactions of DuckDB while the server is killed: no row is lost, and none is in both tables."""

from __future__ import annotations

import random
import subprocess
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog

from tahoe.api.several_tables import read_together
from tahoe.api.table import Table
from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.coordinator.sql_coordinator import SqlCoordinator
from tahoe.log.files.commits import read_commit
from tahoe.protocol.actions import CommitInfo
from tests.interop.test_iceberg_rest import TOKEN, attached
from tests.interop.test_iceberg_rest import start as start_server

ROWS_EACH = 4
NAMES = ("here", "there")
SCHEMA = pa.schema([("id", pa.int64())])


@dataclass(slots=True)
class Mover:
    """A client that moves its own rows, one at a time, between the tables.

    Args:
        rows: the place of each row according to answered transactions, 0 or 1; None while an answer is missing.
        moves: the number of answered transactions.
    """

    url: str
    rows: dict[int, int | None]
    dice: random.Random
    moves: int = 0
    failures: int = 0

    def run(self, over: threading.Event) -> None:
        while not over.is_set():
            try:
                with attached(self.url) as duck:
                    while not over.is_set():
                        self._move(duck)
            except duckdb.Error:  # a conflict, or the server is gone: what was committed is read later
                self.failures += 1
                SYSTEM_CLOCK.sleep(0.1 * self.dice.random())

    def _move(self, duck: duckdb.DuckDBPyConnection) -> None:
        for row, place in self.rows.items():
            self.rows[row] = self._read(duck, row, place)
        row = self.dice.choice(list(self.rows))
        source, self.rows[row] = self.rows[row], None
        assert source is not None
        duck.execute(
            f"BEGIN; DELETE FROM ice.bank.{NAMES[source]} WHERE id = {row}; INSERT INTO ice.bank.{NAMES[1 - source]} VALUES ({row}); COMMIT"
        )
        self.rows[row] = 1 - source
        self.moves += 1

    @staticmethod
    def _read(duck: duckdb.DuckDBPyConnection, row: int, expected: int | None) -> int:
        """Return the place of a row. The two tables are not read at one moment, but nobody else moves the row."""
        counts = [duck.execute(f"SELECT count(*) FROM ice.bank.{name} WHERE id = {row}").fetchall()[0][0] for name in NAMES]
        assert sorted(counts) == [0, 1], f"row {row} is {counts[0]} times here and {counts[1]} times there"
        assert expected in (None, counts.index(1)), f"an answered move of row {row} was lost"
        return counts.index(1)


def race(folder: Path, *, movers: int, deaths: int, seed: int = 0) -> None:
    """Move rows until the server was killed so many times, then audit both tables."""
    dice, root, coordinator = random.Random(seed), folder / "warehouse", f"sqlite:///{folder}/coordinator.db"
    (root / "bank").mkdir(parents=True)
    variables = {"TAHOE_WRITE_TOKEN": TOKEN, "TAHOE_COORDINATOR": coordinator}
    server, url = start_server(root, "--writable", **variables)
    catalog = RestCatalog("race", uri=url, token=TOKEN)
    for name in NAMES:
        catalog.create_table(f"bank.{name}", SCHEMA, properties={"delta.feature.catalogManaged": "supported"})
    catalog.load_table("bank.here").append(pa.table({"id": range(movers * ROWS_EACH)}, SCHEMA))
    own = [range(number * ROWS_EACH, (number + 1) * ROWS_EACH) for number in range(movers)]
    all_movers = [Mover(url, dict.fromkeys(rows, 0), random.Random(f"{seed} {rows}")) for rows in own]
    over = threading.Event()
    tables = [Table(root / "bank" / name, coordinator=SqlCoordinator(coordinator)) for name in NAMES]
    with ThreadPoolExecutor(movers + 1) as pool:
        runs: list[Future[None]] = [pool.submit(mover.run, over) for mover in all_movers]
        runs.append(pool.submit(watch, tables, movers * ROWS_EACH, over))
        try:
            for _ in range(deaths):
                moves = sum(mover.moves for mover in all_movers)
                while sum(mover.moves for mover in all_movers) < moves + 2 and not any(run.done() for run in runs):
                    SYSTEM_CLOCK.sleep(0.02)
                SYSTEM_CLOCK.sleep(dice.random() / 2)
                end(server)
                server, _ = start_server(root, "--writable", "--port", str(urlsplit(url).port), **variables)
        finally:
            over.set()
            for run in runs:
                run.result()
            end(server)
    moves, failures = (sum(getattr(mover, name) for mover in all_movers) for name in ("moves", "failures"))
    print(f"\n{moves} moves, {failures} failures, versions {[table.version() for table in tables]}")  # noqa: T201 - `pytest -s` shows it
    audit(tables, all_movers, moves)


def end(server: subprocess.Popen[str]) -> None:
    server.kill()
    server.communicate()


def watch(tables: list[Table], count: int, over: threading.Event) -> None:
    """Read both tables together: each row is in one of them."""
    while not over.is_set():
        snapshots = read_together(*tables)
        ids = [number for each in snapshots for number in each.scan().to_arrow()["id"].to_pylist()]
        assert sorted(ids) == list(range(count)), [each.version for each in snapshots]
        SYSTEM_CLOCK.sleep(0.05)


def audit(tables: list[Table], movers: list[Mover], moves: int) -> None:
    places = [set(table.to_arrow()["id"].to_pylist()) for table in tables]
    assert not places[0] & places[1], "a row is in both tables"
    assert places[0] | places[1] == {row for mover in movers for row in mover.rows}, "a row was lost"
    for mover in movers:
        assert all(place is None or row in places[place] for row, place in mover.rows.items()), "an answered move was lost"
    # The first versions are the creation, and in the first table the append of all rows.
    transactions = [transaction_ids(table, first) for table, first in zip(tables, (2, 1), strict=True)]
    assert transactions[0] == transactions[1], "one table has a commit of a transaction, and the other has not"
    assert len(transactions[0]) >= moves, "an answered move is no transaction"
    assert all(table.check(strict=True) == [] for table in tables)


def transaction_ids(table: Table, first: int) -> list[str | None]:
    commits = (read_commit(table.store, version) for version in range(first, table.version() + 1))
    return [next(action.transaction_id for action in commit if isinstance(action, CommitInfo)) for commit in commits]


@pytest.mark.long
@pytest.mark.timeout(600)
def test_no_row_is_lost_or_doubled_when_the_server_is_killed(tmp_path: Path) -> None:
    race(tmp_path, movers=2, deaths=3)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(2))
def test_no_row_is_lost_or_doubled_by_twenty_deaths_of_the_server(tmp_path: Path, seed: int) -> None:
    race(tmp_path, movers=3, deaths=20, seed=seed)
