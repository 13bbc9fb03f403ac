"""Errors of Spark about Delta tables: printed with the user's lines and the table, without Java stacks, plan trees and frames of PySpark.

    Java exception ──about_tables──► does it concern a Delta table? ──no──► PySpark's own error, unchanged
                                                                   └─yes─► an error of the same class with a short text, marked

Python's hook and notebooks shorten the tracebacks of marked errors and of Tahoe's own (`tahoe.base.tracebacks`). The environment variable
TAHOE_TRACEBACK=1 keeps everything as PySpark has it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors.exceptions import captured
from pyspark.sql import SparkSession

from tahoe.base.exceptions import CorruptTable, NotFound, TahoeError
from tahoe.base.tracebacks import install_hook, is_users, is_whole, package_of, rendered
from tahoe.snapshot.arrow_reader import missing_file
from tahoe.spark.jvm.bridge import JavaObject
from tahoe.spark.jvm.errors import exception_text, stored_error, unwrapped, without_query_logs
from tahoe.spark.jvm.records import items
from tahoe.spark.names.entries import parts_of, table_named
from tahoe.spark.scan.file_index import FileIndex
from tahoe.spark.scan.renewal import text_of

_MARK = "_tahoe_short"
_ANALYSIS = "org.apache.spark.sql.AnalysisException"
_WITH_PLAN = "org.apache.spark.sql.catalyst.ExtendedAnalysisException"
_QUERY = "org.apache.spark.sql.streaming.StreamingQueryException"
_PARSE = "org.apache.spark.sql.catalyst.parser.ParseException"
_THROWABLE = "org.apache.spark.SparkThrowable"
_SCANNED = re.compile(r"(?:Tahoe|Tahoe, the newest version)\[(.+?), version (\d+), id ")
_IDENTIFIER = r"(?:`[^`]+`|\w+)"
_TARGET = re.compile(
    rf"\s*(?:MERGE\s+INTO|UPDATE|DELETE\s+FROM|INSERT\s+(?:INTO|OVERWRITE)(?:\s+TABLE)?)\s+({_IDENTIFIER}(?:\.{_IDENTIFIER})*)",
    re.IGNORECASE,
)
_USING_DELTA = re.compile(r"\bUSING\s+delta\b", re.IGNORECASE)
_OF_DELTA = frozenset({"DeleteFromTable", "UpdateTable", "MergeIntoTable"})
"""The nodes of statements that only Delta tables support in a session with Tahoe."""
_COMMAND_FRAME = "\tat tahoe.TableCommand."
"""In Java stacks of statements that Tahoe runs."""
_QUERY_STATE = "\n=== Streaming Query ==="
_UNREADABLE = "FAILED_READ_FILE"
_MOST_CAUSES = 10
_Convert = Callable[[JavaObject], BaseException]


class MissingDataFile(NotFound, Py4JJavaError):  # type: ignore[misc] # py4j has no types
    """A data file that a query needs is not in storage. It is a `Py4JJavaError` too, which PySpark raises for failed jobs."""


class UnreadableDataFile(CorruptTable, Py4JJavaError):  # type: ignore[misc] # py4j has no types
    """Spark cannot read a data file of a table. It is a `Py4JJavaError` too, which PySpark raises for failed jobs."""


def shorten_errors() -> None:
    """Shorten what users see of errors about Delta tables, in this process. A second call does nothing."""
    install_hook(is_short)
    if getattr(captured.convert_exception, "_tahoe_short", False):
        return
    convert = captured.convert_exception

    def convert_exception(java_error: JavaObject) -> BaseException:
        return convert(java_error) if is_whole() else _converted(convert, java_error)

    convert_exception._tahoe_short = True  # type: ignore[attr-defined]
    convert_exception._tahoe = True  # type: ignore[attr-defined]
    captured.convert_exception = convert_exception  # type: ignore[assignment]


def is_short(error: BaseException) -> bool:
    """Return whether users see only their own lines of an error: it is one of Tahoe's, or of Spark about a Delta table."""
    return isinstance(error, TahoeError) or hasattr(error, _MARK)


def _converted(convert: _Convert, java_error: JavaObject) -> BaseException:
    text = exception_text(java_error)
    if _UNREADABLE in text:
        unreadable = _unreadable_file(java_error)
        if unreadable is not None:
            return unreadable
    tables = _tables(java_error, text)
    if tables is None:
        return convert(java_error)
    with without_query_logs():
        error = convert(java_error)
    return _marked(error, tables) if isinstance(error, captured.CapturedException) else error


def _marked(error: captured.CapturedException, tables: tuple[str, ...]) -> BaseException:
    """Mark an error and shorten its text: without the plan tree or the state of a stream, with the names of the tables it lacks."""
    origin = error._origin
    text = str(error._desc).partition(_QUERY_STATE)[0].rstrip()
    if origin is not None and str(origin.getClass().getName()) == _WITH_PLAN:
        text = str(origin.getSimpleMessage())
    missing = [table for table in tables if table not in text]
    if missing:
        text = f"{text.rstrip(';')}\nTable{'s' if len(missing) > 1 else ''}: {', '.join(missing)}"
    error._desc = text
    marked: Any = error
    setattr(marked, _MARK, True)
    marked._render_traceback_ = lambda *_: rendered(error)
    return error


