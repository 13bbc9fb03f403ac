"""Settings of a Spark session for a part of a test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

__all__ = ["with_settings"]


@contextmanager
def with_settings(spark: Any, settings: Mapping[str, str]) -> Iterator[None]:
    """Set the settings of a classic session, or of one of Spark Connect; restore the earlier ones afterwards."""
    before = {name: spark.conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)
