"""`Violation`, one finding of a check, and the conversion of errors into findings."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType

from tahoe.base.exceptions import TahoeError

_MOST_CHARACTERS = 600


@dataclass(frozen=True, slots=True)
class Violation:
    """One finding of a check.

    Args:
        code: the kind of finding: ``log-gap``, ``commit``, ``checkpoint``, ``compaction``, ``checksum``, ``snapshot``, ``file``,
            ``vector``, ``statistics``, ``partition``, ``row-ids``, ``data``, ``change-data``, ``iceberg``.
        message: one sentence with names, the expected and the actual value.
        version: the version, if the finding is about one.
        file: the store's name of the file, if the finding is about one.
        error: the error class that reading the table raises (``DELTA_…``, ``TAHOE_…``), if it raises one.
        section: the section of PROTOCOL.md whose rule is broken; set only by the strict check.
    """

    code: str
    message: str
    version: int | None = None
    file: str | None = None
    error: str | None = None
    section: str | None = None

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


def violation_of(error: Exception, code: str, subject: str, version: int | None = None, file: str | None = None) -> Violation:
    """Convert an error into a finding.

    Args:
        subject: the part that could not be read, for errors that are not Tahoe's own and contain no name.
    """
    if isinstance(error, TahoeError):
        named = error.facts.get("file")
        return Violation(code, error.message, version, file or (named if isinstance(named, str) else None), error.code)
    text = str(error)
    shown = text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + "…"
    return Violation(code, f"{subject} cannot be checked ({type(error).__name__}: {shown}).", version, file)


class Reported(AbstractContextManager[None]):
    """A block in which every error becomes a finding, so that the check continues after it.

    Args:
        report: takes the finding.
        code, subject, version, file: as for `violation_of`.
    """

    def __init__(
        self, report: Callable[[Violation], object], code: str, subject: str, version: int | None = None, file: str | None = None
    ) -> None:
        self._report = report
        self._about = (code, subject, version, file)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        if not isinstance(error, Exception):
            return False
        self._report(violation_of(error, *self._about))
        return True
