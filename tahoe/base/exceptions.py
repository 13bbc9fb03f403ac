"""Every error that Tahoe raises, grouped by the required reaction.

    TahoeError
    ├── InvalidRequest (ValueError)        change the call
    │   ├── SchemaMismatch                 change the data or the schema, or ask for evolution
    │   └── InvariantViolation             change the rows, or the constraint that they break
    ├── DeltaConcurrentModificationException   another writer won the race: read again, and retry if that still makes sense
    │   ├── ConcurrentWriteException
    │   ├── MetadataChangedException
    │   ├── ProtocolChangedException
    │   ├── ConcurrentAppendException
    │   ├── ConcurrentDeleteReadException
    │   ├── ConcurrentDeleteDeleteException
    │   └── ConcurrentTransactionException
    ├── NotFound (LookupError)             name another table, version or file
    ├── StorageFailure (OSError)           retry later
    │   └── CommitStateUnknown             call `resolve()` before a retry
    ├── CorruptTable                       repair the table
    ├── ForeignWriter                      resolve another writer's commit on the Iceberg side: `Table.uniform.repair`
    └── Unsupported                        upgrade Tahoe, or drop the feature from the table

Each error has a `code` (delta-spark's error class if it has one, e.g. ``DELTA_CONCURRENT_APPEND``) and `facts`: the table, version, file or
column concerned. The message ends with the remedy.

If PySpark is loaded, every error is also an exception that a program written for delta-spark catches: `pyspark.errors.PySparkException`,
and the subclass that delta-spark raises for this code (``AnalysisException``, ``IllegalArgumentException``, …). PySpark is never
imported for that: a program that names its classes has imported it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any, ClassVar, Self

from tahoe.base.error_classes import pyspark_exception, sql_state
from tahoe.base.tracebacks import is_whole, rendered

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
    """The base class of all errors of Tahoe.

    Args:
        message: the problem, with names, and the remedy.
        code: the stable error class, ``DELTA_…`` if delta-spark has one, otherwise ``TAHOE_…``.
        facts: names and values in the message (table, version, file, column, …).
    """

    default_code: ClassVar[str] = "TAHOE_ERROR"
    default_sql_state: ClassVar[str] = "XXKDS"
    """The SQL state of codes that delta-spark does not have: a system error, unless a subclass overrides it."""
    default_pyspark_exception: ClassVar[str] = "PySparkException"
    """The PySpark exception for codes that delta-spark does not have."""

    def __new__(cls, *arguments: Any, code: str | None = None, **facts: Any) -> Self:
        """Create an error of this class that is also one of PySpark's exceptions, if PySpark is loaded."""
        combined: type[Self] = _with_pyspark_base(cls, code or cls.default_code)
        return super().__new__(combined, *arguments)

    def __init__(self, message: str, *, code: str | None = None, **facts: Any) -> None:
        self.code = code or self.default_code
        self.facts = facts
        # No base class's __init__ is called: PySpark's accepts only Spark's own codes, OSError's interprets its arguments.
        self._set_message(message)

    def __str__(self) -> str:
        return f"[{self.code}] {self.message}"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the error by its public class; unpickling adds the PySpark base class if PySpark is loaded there."""
        return _restored, (_public(type(self)), self.code, self.args, self.__dict__)

    def located(self, *, table: str | None = None, version: int | None = None, file: str | None = None) -> Self:
        """Add the table, version and file to this error and its message if they are missing, and return it.

        Callers use it when they know more about the location than the code that raised the error.
        """
        parts = []
        if table is not None and table not in self.message:
            parts.append(f"Table {table}")
        if version is not None and not re.search(rf"ersion {version}\b", self.message):
            parts.append(f"version {version}")
        if file is not None and file not in self.message:
            parts.append(f"file '{file}'")
        if parts:
            self._set_message(_with_place(self.message, parts, self.facts.get("table", table)))
        for name, value in {"table": table, "version": version, "file": file}.items():
            if value is not None:
                self.facts.setdefault(name, value)
        return self

    def located_in(self, table: str) -> Self:
        """Add the URL of a table to this error and its message unless the error is about another table, and return it."""
        return self.located(table=table) if self.facts.get("table", table) == table else self

    def with_hint(self, sentence: str) -> Self:
        """Append a sentence to the message, and return this error; for callers that know the remedy."""
        self._set_message(f"{self.message} {sentence}")
        return self

    def _set_message(self, message: str) -> None:
        self.message = message
        self.args = (str(self),)

    def recoded(self, code: str) -> Self:
        """Return this error with another error class, for callers that know the statement."""
        arguments = (f"[{code}] {self.message}",)
        error: Self = _restored(_public(type(self)), code, arguments, {**self.__dict__, "code": code})
        return error.with_traceback(self.__traceback__)

    @property
    def _render_traceback_(self) -> Callable[..., list[str]]:
        """IPython's protocol: notebooks show the user's lines and the message, unless whole tracebacks are requested."""
        if is_whole():
            raise AttributeError("_render_traceback_")
        return lambda *_: rendered(self)

    # The names of pyspark.errors.PySparkException, so that programs written for delta-spark keep working.
    def getErrorClass(self) -> str:  # noqa: N802
        """The error class: `code`."""
        return self.code

    def getCondition(self) -> str:  # noqa: N802
        """The error class: `code`."""
        return self.code

    def getSqlState(self) -> str:  # noqa: N802
        """The SQL state of delta-spark for this error class, or the default of the Python class for Tahoe's own codes."""
        return sql_state(self.code) or self.default_sql_state

    def getMessage(self) -> str:  # noqa: N802
        """The complete message, preceded by the error class."""
        return str(self)

    def getMessageParameters(self) -> dict[str, str]:  # noqa: N802
        """`facts` as texts, by Tahoe's names."""
        return {name: str(value) for name, value in self.facts.items()}

    def getQueryContext(self) -> list[Any]:  # noqa: N802
        """An empty list: the message names the part of the statement."""
        return []

    def getBreakingChangeInfo(self) -> None:  # noqa: N802
        """None: no error is caused by a version change alone."""


