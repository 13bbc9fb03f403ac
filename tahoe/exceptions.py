"""Every error that Tahoe raises, grouped by what the catcher should do about it.

    TahoeError
    ├── InvalidRequest (ValueError)        change the call
    │   ├── SchemaMismatch                 change the data or the schema, or ask for evolution
    │   └── InvariantViolation             change the rows, or the constraint that they break
    ├── DeltaConcurrentModificationException   another writer won: read again, and run again if it still makes sense
    │   ├── ConcurrentWriteException
    │   ├── MetadataChangedException
    │   ├── ProtocolChangedException
    │   ├── ConcurrentAppendException
    │   ├── ConcurrentDeleteReadException
    │   ├── ConcurrentDeleteDeleteException
    │   └── ConcurrentTransactionException
    ├── NotFound (LookupError)             name another table, version or file
    ├── StorageFailure (OSError)           try again later
    │   └── CommitStateUnknown             ask `resolve()` before trying again
    ├── CorruptTable                       repair the table
    ├── ForeignWriter                      settle what another writer did to the Iceberg side: `Table.uniform.repair`
    └── Unsupported                        upgrade Tahoe, or drop the feature from the table

Each error carries `code` (the error class of the reference where there is one, e.g. ``DELTA_CONCURRENT_APPEND``) and
`facts`: the table, version, file or column that it speaks of. The message ends with the remedy.

Where PySpark is loaded, every error is also what a program written for delta-spark catches: `pyspark.errors.PySparkException`, and of its
subclasses the one that the reference raises for this code (``AnalysisException``, ``IllegalArgumentException``, …). PySpark is never
loaded for that: a program that names its classes has loaded it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any, ClassVar, Self

from tahoe.error_classes import pyspark_exception, sql_state

__all__ = [
    "CommitStateUnknown",
    "ConcurrentAppendException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentDeleteReadException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
    "CorruptTable",
    "DeltaConcurrentModificationException",
    "ForeignWriter",
    "InvalidRequest",
    "InvariantViolation",
    "MetadataChangedException",
    "NotFound",
    "ProtocolChangedException",
    "SchemaMismatch",
    "StorageFailure",
    "TahoeError",
    "TahoeWarning",
    "Unsupported",
]


class TahoeError(Exception):
    """The root of all errors of Tahoe.

    Args:
        message: what is wrong, with names, and what to do about it.
        code: the stable error class, ``DELTA_…`` where the reference has one, else ``TAHOE_…``.
        facts: names and values that the message speaks of (table, version, file, column, …).
    """

    default_code: ClassVar[str] = "TAHOE_ERROR"
    default_sql_state: ClassVar[str] = "XXKDS"
    """The SQL state of codes that the reference does not have; of a system error, unless a subclass says better."""
    default_pyspark_exception: ClassVar[str] = "PySparkException"
    """Which exception of PySpark errors are whose code the reference does not have."""

    def __new__(cls, *arguments: Any, code: str | None = None, **facts: Any) -> Self:
        """An error of this class which, where PySpark is loaded, is one of PySpark's exceptions too."""
        made: type[Self] = _also_of_pyspark(cls, code or cls.default_code)
        return super().__new__(made, *arguments)

    def __init__(self, message: str, *, code: str | None = None, **facts: Any) -> None:
        self.message = message
        self.code = code or self.default_code
        self.facts = facts
        # No __init__ above this one is called: PySpark's looks its codes up among Spark's own, OSError's counts its arguments.
        self.args = (f"[{self.code}] {message}",)

    def __str__(self) -> str:
        return f"[{self.code}] {self.message}"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled by its public class: which of PySpark's it is also is decided anew where it is read."""
        return _restored, (_public(type(self)), self.code, self.args, self.__dict__)

    def located(self, *, table: str | None = None, version: int | None = None, file: str | None = None) -> Self:
        """This very error, told also where it happened, as far as it did not know: for those who know more than who raised it."""
        parts = []
        if table is not None and table not in self.message:
            parts.append(f"Table {table}")
        if version is not None and not re.search(rf"ersion {version}\b", self.message):
            parts.append(f"version {version}")
        if file is not None and file not in self.message:
            parts.append(f"file '{file}'")
        if parts:
            self.message = _with_place(self.message, parts, self.facts.get("table", table))
            self.args = (f"[{self.code}] {self.message}",)
        for name, value in {"table": table, "version": version, "file": file}.items():
            if value is not None:
                self.facts.setdefault(name, value)
        return self

    def recoded(self, code: str) -> Self:
        """The same error under another error class, for those who know better which statement met it."""
        arguments = (f"[{code}] {self.message}",)
        error: Self = _restored(_public(type(self)), code, arguments, {**self.__dict__, "code": code})
        return error.with_traceback(self.__traceback__)

    # The names of pyspark.errors.PySparkException, so that programs written for delta-spark go on working.
    def getErrorClass(self) -> str:  # noqa: N802
        """The error class: `code`."""
        return self.code

    def getCondition(self) -> str:  # noqa: N802
        """The error class: `code`."""
        return self.code

    def getSqlState(self) -> str:  # noqa: N802
        """The SQL state that the reference has for this error class, or, for one of Tahoe's own, that of the class of errors."""
        return sql_state(self.code) or self.default_sql_state

    def getMessage(self) -> str:  # noqa: N802
        """The whole message, with the error class before it."""
        return str(self)

    def getMessageParameters(self) -> dict[str, str]:  # noqa: N802
        """`facts` as texts, by Tahoe's names for them."""
        return {name: str(value) for name, value in self.facts.items()}

    def getQueryContext(self) -> list[Any]:  # noqa: N802
        """Empty: the message says what part of a statement it means."""
        return []

    def getBreakingChangeInfo(self) -> None:  # noqa: N802
        """None: no error comes of a change of versions alone."""


