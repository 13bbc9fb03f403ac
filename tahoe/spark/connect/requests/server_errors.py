"""Errors of Tahoe in processes of a Spark Connect server: the client raises them, in place of Spark's error around their traceback."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NoReturn

from pyspark.errors import PySparkException

from tahoe.base import exceptions
from tahoe.base.exceptions import CommitStateUnknown, TahoeError
from tahoe.spark.connect.requests import client_requests

_IN_TRACEBACK = re.compile(
    r"^tahoe\.(?:base\.)?exceptions\.(?P<kind>\w+): \[(?P<code>\w+(?:\.\w+)*)\] (?P<message>.*?)"
    r"(?=\s*(?:\n ?SQLSTATE: \w+|\n+JVM stacktrace:|\n\s*at [\w.$]+\(|\n\tat |\Z))",
    re.MULTILINE | re.DOTALL,
)


def handle_error(original: Callable[..., NoReturn], client: Any, *arguments: Any, **named: Any) -> NoReturn:
    """Run ``SparkConnectClient._handle_error``, and raise Tahoe's error if there is one in the server's."""
    try:
        original(client, *arguments, **named)
    except PySparkException as raised:
        # An error of the analysis shows expressions, and with them texts for `raise_error` that no row raised.
        is_raised = client_requests.is_enabled(client) and not str(raised.getCondition()).startswith("DATATYPE_MISMATCH")
        inside = error_of_tahoe(str(raised)) if is_raised else None
        if inside is None:
            raise
        raise inside from None


def error_of_tahoe(text: str) -> TahoeError | None:
    """Return the error in the text of a server's error; None if there is none."""
    match = _IN_TRACEBACK.search(text)
    kind = None if match is None else getattr(exceptions, match["kind"], None)
    if match is None or not isinstance(kind, type) or not issubclass(kind, TahoeError):
        return None
    if kind is CommitStateUnknown:  # its other facts are not in the text
        return None
    return kind(match["message"], code=match["code"])


def error_text(error: TahoeError) -> str:
    """Return the text with which an expression raises an error on the server (`pyspark.sql.functions.raise_error`)."""
    return f"\ntahoe.exceptions.{type(error).__name__}: {error}"
