"""Checks the tables that tests write against the specification: each violation in a table of a test that passed fails the test.

The check covers the tables below a test's `tmp_path`, and those in memory whose every commit Tahoe wrote, of a sample of the tests, for a
bounded time; `TAHOE_CHECK_ALL=1` covers all. A test that corrupts its tables on purpose, or writes to a log by hand, has the mark
`damages_tables`; a test with a known deviation of Tahoe names the rules: `breaks_rules("…")` (docs/design/032).
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Generator, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pytest

from tahoe.base.exceptions import TahoeError
from tahoe.ops.check.subjects.raw_log import RawLog
from tahoe.ops.check.table_check import strict_violations
from tahoe.protocol.iceberg_compat import deletes_form
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import LogStore
from tahoe.store.object_store import _memory_stores, open_store

_LOOKS_AT_ALL = os.environ.get("TAHOE_CHECK_ALL") == "1"
_ONE_TEST_IN = 16
_MOST_SECONDS = 120.0
"""A bound that is not met where all is well, so that each run looks at the same tests."""
_MOST_TABLES_OF_A_TEST = 20
_spent = 0.0
_BEFORE = pytest.StashKey[frozenset[str]]()
_COUNTED = "tables checked against the specification"


@pytest.hookimpl
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Remember which stores in memory there are before the test."""
    item.stash[_BEFORE] = frozenset(_memory_stores)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that passed and left a table behind that breaks a rule."""
    report = yield
    if call.when == "call" and report.passed and _is_looked_at(item):
        marks = item.iter_markers("breaks_rules")
        stores = _looked_at(item)
        report.user_properties = [*report.user_properties, (_COUNTED, [len(RawLog(store).commits) for store in stores])]
        broken = list(broken_rules(stores, {name for mark in marks for name in mark.args}))
        if broken:
            report.outcome = "failed"
            report.longrepr = "Tables that the test wrote break the specification (tests/written_tables.py):\n" + "\n".join(
                broken
            )
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how many tables and versions were looked at."""
    counts = [
        count
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, count in getattr(report, "user_properties", ())
        if name == _COUNTED
    ]
    tables = [versions for count in counts for versions in count]
    terminalreporter.write_line(f"{_COUNTED}: {len(tables)} of {len(counts)} tests, {sum(tables)} versions")


def _is_looked_at(item: pytest.Item) -> bool:
    if item.get_closest_marker("damages_tables") is not None:
        return False
    return _LOOKS_AT_ALL or (_spent < _MOST_SECONDS and zlib.crc32(item.nodeid.encode()) % _ONE_TEST_IN == 0)


def _looked_at(item: pytest.Item) -> list[LogStore]:
    """The tables below a test's folder, and those in memory that came to be with it."""
    folder = getattr(item, "funcargs", {}).get("tmp_path")
    actual = tables_of_tahoe(folder) if isinstance(folder, Path) else iter(())
    in_memory = tables_in_memory(frozenset(_memory_stores) - item.stash[_BEFORE])
    return list(islice(chain(actual, in_memory), None if _LOOKS_AT_ALL else _MOST_TABLES_OF_A_TEST))


def broken_rules(stores: Iterable[LogStore], known: set[str]) -> Iterator[str]:
    """The violations in tables, except for rules with known deviations."""
    global _spent
    started = time.perf_counter()
    for store in stores:
        try:
            violations = strict_violations(store)
        except TahoeError as error:
            yield f"{store.url}: {error}"
            continue
        expected = known | (_OF_POSITION_DELETES if violations and _has_position_deletes(store) else set())
        yield from (f"{store.url}: {actual.section}: {actual}" for actual in violations if actual.code not in expected)
    _spent += time.perf_counter() - started


_OF_POSITION_DELETES = {"iceberg-allows-no-vectors"}
"""Violations of tables that expose their deletion vectors to Iceberg v2 as position deletes (docs/design/008)."""


def _has_position_deletes(store: LogStore) -> bool:
    try:
        return deletes_form(Snapshot.at(store).config.properties) == "position"
    except TahoeError:
        return False


def tables_of_tahoe(folder: Path) -> Iterator[LogStore]:
    """The tables below a folder whose logs Tahoe alone wrote."""
    for log in sorted(folder.rglob("_delta_log")):
        store = open_store(str(log.parent))
        if _is_tahoes(store):
            yield store


def tables_in_memory(names: Iterable[str]) -> Iterator[LogStore]:
    """The same of the stores in memory of these names."""
    for name in sorted(names):
        keys = [str(entry["path"]) for page in _memory_stores[name].reads.list() for entry in page]
        for root in sorted({key.partition("_delta_log/")[0] for key in keys if "_delta_log/" in key}):
            store = open_store(f"memory://{name}/{root}".rstrip("/"))
            if _is_tahoes(store):
                yield store


def _is_tahoes(store: LogStore) -> bool:
    """Whether each commit says so."""
    log = RawLog(store)
    engines_of_commits = [
        [info.get("engineInfo") for info in commit.of("commitInfo")] for commit in log.commits_of(list(log.commits))
    ]
    return bool(engines_of_commits) and all(
        any(str(engine).startswith("Tahoe") for engine in engines) for engines in engines_of_commits
    )
