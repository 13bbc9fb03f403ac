"""Money moves between accounts of one table through Delta and through Iceberg, while writers and the server are killed: no acknowledged
transfer is lost or made twice, and the sum is the same at every Delta version and in every Iceberg snapshot."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg.catalog.rest import RestCatalog

from tahoe.api.table import Table
from tahoe.base.clock import SYSTEM_CLOCK
from tests.interop.test_iceberg_rest import start as start_server
from tests.race.iceberg_payer import NAME, TRANSFER
from tests.race.processes import start, started, wait_until_ready

ACCOUNTS, BALANCE = 12, 1_000
SCHEMA = pa.schema([("account", pa.int64()), ("balance", pa.int64())])
PROPERTIES = {
    "delta.universalFormat.enabledFormats": "iceberg",
    "delta.enableIcebergCompatV2": "true",
    "delta.columnMapping.mode": "name",
    # The payer reads the balances again after a conflict; PyIceberg alone would commit the same balances again.
    "delta.universalFormat.config.iceberg.commit.retry.num-retries": "0",
}


def race(root: Path, *, writers: int, deaths: int, transfers: int, seed: int = 0) -> None:
    """About so many transfers by `writers` through each format, of whom `deaths` are killed and replaced, as is the server; and the audit."""
    chance, path = random.Random(seed), str(root / "bank" / "accounts")
    table = Table.create(path, SCHEMA, properties=PROPERTIES)
    table.append(pa.table({"account": range(ACCOUNTS), "balance": [BALANCE] * ACCOUNTS}, SCHEMA), max_rows_per_file=3)
    server, url = start_server(root, "--writable")
    port = str(urlsplit(url).port)
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(2 * writers + deaths) as pool:
        servers = [server]
        stack.callback(lambda: end(servers[-1]))
        common = {"path": path, "accounts": ACCOUNTS, "transfers": 1_000_000, "pause": writers}
        tasks = [{**common, "url": url if number % 2 else None, "payer": number} for number in range(2 * writers + deaths)]
        payers = [stack.enter_context(started("tests.race.iceberg_payer", task)) for task in tasks]
        for payer in payers:
            wait_until_ready(payer)
        ended = []
        for payer in payers[: 2 * writers]:
            start(payer)
            ended.append(pool.submit(payer.communicate))
        for number, version in enumerate(sorted(chance.sample(range(3, transfers), deaths))):
            wait_for_version(table, version)
            SYSTEM_CLOCK.sleep(chance.random() / 4)
            payers[number].kill()
            start(payers[2 * writers + number])
            ended.append(pool.submit(payers[2 * writers + number].communicate))
            end(servers[-1])
            servers.append(start_server(root, "--writable", "--port", port)[0])
        wait_for_version(table, transfers)
        for payer in payers[deaths:]:
            payer.kill()
        outputs = [item.result() for item in ended]
        assert [errors for _, errors in outputs] == [""] * len(outputs)
        lines = [line for output, _ in outputs for line in output.splitlines(keepends=True) if line.endswith("\n")]
        audit(table, url, [line.strip() for line in lines])


def end(server: subprocess.Popen[str]) -> None:
    """Kill the server in the middle of its work."""
    server.kill()
    server.communicate()


def wait_for_version(table: Table, version: int) -> None:
    while table.version() < version:
        SYSTEM_CLOCK.sleep(0.02)


def audit(table: Table, url: str, acknowledged: list[str]) -> None:
    names = [transfer_of(commit) for commit in table.history() if commit["version"] > 1]
    names.reverse()
    both = Counter(commit["operation"] for commit in table.history())
    print(f"\n{dict(both)}, {len(acknowledged)} acknowledged")  # noqa: T201 - `pytest -s` shows it
    assert len(set(names)) == len(names) and None not in names, "a transfer was made twice"
    assert set(acknowledged) <= set(names), "an acknowledged transfer was lost"
    assert min(both["UPDATE"], both["ICEBERG OVERWRITE"]) > 2, "hardly anything happened: this tests nothing"
    balances = dict.fromkeys(range(ACCOUNTS), BALANCE)
    for version, name in enumerate(names, start=2):
        payer, payee, amount = map(int, str(name).split(":")[2:])
        balances[payer] -= amount
        balances[payee] += amount
        assert balances_of(table.to_arrow(version=version)) == balances, (version, name)
    iceberg = RestCatalog("audit", uri=url).load_table(NAME)
    for snapshot in iceberg.metadata.snapshots[1:]:  # the first is that of the empty table
        rows = iceberg.scan(snapshot_id=snapshot.snapshot_id).to_arrow()
        assert pc.sum(rows["balance"]).as_py() in (ACCOUNTS * BALANCE, None), snapshot
    assert balances_of(iceberg.scan().to_arrow()) == balances
    assert table.check() == []


def transfer_of(commit: dict[str, object]) -> str | None:
    """The name of the transfer of a commit, by which side it was made."""
    parameters = commit["operationParameters"]
    assert isinstance(parameters, dict)
    name = json.loads(parameters["summary"]).get(TRANSFER) if "snapshotId" in parameters else commit["userMetadata"]
    return None if name is None else str(name)


def balances_of(rows: pa.Table) -> dict[int, int]:
    return dict(zip(rows["account"].to_pylist(), rows["balance"].to_pylist(), strict=True))


@pytest.mark.long
def test_no_money_is_lost_between_delta_and_iceberg_whoever_is_killed(tmp_path: Path) -> None:
    """Processes start, which takes most of the time: so `make test` leaves it out. `make soak` runs it too, and kills sixty."""
    race(tmp_path, writers=1, deaths=2, transfers=16)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(3))
def test_no_money_is_lost_by_twenty_deaths_among_four_of_each(tmp_path: Path, seed: int) -> None:
    race(tmp_path, writers=4, deaths=20, transfers=400, seed=seed)