def _with_place(message: str, parts: list[str], table: str | None) -> str:
    """A message that says where it happened: behind the table that it begins with, else before all."""
    begin, colon, rest = message.partition(": ")
    if colon and (begin == f"Table {table}" or begin.startswith(f"Table {table}, ")):
        return f"{', '.join([begin, *parts])}: {rest}"
    first, *others = parts
    return f"{', '.join([first[0].upper() + first[1:], *others])}: {message}"


def _public(error: type[TahoeError]) -> type[Any]:
    """The class of this module that an error has, with or without one of PySpark's beside it."""
    return next(known for known in error.__mro__ if "_public" not in known.__dict__)


_MADE: dict[tuple[type, type], type[Any]] = {}


def _made_of(error: type[TahoeError], pyspark: type[Exception]) -> type[Any]:
    # Named as the public class, which is what a stack trace and a log should show.
    names = {"__module__": error.__module__, "__qualname__": error.__qualname__, "__doc__": error.__doc__, "_public": error}
    return _MADE.setdefault((error, pyspark), type(error.__name__, (error, pyspark), names))


def _also_of_pyspark(error: type[TahoeError], code: str) -> type[Any]:
    """The class that is both `error` and what PySpark raises where the reference raises `code`; `error` where PySpark is not loaded."""
    pyspark = sys.modules.get("pyspark.errors")
    named = pyspark_exception(code) or error.default_pyspark_exception
    if pyspark is None or "_public" in error.__dict__ or not hasattr(pyspark, named):
        return error
    known: type[Exception] = getattr(pyspark, named)
    return _MADE.get((error, known)) or _made_of(error, known)


def _restored(public: type[TahoeError], code: str, arguments: tuple[Any, ...], state: dict[str, Any]) -> Any:
    error = public.__new__(public, *arguments, code=code)
    error.args = arguments
    error.__dict__.update(state)
    return error


class TahoeWarning(UserWarning):
    """What a caller should know though nothing failed: a setting that changes nothing here, a way of reading that is discouraged.

    Each is told once in a process; `warnings.filterwarnings` silences it or makes it an error.
    """


