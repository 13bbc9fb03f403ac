"""A process that moves money between the accounts of one table, or rewrites its files: ``python -m tests.race.teller``.

The first line of its input is JSON: ``path``, ``options``, ``kind`` (``transfer``, ``pay``, ``rewrite``, ``compact`` or ``cluster``),
``seed``, ``accounts``, and ``commits``: the number of commits, each retried until it succeeds. With the kinds ``compact`` and ``cluster``
it optimizes without a pause until the file ``over`` exists. After ``enough`` runs it creates a file named after its kind, for which ``pay``
waits while it makes more payments. It prints ``ready``, waits for a line, and then prints JSON for each acknowledged commit: its version,
its kind, the number of concurrent commits that it was rebased past, the number of those that share a file with it, and its attempts, as far
as its kind counts them.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa

from tahoe.api.table import Table
from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.exceptions import DeltaConcurrentModificationException
from tahoe.expr.row_condition import row_condition
from tahoe.log.replay import add_files
from tahoe.ops.layout.optimize_report import Optimized
from tahoe.ops.merge.clauses import MergeBuilder
from tahoe.ops.merge.merge import stage_merge
from tahoe.ops.rows.insert import WriteOptions, stage_write
from tahoe.ops.rows.row_changes import FileChange, bitmap, live_rows, remaining_rows, remove_files, snapshot_to_change, write_rows
from tahoe.ops.rows.update import stage_update
from tahoe.protocol.actions import AddFile, RemoveFile
from tahoe.txn.commit import Committed
from tahoe.txn.transaction import Operation, Transaction

SCHEMA = pa.schema([("account", pa.int64()), ("branch", pa.string()), ("balance", pa.int64())])
_FILES_REWRITTEN = 16
_LONGEST_PAUSE = 0.3
"""Seconds before a rewrite."""
_MOST_TIMES = 25
"""Who has made so many times the payments that were asked for waits for nobody any more."""

Transfer = Callable[..., Operation | None]
"""Of table, transaction, payer, payee and amount."""


def by_update(table: Table, transaction: Transaction, payer: int, payee: int, amount: int) -> Operation | None:
    new = f"CASE WHEN account = {payer} THEN balance - {amount} ELSE balance + {amount} END"
    return stage_update(transaction, {"balance": new}, f"account in ({payer}, {payee})").operation


def by_merge(table: Table, transaction: Transaction, payer: int, payee: int, amount: int) -> Operation | None:
    moved = pa.table({"account": [payer, payee], "amount": [-amount, amount]})
    merge: MergeBuilder = table.merge(moved, "target.account = source.account")
    merge = merge.when_matched_update({"balance": "target.balance + source.amount"})
    return stage_merge(transaction, merge.statement).operation


def by_delete_and_insert(table: Table, transaction: Transaction, payer: int, payee: int, amount: int) -> Operation | None:
    """The rows of both accounts go, and new ones come, in one commit."""
    snapshot = transaction.snapshot
    assert snapshot is not None
    where = f"account in ({payer}, {payee})"
    rows = snapshot.scan(row_condition(where, snapshot.schema).predicate).to_arrow().to_pylist()
    for row in rows:
        row["balance"] += amount if row["account"] == payee else -amount
    return stage_write(transaction, pa.Table.from_pylist(rows, SCHEMA), WriteOptions("overwrite", replace_where=where))


TRANSFERS: tuple[Transfer, ...] = (by_update, by_merge, by_delete_and_insert)


def stage_rewrite(transaction: Transaction, chance: random.Random) -> Operation | None:
    """Some files become one without deletion vectors; their living rows stay as they are."""
    snapshot = snapshot_to_change(transaction)
    files = add_files(snapshot.files())
    adds = chance.sample(files, min(len(files), _FILES_REWRITTEN))
    nothing = bitmap(pa.nulls(0, pa.int64()))
    remove_files(transaction, adds)
    write_rows(
        transaction, snapshot.config, remaining_rows(snapshot, [FileChange(a, live_rows(snapshot, a), nothing) for a in adds])
    )
    transaction.staged = [
        replace(action, data_change=False) if isinstance(action, (AddFile, RemoveFile)) else action
        for action in transaction.staged
    ]
    return Operation("OPTIMIZE", {"predicate": "[]"})


def main() -> None:
    task = json.loads(sys.stdin.readline())
    table = Table(task["path"], storage_options=task["options"])
    chance = random.Random(task["seed"])
    say("ready")
    sys.stdin.readline()
    if task["kind"] in OPTIMIZES:
        optimize_until(table, task["kind"], task["over"], task["enough"])
        return
    if task["kind"] == "pay":
        pay_until(table, chance, task)
        return
    for _ in range(task["commits"]):
        if task["kind"] == "rewrite":
            SYSTEM_CLOCK.sleep(chance.random() * _LONGEST_PAUSE)
            repeat(table, "rewrite", lambda transaction: stage_rewrite(transaction, chance))
        else:
            transfer = chance.choice(TRANSFERS)
            payer, payee = chance.sample(range(task["accounts"]), 2)
            move = partial(transfer, payer=payer, payee=payee, amount=chance.randrange(1, 100))
            repeat(table, transfer.__name__, partial(move, table))


OPTIMIZES: dict[str, Callable[[Table], Optimized]] = {
    "compact": lambda table: table.optimize(),
    "cluster": lambda table: table.optimize(zorder_by=["branch", "account"], target_file_size=2000),
}


def optimize_until(table: Table, kind: str, over: str, enough: int) -> None:
    """Optimize repeatedly, and count conflicts; create a file after `enough` runs."""
    done = 0
    while not os.path.exists(over):
        try:
            version = OPTIMIZES[kind](table).version
        except DeltaConcurrentModificationException:
            say(json.dumps({"version": None, "kind": kind}))
            continue
        if version is not None:
            say(json.dumps({"version": version, "kind": kind}))
            done += 1
            if done == enough:
                Path(f"{over}-{kind}").touch()


def pay_until(table: Table, chance: random.Random, task: dict[str, Any]) -> None:
    """Make that many payments, and more until the optimizing processes have run as often as requested: the conflicts with them are tested."""
    for number in range(_MOST_TIMES * task["commits"]):
        if number >= task["commits"] and all(os.path.exists(f"{task['over']}-{kind}") for kind in OPTIMIZES):
            return
        payer, payee = chance.sample(range(task["accounts"]), 2)
        pay(table, chance.choice(["update", "merge"]), payer, payee, chance.randrange(1, 100))


def pay(table: Table, kind: str, payer: int, payee: int, amount: int) -> None:
    """A transfer as users make it; again where another teller was in the way, with the number of conflicts by who caused them."""
    tellers = optimizers = 0
    while True:
        try:
            if kind == "update":
                new = f"CASE WHEN account = {payer} THEN balance - {amount} ELSE balance + {amount} END"
                version = table.update({"balance": new}, f"account in ({payer}, {payee})").version
            else:
                moved = pa.table({"account": [payer, payee], "amount": [-amount, amount]})
                merge: MergeBuilder = table.merge(moved, "target.account = source.account")
                version = merge.when_matched_update({"balance": "target.balance + source.amount"}).execute().version
        except DeltaConcurrentModificationException as conflict:
            is_optimizers = conflict.facts.get("winner_operation") == "OPTIMIZE"
            tellers, optimizers = tellers + (not is_optimizers), optimizers + is_optimizers
        else:
            say(json.dumps({"version": version, "kind": kind, "tellers": tellers, "optimizers": optimizers}))
            return


def repeat(table: Table, kind: str, stage: Callable[[Transaction], Operation | None]) -> None:
    """Stage and commit, on the newest version each time, until it is committed."""
    for started_commit in count(1):
        transaction = table.begin()
        operation = stage(transaction)
        assert operation is not None, "there is something to do at every version"
        try:
            committed = table.commit(transaction, operation)
        except DeltaConcurrentModificationException:
            continue
        say(json.dumps({"version": committed.version, "kind": kind, "begun": started_commit, **_races(committed)}))
        return


def _races(committed: Committed) -> dict[str, int]:
    mine = {action.path for action in committed.actions if isinstance(action, RemoveFile)}
    shared = sum(any(remove.path in mine for remove in winner.removes) for winner in committed.concurrent)
    return {"winners": len(committed.concurrent), "shared": shared}


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
