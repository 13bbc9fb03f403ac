"""A store of a bucket that came from another process, opened here."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import cast

from tahoe.exceptions import Unsupported
from tahoe.store.log_store import LogStore

__all__ = ["reopened"]


def reopened(url: str, options: Mapping[str, str]) -> LogStore:
    """The store that `tahoe.store.object_store.open_store` opens.

    Raises:
        Unsupported: ``TAHOE_NO_OBSTORE``: this Python, one of Spark's executors, lacks the package by which Tahoe reads buckets.
    """
    try:
        opened = import_module("tahoe.store.object_store").open_store(url, options)
    except ModuleNotFoundError as error:
        if error.name != "obstore":
            raise
        raise Unsupported(
            f"The Python of Spark's executors lacks the package obstore, by which Tahoe reads and writes {url}. Install it there "
            "(pip install obstore), or set PYSPARK_PYTHON to a Python that has it.",
            code="TAHOE_NO_OBSTORE",
            table=url,
        ) from error
    return cast(LogStore, opened)
