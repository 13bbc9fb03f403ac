"""What follows a commit cannot fail the statement that made it: the commit is in the log, and who is told of an error runs it again."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["logged_after_commit"]

logger = logging.getLogger(__name__)


@contextmanager
def logged_after_commit(step: str, *arguments: object) -> Iterator[None]:
    """Log what goes wrong in the block, with its stack, instead of raising it.

    Only what follows the last commit of a statement goes into such a block. An interrupt of the user still ends the program.

    Args:
        step: what failed, for the log, as a format of `logging`.
        arguments: values for that format.
    """
    try:
        yield
    except Exception:
        logger.exception(step, *arguments)
