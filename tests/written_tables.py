"""Holds the tables that tests write against the specification: each violation in a table of a test that passed fails the test.

Looked at are the tables below a test's `tmp_path` whose every commit Tahoe wrote, of a sample of the tests and for a bounded time;
`TAHOE_CHECK_ALL=1` looks at all. A test that damages its tables on purpose, or writes to a log by hand, says so with the mark
`damages_tables`; one that writes what Tahoe is known to do otherwise names the rules: `breaks_rules("…")` (docs/design/032).
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

import tahoe
from tahoe.exceptions import TahoeError
from tahoe.ops.strict.strict_check import strict_violations

_LOOKS_AT_ALL = os.environ.get("TAHOE_CHECK_ALL") == "1"
_ONE_TEST_IN = 16
_MOST_SECONDS = 120.0
"""A bound that is not met where all is well, so that each run looks at the same tests."""
_MOST_TABLES_OF_A_TEST = 20
_spent = 0.0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that passed and left a table behind that breaks a rule."""
    report = yield
    folder = getattr(item, "funcargs", {}).get("tmp_path")
    if call.when == "call" and report.passed and isinstance(folder, Path) and _is_looked_at(item):
        marks = item.iter_markers("breaks_rules")
        broken = list(broken_rules(folder, {name for mark in marks for name in mark.args}))
        if broken:
            report.outcome = "failed"
            report.longrepr = "Tables that the test wrote break the specification (tests/written_tables.py):\n" + "\n".join(
                broken
            )
    return report


def _is_looked_at(item: pytest.Item) -> bool:
    if item.get_closest_marker("damages_tables") is not None:
        return False
    return _LOOKS_AT_ALL or (_spent < _MOST_SECONDS and zlib.crc32(item.nodeid.encode()) % _ONE_TEST_IN == 0)


def broken_rules(folder: Path, known: set[str]) -> Iterator[str]:
    """What is wrong with the tables below a folder, but for the rules that are known to be broken."""
    global _spent
    started = time.perf_counter()
    for root in list(tables_of_tahoe(folder))[:_MOST_TABLES_OF_A_TEST]:
        try:
            violations = strict_violations(tahoe.Table(str(root)).store)
        except TahoeError as error:
            yield f"{root}: {error}"
            continue
        expected = known | (_OF_POSITION_DELETES if _has_position_deletes(root) else set())
        yield from (f"{root}: {found.section}: {found}" for found in violations if found.code not in expected)
    _spent += time.perf_counter() - started


_OF_POSITION_DELETES = {"iceberg-allows-no-vectors"}
"""What tables break that show their deletion vectors to Iceberg v2 as position deletes (docs/design/008)."""


def _has_position_deletes(root: Path) -> bool:
    config = tahoe.Table(str(root)).snapshot().config
    return config.metadata.configuration.get("delta.universalFormat.config.iceberg.deletes") == "position"


def tables_of_tahoe(folder: Path) -> Iterator[Path]:
    """The roots below a folder whose logs Tahoe alone wrote."""
    for log in sorted(folder.rglob("_delta_log")):
        commits = sorted(log.glob("[0-9]*.json"))
        if commits and all(_is_tahoes(commit) for commit in commits if commit.name.count(".") == 1):
            yield log.parent


def _is_tahoes(commit: Path) -> bool:
    try:
        actions: list[Any] = [json.loads(line) for line in commit.read_bytes().splitlines()]
        return any(str(action.get("commitInfo", {}).get("engineInfo", "")).startswith("Tahoe") for action in actions)
    except (ValueError, AttributeError, OSError, RecursionError):
        return False
