"""Steps after a commit must not fail its statement: the commit is in the log, and a user who sees an error would run it again."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

logger = logging.getLogger(__name__)


@contextmanager
def logged_after_commit(step: str, *arguments: object, extra: Mapping[str, object] | None = None) -> Iterator[None]:
    """Log an exception in the block, with its stack, instead of raising it.

    Use it only for steps after the last commit of a statement. A user's interrupt still ends the program.

    Args:
        step: the failed step, for the log, as a format of `logging`.
        arguments: values for that format.
        extra: fields of the log record; see `tahoe.base.log_fields.about`.
    """
    try:
        yield
    except Exception:
        logger.exception(step, *arguments, extra=extra)
