"""The answer of a corrupt table, and whether it is allowed: the right rows, or an error that names the table and the position."""

from __future__ import annotations

import re
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from types import FrameType
from typing import Any

import pyarrow as pa

from tahoe import Table
from tahoe.base.clock import SeededClock
from tahoe.base.exceptions import TahoeError
from tests.attack.damages import Case
from tests.attack.overlay import Damage, Overlay
from tests.attack.victims import Victim

__all__ = ["LIMIT_SECONDS", "Failure", "Judge", "Report", "names_its_place", "rows_of", "table_of", "time_limit"]

LIMIT_SECONDS = 20.0
"""No query of these tables may take more processor time, however they are corrupted. Clock time would depend on the load of the machine.
The tests' own limit ends a hanging test."""

_NOW_MS = 1_700_000_500_000

Question = Callable[[Table, Victim], Any]


@dataclass(frozen=True)
class Failure:
    """One answer that is not allowed.

    Args:
        question: the query.
        outcome: ``wrong rows``, ``older version``, ``nameless error``, the type of a foreign error, ``silent check``, ``hang``.
    """

    table: str
    case: Case
    question: str
    outcome: str
    detail: str = ""


@dataclass
class Report:
    """The failures of many cases, grouped."""

    cases: int = 0
    failures: list[Failure] = field(default_factory=list)
    slowest: tuple[float, str] = (0.0, "")

    def __str__(self) -> str:
        groups: dict[tuple[str, str, str], list[Failure]] = defaultdict(list)
        for actual in self.failures:
            groups[actual.case.kind, actual.outcome, actual.question].append(actual)
        lines = [f"{len(self.failures)} answers of {self.cases} cases are not allowed:"]
        for (kind, outcome, question), members in sorted(groups.items(), key=lambda group: -len(group[1])):
            lines.append(f"  {len(members):5d} × {kind} → {outcome} ({question})")
            lines += [f"          {actual.table}: {actual.case.what}: {actual.detail}"[:400] for actual in members[:3]]
        return "\n".join(lines)


class Judge:
    """Queries corrupt copies of one table, and compares the answers with those of the sound table.

    Args:
        open_handle: ask by a handle that has read the table while it was whole.
        check_each: ask `check()` too in each so many-th case, and wherever a read was refused.
    """

    def __init__(self, victim: Victim, *, open_handle: bool = False, check_each: int = 1) -> None:
        self.victim = victim
        self.truth = _truth(victim)
        self.open_handle = open_handle
        self.check_each = check_each
        self._asked = 0

    def judge(self, cases: Iterable[Case], allowed: Callable[[Failure], bool] = lambda _: False) -> Report:
        """Query the table for every case; failures for which `allowed` is true are not reported."""
        report = Report()
        for case in cases:
            if all(self.victim.files.get(name) == data for name, data in case.files.items()):
                continue
            begin = time.process_time()
            report.failures += [actual for actual in self._failures(case) if not allowed(actual)]
            report.slowest = max(report.slowest, (time.process_time() - begin, case.what))
            report.cases += 1
        return report

    def _failures(self, case: Case) -> Iterator[Failure]:
        table = self._damaged(case)
        refused: list[str] = []
        for name, ask in _questions(self.victim).items():
            outcome, detail = self._outcome(name, ask, table)
            refused += [name] if outcome == "refused" else []
            if outcome == "refused" and case.kind in _NOT_NEEDED:
                outcome = "needless refusal"
            if outcome not in ("right", "refused"):
                yield Failure(self.victim.name, case, name, outcome, detail)
        self._asked += 1
        if not refused and self._asked % self.check_each:
            return
        outcome, detail = self._check(table)
        if outcome == "nothing found" and self._must_be_reported(case, refused):
            yield Failure(self.victim.name, case, "check", "silent check", f"refused: {', '.join(refused)}")
        elif outcome not in ("nothing found", "told"):
            yield Failure(self.victim.name, case, "check", outcome, detail)

    def _must_be_reported(self, case: Case, refused: Sequence[str]) -> bool:
        """Whether `check()` must detect it: not in data files, nor in files that only older versions use."""
        of_old_files = case.kind == "vector" or self.victim.name == "foreign"
        return "data" not in case.kind and any(name in _OF_THE_NEWEST or not of_old_files for name in refused)

    def _outcome(self, name: str, ask: Question, table: Table) -> tuple[str, str]:
        try:
            with time_limit():
                answer = ask(table, self.victim)
        except TahoeError as error:
            return (
                "refused" if names_its_place(error, self.victim) else "nameless error"
            ), f"{type(error).__name__}: {error.message}"
        except Exception as error:  # noqa: BLE001 - the test examines the kind of error
            return _kind_of_error(error), str(error)[:200]
        truth = self.truth[name]
        if answer == truth:
            return "right", ""
        if name == "version":
            return "another version", f"{answer}, not {truth}"
        return "wrong rows", f"{len(answer)} rows, not {len(truth)}; e.g. {_difference(answer, truth)}"

    def _damaged(self, case: Case) -> Table:
        if not self.open_handle:
            return table_of(self.victim, case.files)
        store = Overlay(self.victim.url, self.victim.files)
        table = Table(self.victim.url, store=store, clock=SeededClock(1, _NOW_MS))
        table.to_arrow()
        for name, data in case.files.items():
            store.damage(name, data)
        return table

    def _check(self, table: Table) -> tuple[str, str]:
        try:
            with time_limit():
                actual = table.check()
        except TahoeError as error:
            return ("told", "") if names_its_place(error, self.victim) else ("nameless error", error.message)
        except Exception as error:  # noqa: BLE001 - as above
            return _kind_of_error(error), str(error)[:200]
        return ("told", "") if actual else ("nothing found", "")


