"""A process that moves money between the accounts of two tables until it is killed: ``python -m tests.race.payer``.

The first line of its input is JSON: ``paths`` of both tables, ``coordinator`` (a URL), ``accounts`` in each, ``seed``, and ``transfers``: so
many it makes at most. It writes ``ready``, waits for a line, and writes the versions of each acknowledged transfer.
"""

from __future__ import annotations

import json
import random
import sys

import pyarrow as pa

from tahoe.api.several_tables import TablesInTransaction, transaction
from tahoe.api.table import Table
from tahoe.base.exceptions import DeltaConcurrentModificationException
from tahoe.coordinator.sql_coordinator import SqlCoordinator


def main() -> None:
    task = json.loads(sys.stdin.readline())
    coordinator = SqlCoordinator(task["coordinator"])
    tables = [Table(path, coordinator=coordinator) for path in task["paths"]]
    chance = random.Random(task["seed"])
    for table in tables:
        table.to_arrow()  # late imports happen now
    say("ready")
    sys.stdin.readline()
    for _ in range(task["transfers"]):
        say(" ".join(map(str, transferred(tables, task["accounts"], chance))))


def transferred(tables: list[Table], accounts: int, chance: random.Random) -> list[int]:
    """The versions of one transfer, retried until it is committed."""
    payer, payee = chance.sample(tables, 2)
    amount, changes = chance.randint(1, 50), chance.choice([by_update, by_reading])
    while True:
        try:
            with transaction(payer, payee) as both:
                changes(both, payer, chance.randrange(accounts), -amount)
                changes(both, payee, chance.randrange(accounts), amount)
        except DeltaConcurrentModificationException:
            continue
        return [both.versions[table.url] for table in tables]


def by_update(both: TablesInTransaction, table: Table, account: int, amount: int) -> None:
    both[table].update({"balance": f"balance + {amount}"}, f"account = {account}")


def by_reading(both: TablesInTransaction, table: Table, account: int, amount: int) -> None:
    """Compute the new balance from the rows read: right only if none of them changes concurrently."""
    balance = both[table].to_arrow(f"account = {account}")["balance"][0].as_py()
    new = pa.table({"account": [account], "balance": [balance + amount]})
    both[table].merge(new, "target.account = source.account").when_matched_update_all().execute()


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