def _with_place(message: str, parts: list[str], table: str | None) -> str:
    """Insert the location into a message: after the table at its beginning, otherwise before the whole message."""
    begin, colon, rest = message.partition(": ")
    if colon and (begin == f"Table {table}" or begin.startswith(f"Table {table}, ")):
        return f"{', '.join([begin, *parts])}: {rest}"
    first, *others = parts
    return f"{', '.join([first[0].upper() + first[1:], *others])}: {message}"


def _public(error: type[TahoeError]) -> type[Any]:
    """Return the class of this module, without the PySpark base class."""
    return next(base for base in error.__mro__ if "_public" not in base.__dict__)


_COMBINED: dict[tuple[type, type], type[Any]] = {}


def _combine(error: type[TahoeError], pyspark: type[Exception]) -> type[Any]:
    # Named like the public class, for stack traces and logs.
    names = {"__module__": error.__module__, "__qualname__": error.__qualname__, "__doc__": error.__doc__, "_public": error}
    return _COMBINED.setdefault((error, pyspark), type(error.__name__, (error, pyspark), names))


def _with_pyspark_base(error: type[TahoeError], code: str) -> type[Any]:
    """Return the class derived from `error` and PySpark's exception for `code`; `error` itself if PySpark is not loaded."""
    pyspark = sys.modules.get("pyspark.errors")
    named = pyspark_exception(code) or error.default_pyspark_exception
    if pyspark is None or "_public" in error.__dict__ or not hasattr(pyspark, named):
        return error
    base: type[Exception] = getattr(pyspark, named)
    return _COMBINED.get((error, base)) or _combine(error, base)


def _restored(public: type[TahoeError], code: str, arguments: tuple[Any, ...], state: dict[str, Any]) -> Any:
    error = public.__new__(public, *arguments, code=code)
    error.args = arguments
    error.__dict__.update(state)
    return error