# The log is whole without these, so a table is read as if they were not there.
_NOT_NEEDED = frozenset(
    {"checkpoint", "part of a checkpoint", "sidecar", "V2 checkpoint (json)", "V2 checkpoint (parquet)", "hint", "compaction"}
)


def table_of(victim: Victim, damage: Damage) -> Table:
    """A fresh table over the damaged files."""
    # A clock that follows the table's own times, so that new commits do not find the log expired.
    return Table(victim.url, store=Overlay(victim.url, victim.files, damage), clock=SeededClock(1, _NOW_MS))


def names_its_place(error: TahoeError, victim: Victim) -> bool:
    """Whether the message names the table, a version, and a file: of the log, or one that the log names."""
    message = error.message
    if victim.url not in message or not re.search(r"\b[Vv]ersions? -?\d|_delta_log/(_\w+|\d{20})", message):
        return False
    if error.code == "DELTA_VERSION_NOT_FOUND":
        return True  # of a version that is not there no file is
    return re.search(r"_delta_log/\w|[Ff]iles? '[^']", message) is not None or any(
        name.rpartition("/")[2] in message for name in victim.files
    )


def rows_of(table: pa.Table) -> list[str]:
    """The rows in an order of their own; equal for tables with the same rows."""
    return sorted(map(repr, table.to_pylist()))


@contextmanager
def time_limit(seconds: float = LIMIT_SECONDS) -> Iterator[None]:
    """Raise `TimeoutError` in the main thread after so many seconds of the processor's time."""

    def strike(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"no answer in {seconds} s of the processor's time")

    before = signal.signal(signal.SIGPROF, strike)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _kind_of_error(error: Exception) -> str:
    return "hang" if isinstance(error, TimeoutError) else type(error).__name__


_OF_THE_NEWEST = frozenset({"version", "rows", "filtered"})


def _questions(victim: Victim) -> dict[str, Question]:
    asked: dict[str, Question] = {
        "version": lambda table, _: table.version(),
        "rows": lambda table, _: rows_of(table.to_arrow(row_ids=victim.tracks_rows)),
        "filtered": lambda table, _: rows_of(table.to_arrow(filter=victim.filter)),
        "old version": lambda table, _: rows_of(table.to_arrow(version=victim.old_version)),
    }
    if victim.feed_from is not None:
        asked["feed"] = lambda table, _: rows_of(table.changes(victim.feed_from))
    return asked


@cache
def _truths(name: str) -> dict[str, Any]:
    from tests.attack.victims import victim

    whole = victim(name)
    return {question: ask(table_of(whole, {}), whole) for question, ask in _questions(whole).items()}


def _truth(victim: Victim) -> dict[str, Any]:
    return _truths(victim.name)


def _difference(answer: list[str], truth: list[str]) -> str:
    more, less = sorted(set(answer) - set(truth)), sorted(set(truth) - set(answer))
    return f"{len(less)} missing {less[:1]}, {len(more)} too many {more[:1]}"