# -- does an exception concern a Delta table? --------------------------------------------------------------------------------


def _tables(java_error: JavaObject, text: str) -> tuple[str, ...] | None:
    """Return the tables of an exception that concerns Delta tables, as far as they are known; None for all other exceptions."""
    error = unwrapped(java_error)
    if str(error.getClass().getName()) == _QUERY:
        return () if isinstance(stored_error(text), TahoeError) else None
    gateway = SparkContext._gateway
    if is_instance_of(gateway, error, _ANALYSIS):
        tables = _planned(error) if str(error.getClass().getName()) == _WITH_PLAN else None
        tables = tables if tables is not None else _named(error)
        if tables is not None:
            return tables
    return () if _COMMAND_FRAME in text or _is_called_by_tahoe() else None


def _planned(error: JavaObject) -> tuple[str, ...] | None:
    """Return the Delta tables that the plan of a failed analysis scans; None if it has none."""
    plan = error.plan()
    if not plan.isDefined():
        return None
    texts = [text_of(leaf) or "" for leaf in items(plan.get().collectLeaves())]
    scans = [_SCANNED.match(text) for text in texts]
    tables = tuple(dict.fromkeys(scan[1] for scan in scans if scan is not None))
    return tables if tables or str(plan.get().nodeName()) in _OF_DELTA else None


def _named(error: JavaObject) -> tuple[str, ...] | None:
    """Return the Delta table in the exception's parameters, or that the failed statement changes; None if there is none."""
    spark = SparkSession.getActiveSession()
    if spark is None:
        return None
    try:
        parameters = error.getMessageParameters()
        names = [str(parameters.get(key)) for key in ("relationName", "tableName") if parameters.containsKey(key)]
        statements = _statements(error)
        names += [match[1] for match in map(_TARGET.match, statements) if match is not None]
        entries = [table_named(spark, parts_of(spark, name)) for name in names]
    except (Py4JError, captured.CapturedException):
        return None  # the statement's own error is what the user has to see
    tables = tuple(named.full_name for named in entries if named is not None)
    return tables if tables or any(map(_USING_DELTA.search, statements)) else None


def _statements(error: JavaObject) -> list[str]:
    """Return the SQL texts that the exception points into."""
    if is_instance_of(SparkContext._gateway, error, _PARSE):
        return [str(error.command().get())] if error.command().isDefined() else []
    contexts = [context for context in error.getQueryContext() if str(context.contextType().toString()) == "SQL"]
    return [str(context.sqlText().get()) for context in contexts if context.sqlText().isDefined()]


def _is_called_by_tahoe() -> bool:
    """Return whether the innermost caller of PySpark is Tahoe and not the user's program."""
    frame = sys._getframe(1)
    while frame is not None and not is_users(frame):
        name = str(frame.f_globals.get("__name__", ""))
        if package_of(frame) == "tahoe" and not name.startswith(("tahoe.spark.entry_points.", "tahoe.spark.jvm.")):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


# -- data files --------------------------------------------------------------------------------------------------------------


def _unreadable_file(java_error: JavaObject) -> TahoeError | None:
    """Return the error for a data file that Spark could not read; None if no Delta table is known to have it."""
    cause, condition, file = java_error, "", ""
    for _ in range(_MOST_CAUSES):
        if is_instance_of(SparkContext._gateway, cause, _THROWABLE) and str(cause.getCondition()).startswith(_UNREADABLE):
            condition, file = str(cause.getCondition()), str(cause.getMessageParameters().get("path"))
            break
        cause = cause.getCause()
        if cause is None:
            return None
    snapshot = FileIndex.snapshot_of(file) or FileIndex.snapshot_of(unquote(file))
    if snapshot is None:
        return None
    name = unquote(file.rpartition("/")[2])
    if condition == f"{_UNREADABLE}.FILE_NOT_EXIST":
        error: TahoeError = MissingDataFile(missing_file(name).message, code=condition, file=name)
        hint = f"FSCK REPAIR TABLE delta.`{snapshot.store.url}` removes it from the log."
    else:
        reason = str(cause.getCause().getMessage()) if cause.getCause() is not None else str(cause.getMessage())
        error = UnreadableDataFile(f"Spark cannot read data file '{name}': {reason.splitlines()[0]}", code=condition, file=name)
        hint = "Restore the file from a copy, or restore the table to an earlier version."
    java: Any = error
    java.java_exception, java.errmsg, java.exception_cmd = java_error, error.message, None
    return error.located(table=snapshot.store.url, version=snapshot.version).with_hint(hint)
