"""Money moves between accounts from many processes at once, while others rewrite the files: at every version none is lost or made."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tahoe.api.table import Table
from tests.race.processes import start, started, wait_until_ready
from tests.race.teller import SCHEMA, TRANSFERS

TELLERS, REWRITERS, ACCOUNTS = 8, 2, 64
BALANCE = 1_000
PROPERTIES = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}


def open_bank(path: str, options: Mapping[str, str] | None) -> Table:
    table = Table.create(path, SCHEMA, properties=PROPERTIES, storage_options=options)
    numbers = range(ACCOUNTS)
    accounts = {"account": numbers, "branch": [f"branch {n % 4}" for n in numbers], "balance": [BALANCE] * ACCOUNTS}
    table.append(pa.table(accounts, SCHEMA), max_rows_per_file=ACCOUNTS // 4)
    return table


def race(
    path: str,
    transfers: int,
    rewrites: int,
    options: Mapping[str, str] | None = None,
    tellers: int = TELLERS,
    rewriters: int = REWRITERS,
) -> None:
    """So many commits by each teller and each rewriter, and the audit."""
    table = open_bank(path, options)
    tasks = [{"kind": "transfer", "commits": transfers}] * tellers + [{"kind": "rewrite", "commits": rewrites}] * rewriters
    common = {"path": path, "options": dict(options or {}), "accounts": ACCOUNTS}
    with contextlib.ExitStack() as stack:
        processes = [
            stack.enter_context(started("tests.race.teller", {**common, **task, "seed": seed})) for seed, task in enumerate(tasks)
        ]
        for process in processes:
            wait_until_ready(process)
        for process in processes:
            start(process)
        # Each is read as it goes, so that none waits for a full pipe.
        with ThreadPoolExecutor(len(processes)) as pool:
            outputs = list(pool.map(lambda process: process.communicate(), processes))
    assert [stderr for _, stderr in outputs] == [""] * len(tasks)
    commits = [json.loads(line) for stdout, _ in outputs for line in stdout.splitlines()]
    tell(commits)

    last = tellers * transfers + rewriters * rewrites + 1
    assert sorted(commit["version"] for commit in commits) == list(range(2, last + 1))
    history = table.history()
    assert [commit["version"] for commit in history] == list(range(last, -1, -1))
    kinds = Counter(commit["kind"] for commit in commits)
    assert set(kinds) == {"rewrite", *(transfer.__name__ for transfer in TRANSFERS)}
    assert Counter(commit["operation"] for commit in history) == {
        "CREATE TABLE": 1,
        "WRITE": 1 + kinds["by_delete_and_insert"],
        "UPDATE": kinds["by_update"],
        "MERGE": kinds["by_merge"],
        "OPTIMIZE": kinds["rewrite"],
    }
    with ThreadPoolExecutor(2) as pool:
        wrong = [actual for actual in pool.map(lambda version: audit(path, options, version), range(1, last + 1)) if actual]
    assert wrong == []
    assert table.check() == []
    assert any(commit["shared"] for commit in commits), "no two commits met in one file: this tests nothing"


def race_optimizers(path: str, payments: int, tellers: int = TELLERS) -> None:
    """So many payments by each teller, or some more, while one process compacts all the time and another clusters."""
    table, over = open_bank(path, None), f"{path}-over"
    tasks: list[dict[str, Any]] = [{"kind": "pay", "commits": payments, "over": over}] * tellers
    tasks += [{"kind": kind, "over": over, "enough": 1 + payments // 10} for kind in ("compact", "cluster")]
    common = {"path": path, "options": {}, "accounts": ACCOUNTS}
    with contextlib.ExitStack() as stack:
        processes = [
            stack.enter_context(started("tests.race.teller", {**common, **task, "seed": seed})) for seed, task in enumerate(tasks)
        ]
        for process in processes:
            wait_until_ready(process)
        with ThreadPoolExecutor(len(processes)) as pool:
            for process in processes:
                start(process)
            ended = [pool.submit(process.communicate) for process in processes]
            for item in ended[:tellers]:
                item.result()
            Path(over).touch()
            outputs = [item.result() for item in ended]
    assert [stderr for _, stderr in outputs] == [""] * len(tasks)
    reported = [json.loads(line) for stdout, _ in outputs for line in stdout.splitlines()]
    kinds = Counter(item["kind"] for item in reported if item["version"] is not None)
    gave_way = sum(item["version"] is None for item in reported)
    print(  # noqa: T201 - `pytest -s` shows it
        f"\n{dict(kinds)}; {gave_way} OPTIMIZEs gave way to others; payments repeated "
        f"{sum(item.get('tellers', 0) for item in reported)} times because of payments, "
        f"{sum(item.get('optimizers', 0) for item in reported)} times because of OPTIMIZE"
    )
    assert kinds["update"] + kinds["merge"] >= tellers * payments
    assert [item for item in reported if item.get("optimizers")] == []
    assert min(kinds["compact"], kinds["cluster"]) > payments / 10, "hardly anything was optimized: this tests nothing"
    last = table.version()
    with ThreadPoolExecutor(2) as pool:
        assert [actual for actual in pool.map(lambda version: audit(path, None, version), range(1, last + 1)) if actual] == []
    assert table.check(deep=True) == []


def audit(path: str, options: Mapping[str, str] | None, version: int) -> dict[str, Any] | None:
    """The fault of a version, if there is one."""
    rows = Table(path, storage_options=options).to_arrow(version=version)
    accounts, total = rows["account"].to_pylist(), pc.sum(rows["balance"]).as_py()
    if total == ACCOUNTS * BALANCE and sorted(accounts) == list(range(ACCOUNTS)):
        return None
    return {"version": version, "total": total, "accounts": sorted(accounts)}


def tell(commits: list[dict[str, Any]]) -> None:
    """How conflicts were settled; `pytest -s` shows it."""
    started_commit = sum(commit["begun"] for commit in commits)
    moved = sum(commit["winners"] > 0 for commit in commits)
    by_rows = sum(commit["shared"] > 0 for commit in commits)
    print(  # noqa: T201
        f"\n{len(commits)} commits: {len(commits) - moved} at once, {moved} moved past winners, of them {by_rows} past one that "
        f"changed other rows of the same file; begun anew {started_commit - len(commits)} times"
    )


def test_no_money_is_lost_between_tellers_and_a_rewriter(tmp_path: Path) -> None:
    """Each process takes a second to start, and each version is audited. `make soak` makes 5,000 commits from ten processes."""
    race(str(tmp_path / "bank"), transfers=12, rewrites=4, tellers=3, rewriters=1)


@pytest.mark.long
def test_no_payment_fails_because_of_optimize(tmp_path: Path) -> None:
    """Four processes, and an audit of each version. `make soak` makes 2,000 payments from ten."""
    race_optimizers(str(tmp_path / "bank"), payments=3, tellers=2)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_no_payment_fails_because_of_optimize_in_two_thousand(tmp_path: Path) -> None:
    race_optimizers(str(tmp_path / "bank"), payments=250)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_no_money_is_lost_in_five_thousand_commits(tmp_path: Path) -> None:
    race(str(tmp_path / "bank"), transfers=600, rewrites=100)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_no_money_is_lost_on_s3(s3_url: str, s3_options: dict[str, str]) -> None:
    race(s3_url, transfers=58, rewrites=18, options=s3_options)
