"""Opens a bucket's store that was sent from another process."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import cast

from tahoe.base.exceptions import Unsupported
from tahoe.store.log_store import LogStore


def reopened(url: str, options: Mapping[str, str]) -> LogStore:
    """Return the store from `tahoe.store.object_store.open_store`.

    Raises:
        Unsupported: ``TAHOE_NO_OBSTORE``: this Python, on one of Spark's executors, lacks the package with which Tahoe reads buckets.
    """
    try:
        opened = import_module("tahoe.store.object_store").open_store(url, options)
    except ModuleNotFoundError as error:
        if error.name != "obstore":
            raise
        raise Unsupported(
            f"The Python of Spark's executors lacks the package obstore, with which Tahoe reads and writes {url}. Install it there "
            "(pip install obstore), or set PYSPARK_PYTHON to a Python that has it.",
            code="TAHOE_NO_OBSTORE",
            table=url,
        ) from error
    return cast(LogStore, opened)
