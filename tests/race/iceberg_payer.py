"""A process that moves money between the accounts of one table until it is killed: ``python -m tests.race.iceberg_payer``.

The first line of its input is JSON: ``path`` of the table, ``url`` of the catalog (None for a writer through Delta), ``accounts``,
``payer`` (a number), ``transfers``, their maximum, and ``pause``, the most seconds between two transfers through Delta, which are many
times faster: without a pause, those through Iceberg would lose every race. It prints ``ready``, waits for a line, and then prints the name
of each acknowledged transfer, which the commit has in its metadata: ``number of this process:number of the transfer:payer:payee:amount``.
"""

from __future__ import annotations

import json
import random
import sys

import pyarrow as pa
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException, ServerError, ServiceUnavailableError
from pyiceberg.expressions import In
from requests.exceptions import ChunkedEncodingError
from requests.exceptions import ConnectionError as ServerIsGone

from tahoe.api.table import Table
from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.exceptions import DeltaConcurrentModificationException

NAME = "bank.accounts"
TRANSFER = "transfer"
_UNKNOWN = (CommitStateUnknownException, ServerError, ServiceUnavailableError, ServerIsGone, ChunkedEncodingError)


def main() -> None:
    task = json.loads(sys.stdin.readline())
    chance = random.Random(task["payer"])
    pay = through_delta if task["url"] is None else through_iceberg
    target = task["path"] if task["url"] is None else task["url"]
    Table(task["path"]).to_arrow()  # late imports happen now
    say("ready")
    sys.stdin.readline()
    for number in range(task["transfers"]):
        payer, payee = chance.sample(range(task["accounts"]), 2)
        name = f"{task['payer']}:{number}:{payer}:{payee}:{chance.randint(1, 50)}"
        pay(target, name)
        say(name)
        if task["url"] is None:
            SYSTEM_CLOCK.sleep(chance.random() * task["pause"])


def through_delta(path: str, name: str) -> None:
    payer, payee, amount = map(int, name.split(":")[2:])
    new = f"CASE WHEN account = {payer} THEN balance - {amount} ELSE balance + {amount} END"
    while True:
        try:
            Table(path).update({"balance": new}, f"account IN ({payer}, {payee})", user_metadata=name)
        except DeltaConcurrentModificationException:
            continue
        return


def through_iceberg(url: str, name: str) -> None:
    """Pay, and again after a conflict. After an unknown outcome, look for the transfer first."""
    payer, payee, amount = map(int, name.split(":")[2:])
    chosen = In("account", [payer, payee])
    is_unknown = False
    while True:
        try:
            table = RestCatalog("bank", uri=url).load_table(NAME)
            summaries = [snapshot.summary for snapshot in table.metadata.snapshots if snapshot.summary is not None]
            if is_unknown and any(summary.get(TRANSFER) == name for summary in summaries):
                return
            rows = table.scan(row_filter=chosen).to_arrow().to_pylist()
            changed = [{**row, "balance": row["balance"] + (-amount if row["account"] == payer else amount)} for row in rows]
            table.overwrite(
                pa.Table.from_pylist(changed, table.schema().as_arrow()), chosen, snapshot_properties={TRANSFER: name}
            )
        except CommitFailedException:
            continue
        except _UNKNOWN:
            is_unknown = True
            SYSTEM_CLOCK.sleep(0.05)  # until the server is there again
            continue
        return


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
