"""The cases of the conformance suite: `cases/*.toml`, checked when they are loaded. README.md describes the format."""

from __future__ import annotations

import tomllib
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["CASES", "DIFFERENCES", "Case", "Difference", "Step", "load_cases", "load_differences", "parse_cases", "sample"]

HERE = Path(__file__).parent
CASES = HERE / "cases"
DIFFERENCES = HERE / "differences.toml"
LINES_OF_A_FILE = 600
Step = str | Mapping[str, Any]
"""SQL text, or a table of the arguments of one action of the DataFrame API (`steps.py`)."""

_CASE_KEYS = {
    *("name", "suite", "settings", "pyspark", "setup", "run", "query"),
    *("rows", "schema", "error", "message"),
}
_DIFFERENCE_KEYS = {"file", "name", "reason", "pending", "rows", "schema", "error", "message"}
_OUTCOME_KEYS = ("rows", "schema", "error", "message")
_NEWEST_PYSPARK_OF_DELTA_SPARK = (4, 1)


@dataclass(frozen=True)
class Expectation:
    """The rows of a query, an error, or both: an error after which the query still has these rows."""

    rows: tuple[str, ...] | None = None
    schema: str | None = None
    error: str | None = None
    message: str | None = None


@dataclass(frozen=True)
class Case:
    """One case: steps that prepare tables, the steps under test, a query, and the expectation."""

    file: str
    name: str
    suite: str
    setup: tuple[Step, ...]
    run: tuple[Step, ...]
    query: Step | None
    expected: Expectation
    settings: Mapping[str, str] = field(default_factory=dict)
    pyspark: tuple[int, ...] = ()

    @property
    def id(self) -> str:
        """The name that pytest shows."""
        return f"{self.file}: {self.name}"


@dataclass(frozen=True)
class Difference:
    """A case in which Tahoe's outcome is another: on purpose, with the reason, or until it is fixed (`pending`)."""

    file: str
    name: str
    reason: str
    pending: bool
    expected: Expectation

    @property
    def id(self) -> str:
        """The id of the case."""
        return f"{self.file}: {self.name}"


def load_cases() -> list[Case]:
    """All cases, in the order of the files.

    Raises:
        ValueError: where a file breaks a rule of the format.
    """
    return [case for path in sorted(CASES.glob("*.toml")) for case in parse_cases(path)]


def parse_cases(path: Path) -> list[Case]:
    """The cases of one file.

    Raises:
        ValueError: where the file breaks a rule of the format.
    """
    text = path.read_text(encoding="utf-8")
    document = tomllib.loads(text)
    if unknown := document.keys() - {"suite", "case"}:
        raise ValueError(f"{path.name}: unknown keys {sorted(unknown)}")
    if len(text.splitlines()) > LINES_OF_A_FILE:
        raise ValueError(f"{path.name}: {len(text.splitlines())} lines, {LINES_OF_A_FILE} are allowed")
    cases = [_case(path.stem, document.get("suite"), entry) for entry in document["case"]]
    names = [case.name for case in cases]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"{path.name}: names of several cases: {sorted(repeated)}")
    return cases


def load_differences() -> dict[str, Difference]:
    """The documented and the pending differences, by the id of their case.

    Raises:
        ValueError: an entry lacks a required key, has an unknown key, or repeats a case.
    """
    differences: dict[str, Difference] = {}
    for entry in tomllib.loads(DIFFERENCES.read_text(encoding="utf-8")).get("difference", []):
        difference = _difference(entry)
        if difference.id in differences:
            raise ValueError(f"differences.toml: two entries for {difference.id!r}")
        differences[difference.id] = difference
    return differences


def sample(cases: Sequence[Case], one_in: int) -> list[Case]:
    """One case in `one_in`, by a hash of the name: a new case does not change which of the others are in the sample."""
    return [case for case in cases if zlib.crc32(case.name.encode()) % one_in == 0]


def _case(file: str, suite: str | None, entry: Mapping[str, Any]) -> Case:
    place = f"{file}.toml, case {entry.get('name')!r}"
    if unknown := entry.keys() - _CASE_KEYS:
        raise ValueError(f"{place}: unknown keys {sorted(unknown)}")
    if not isinstance(entry.get("name"), str) or not (suite := entry.get("suite", suite)):
        raise ValueError(f"{place}: a case needs a name and a suite")
    settings = entry.get("settings", {})
    if not all(isinstance(value, str) for value in settings.values()):
        raise ValueError(f"{place}: the values of settings are strings")
    pyspark = tuple(map(int, entry["pyspark"].split("."))) if "pyspark" in entry else ()
    if pyspark > _NEWEST_PYSPARK_OF_DELTA_SPARK:
        raise ValueError(f"{place}: delta-spark 4.4.0, which validates the case, runs on PySpark 4.1")
    run, expected = _steps(entry.get("run", [])), _expectation(entry)
    query = entry.get("query")
    if query is None and run and not (expected.error and expected.rows is None):
        query = "SELECT * FROM t"
    if query is None and not run:
        raise ValueError(f"{place}: a case needs a step under test (run) or a query")
    return Case(file, entry["name"], suite, _steps(entry.get("setup", [])), run, query, expected, settings, pyspark)


def _difference(entry: Mapping[str, Any]) -> Difference:
    place = f"differences.toml, {entry.get('file')}: {entry.get('name')!r}"
    if unknown := entry.keys() - _DIFFERENCE_KEYS:
        raise ValueError(f"{place}: unknown keys {sorted(unknown)}")
    pending, expected = entry.get("pending", False), _expectation(entry)
    if pending and expected != Expectation():
        raise ValueError(f"{place}: a pending entry has no rows and no error")
    if not pending and not ((expected.rows is not None or expected.error) and entry.get("reason")):
        raise ValueError(f"{place}: a difference needs what Tahoe does (rows or error), and the reason")
    return Difference(entry["file"], entry["name"], entry.get("reason", ""), pending, expected)


def _expectation(entry: Mapping[str, Any]) -> Expectation:
    values = {key: entry[key] for key in _OUTCOME_KEYS if key in entry}
    if "rows" in values:
        values["rows"] = tuple(sorted(values["rows"].strip("\n").splitlines()))
    return Expectation(**values)


def _steps(value: Step | list[Step]) -> tuple[Step, ...]:
    return tuple(value) if isinstance(value, list) else (value,)