class InvalidRequest(TahoeError, ValueError):
    """The call cannot be right whatever the state of storage: change the call."""

    default_code = "TAHOE_INVALID_REQUEST"
    default_sql_state = "22023"
    default_pyspark_exception = "IllegalArgumentException"


class SchemaMismatch(InvalidRequest):
    """The data does not fit the table's schema."""

    default_code = "DELTA_METADATA_MISMATCH"
    default_pyspark_exception = "AnalysisException"


class InvariantViolation(InvalidRequest):
    """Rows break a constraint of the table: CHECK, NOT NULL, an invariant, or a generated column's expression."""

    default_code = "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"


class DeltaConcurrentModificationException(TahoeError):
    """Another writer committed first and what it did meets what this transaction read or changed."""

    default_code = "DELTA_CONCURRENT_WRITE"


class ConcurrentWriteException(DeltaConcurrentModificationException):
    """The version was taken by another writer and this commit may not be moved to a later one."""

    default_code = "DELTA_CONCURRENT_WRITE"


class MetadataChangedException(DeltaConcurrentModificationException):
    """The winner changed the table's metadata."""

    default_code = "DELTA_METADATA_CHANGED"


class ProtocolChangedException(DeltaConcurrentModificationException):
    """The winner changed the table's protocol."""

    default_code = "DELTA_PROTOCOL_CHANGED"


class ConcurrentAppendException(DeltaConcurrentModificationException):
    """The winner added files where this transaction read."""

    default_code = "DELTA_CONCURRENT_APPEND"


class ConcurrentDeleteReadException(DeltaConcurrentModificationException):
    """The winner removed a file that this transaction read."""

    default_code = "DELTA_CONCURRENT_DELETE_READ"


class ConcurrentDeleteDeleteException(DeltaConcurrentModificationException):
    """The winner removed a file that this transaction removes too."""

    default_code = "DELTA_CONCURRENT_DELETE_DELETE"


class ConcurrentTransactionException(DeltaConcurrentModificationException):
    """The winner wrote the same application transaction or metadata domain."""

    default_code = "DELTA_CONCURRENT_TRANSACTION"


class NotFound(TahoeError, LookupError):
    """What was named is not there: a table, a version, a file."""

    default_code = "DELTA_TABLE_NOT_FOUND"
    default_sql_state = "42704"
    default_pyspark_exception = "AnalysisException"


class StorageFailure(TahoeError, OSError):
    """Storage failed and nothing was changed: try again later."""

    default_code = "TAHOE_STORAGE_FAILURE"
    default_sql_state = "58030"


class CommitStateUnknown(StorageFailure):
    """The commit was sent, no answer came, and the log could not be read back: it may or may not have happened.

    Files that the commit would add are kept. Call `resolve()` when storage answers again, before trying again.
    """

    default_code = "TAHOE_COMMIT_STATE_UNKNOWN"

    def __init__(self, message: str, *, transaction_id: str, version: int, resolve: Callable[[], bool], **facts: Any) -> None:
        super().__init__(message, transaction_id=transaction_id, version=version, **facts)
        self.transaction_id = transaction_id
        self.version = version
        self._resolve = resolve

    def resolve(self) -> bool:
        """True when the commit is in the log, False when it is not; raises again while storage does not answer.

        False is said of now: a request that is still on its way may land later. Wait as long as storage lets requests live (minutes)
        before running the operation again.
        """
        return self._resolve()


class CorruptTable(TahoeError):
    """Files of the table contradict the specification or each other."""

    default_code = "TAHOE_CORRUPT_TABLE"


class ForeignWriter(TahoeError):
    """Another writer has changed the Iceberg side of the table, which is for reading only; nothing is converted until that is settled."""

    default_code = "TAHOE_UNIFORM_FOREIGN_WRITER"
    default_sql_state = "55000"


class Unsupported(TahoeError):
    """The table or the call needs something that this version of Tahoe does not do; the message names it."""

    default_code = "TAHOE_UNSUPPORTED"
    default_sql_state = "0A000"
    default_pyspark_exception = "UnsupportedOperationException"
