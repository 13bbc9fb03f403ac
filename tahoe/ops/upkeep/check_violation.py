"""`Violation`: one thing that is wrong with a table, and how whatever goes wrong while looking becomes one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType

from tahoe.exceptions import TahoeError

__all__ = ["Reported", "Violation", "violation_of"]

_MOST_CHARACTERS = 600


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that is wrong.

    Args:
        code: what kind of thing: ``log-gap``, ``commit``, ``checkpoint``, ``compaction``, ``checksum``, ``snapshot``, ``file``,
            ``vector``, ``statistics``, ``partition``, ``row-ids``, ``data``, ``change-data``, ``iceberg``.
        message: one sentence with names, what was expected and what was found.
        version: where in the log, if it is about one version.
        file: the store's name of the file, if it is about one.
        error: the error class that reading it raises (``DELTA_…``, ``TAHOE_…``), where it raises one.
        section: the section of PROTOCOL.md whose rule is broken; told by the strict check alone (`tahoe.ops.strict`).
    """

    code: str
    message: str
    version: int | None = None
    file: str | None = None
    error: str | None = None
    section: str | None = None

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


def violation_of(error: Exception, code: str, what: str, version: int | None = None, file: str | None = None) -> Violation:
    """What an error says, as a finding.

    Args:
        what: what could not be looked at, for errors that are not Tahoe's own and name nothing.
    """
    if isinstance(error, TahoeError):
        named = error.facts.get("file")
        return Violation(code, error.message, version, file or (named if isinstance(named, str) else None), error.code)
    text = str(error)
    shown = text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + "…"
    return Violation(code, f"{what} cannot be checked ({type(error).__name__}: {shown}).", version, file)


class Reported(AbstractContextManager[None]):
    """A block in which every error is a finding: whatever a damaged table provokes, the check goes on behind it.

    Args:
        report: takes the finding.
        code, what, version, file: as of `violation_of`.
    """

    def __init__(
        self, report: Callable[[Violation], object], code: str, what: str, version: int | None = None, file: str | None = None
    ) -> None:
        self._report = report
        self._about = (code, what, version, file)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        if not isinstance(error, Exception):
            return False
        self._report(violation_of(error, *self._about))
        return True
