"""One version of each table that a request to a Spark Connect server reads several times, as a self-join does.

Each read chooses its version in a process of its own on the server, so a concurrent commit could be in one of them and not in the other.
The client therefore names the version, with the table's id: at the same path, the server may have another table.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from tahoe.base.exceptions import TahoeError
from tahoe.settings.warn_once import warn_once
from tahoe.spark.connect.requests.server_source import table_with_options
from tahoe.spark.names.options import ReadRequest, path_option, read_request, travelling

_OPTION = "queryVersion"
_OWN_VALUE = re.compile(r"\d+:.+")


def forget_version(source: Any) -> None:
    """Remove the version of an earlier request from a read (``spark.connect.Read.DataSource``): the server returned it with a plan."""
    if _OWN_VALUE.fullmatch(source.options.get(_OPTION, "")):
        del source.options[_OPTION]


def read_one_version(spark: Any, sources: Iterable[Any]) -> None:
    """Set the version of the tables that several of these reads (``spark.connect.Read.DataSource``) read, apart from those with a version.

    Args:
        spark: the session of the request. If this process cannot read a table's log, a warning says so.
    """
    reads = defaultdict(list)
    for source in sources:
        path = path_of_newest(source)
        if path is not None:
            reads[path].append(source)
    for path, several in reads.items():
        version = _newest_version(spark, path, several[0].options) if len(several) > 1 else None
        for source in several if version is not None else ():
            source.options[_OPTION] = version


def path_of_newest(source: Any) -> str | None:
    """Return the path of a read of the newest version, or of changes up to it; None for every other read, and for an invalid one."""
    try:
        request = request_of(source)
    except TahoeError:  # the server raises it
        return None
    if request is None or request.version is not None or request.timestamp is not None:
        return None
    return request.path


def request_of(source: Any) -> ReadRequest | None:
    """Return the request of a read (``spark.connect.Read.DataSource``); None for a read without a path, or with several.

    Raises `InvalidRequest` for invalid options.
    """
    path = path_option(source.options) if not source.paths else source.paths[0]
    if path is None or len(source.paths) > 1:
        return None
    request = read_request(path, source.options, has_schema=False)
    return travelling(request) or request


def _newest_version(spark: Any, path: str, options: Mapping[str, str]) -> str | None:
    try:
        snapshot = table_with_options(spark, path, options).snapshot()
    except TahoeError as error:
        warn_once(
            f"no version of {path}",
            f"A query reads table '{path}' more than once. This client cannot read its log ({error}), so the query may read two versions if "
            "another writer commits meanwhile. Give the client access to the storage, or pass storage='server' to tahoe.enable.",
        )
        return None
    return f"{snapshot.version}:{snapshot.metadata.id}"