class TahoeWarning(UserWarning):
    """A warning without a failure: a setting without effect, a discouraged way of reading.

    Each is issued once per process; `warnings.filterwarnings` silences it or makes it an error.
    """


class InvalidRequest(TahoeError, ValueError):
    """The call is invalid independent of the state of storage: change the call."""

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
    """A concurrent commit conflicts with the reads or changes of this transaction."""

    default_code = "DELTA_CONCURRENT_WRITE"


class ConcurrentWriteException(DeltaConcurrentModificationException):
    """Another writer took the version, and this commit must not be rebased to a later one."""

    default_code = "DELTA_CONCURRENT_WRITE"


class MetadataChangedException(DeltaConcurrentModificationException):
    """A concurrent commit changed the table's metadata."""

    default_code = "DELTA_METADATA_CHANGED"


class ProtocolChangedException(DeltaConcurrentModificationException):
    """A concurrent commit changed the table's protocol."""

    default_code = "DELTA_PROTOCOL_CHANGED"


class ConcurrentAppendException(DeltaConcurrentModificationException):
    """A concurrent commit added files that this transaction would have read."""

    default_code = "DELTA_CONCURRENT_APPEND"


class ConcurrentDeleteReadException(DeltaConcurrentModificationException):
    """A concurrent commit removed a file that this transaction read."""

    default_code = "DELTA_CONCURRENT_DELETE_READ"


class ConcurrentDeleteDeleteException(DeltaConcurrentModificationException):
    """A concurrent commit removed a file that this transaction removes too."""

    default_code = "DELTA_CONCURRENT_DELETE_DELETE"


class ConcurrentTransactionException(DeltaConcurrentModificationException):
    """A concurrent commit wrote the same application transaction or metadata domain."""

    default_code = "DELTA_CONCURRENT_TRANSACTION"


class NotFound(TahoeError, LookupError):
    """A named table, version or file does not exist."""

    default_code = "DELTA_TABLE_NOT_FOUND"
    default_sql_state = "42704"
    default_pyspark_exception = "AnalysisException"


class StorageFailure(TahoeError, OSError):
    """Storage failed and nothing was changed: retry later."""

    default_code = "TAHOE_STORAGE_FAILURE"
    default_sql_state = "58030"


class CommitStateUnknown(StorageFailure):
    """The commit was sent, no response arrived, and the log could not be read back: the commit may or may not exist.

    Files of the commit are kept. Call `resolve()` when storage responds again, before a retry.
    """

    default_code = "TAHOE_COMMIT_STATE_UNKNOWN"

    def __init__(self, message: str, *, transaction_id: str, version: int, resolve: Callable[[], bool], **facts: Any) -> None:
        super().__init__(message, transaction_id=transaction_id, version=version, **facts)
        self.transaction_id = transaction_id
        self.version = version
        self._resolve = resolve

    def resolve(self) -> bool:
        """Return whether the commit is in the log; raises again while storage does not respond.

        False describes the current state: a request in progress may still succeed. Before a retry, wait as long as storage keeps
        requests alive (minutes).
        """
        return self._resolve()


class CorruptTable(TahoeError):
    """Files of the table contradict the specification or each other."""

    default_code = "TAHOE_CORRUPT_TABLE"


class ForeignWriter(TahoeError):
    """Another writer has changed the read-only Iceberg side of the table; nothing is converted until that is resolved."""

    default_code = "TAHOE_UNIFORM_FOREIGN_WRITER"
    default_sql_state = "55000"


class Unsupported(TahoeError):
    """The table or the call requires a feature that this version of Tahoe does not support; the message names it."""

    default_code = "TAHOE_UNSUPPORTED"
    default_sql_state = "0A000"
    default_pyspark_exception = "UnsupportedOperationException"


for _name in __all__:
    globals()[_name].__module__ = "tahoe.exceptions"  # the public name, for tracebacks and pickles
