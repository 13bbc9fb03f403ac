"""Automatic retries of operations that conflict with a commit that only rearranged rows (OPTIMIZE, REORG).

Such a commit changed nothing that the operation depends on, except the files of the rows, so the user should not see a conflict. The
operation finds its rows again in the new files.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tahoe.base.exceptions import ConcurrentDeleteDeleteException, ConcurrentDeleteReadException

Result = TypeVar("Result")

_MOST_RUNS = 100


def retry_if_rearranged(run: Callable[[], Result], *, can_run_again: bool = True) -> Result:
    """Return the result of the operation.

    Args:
        run: begins a transaction on the newest version, stages and commits.
        can_run_again: False if it consumes rows that can be read only once.

    Raises: its errors; a conflict with a commit that only rearranged rows after a hundred in a row.
    """
    for _ in range(_MOST_RUNS - 1 if can_run_again else 0):
        try:
            return run()
        except (ConcurrentDeleteReadException, ConcurrentDeleteDeleteException) as conflict:
            if not conflict.facts.get("only_rearranged"):
                raise
    return run()
