"""Operations that lost against a commit that only rearranged rows (OPTIMIZE, REORG): they are run again by themselves.

Such a winner changed nothing that an operation rests on, but the files in which its rows are; so it would be told of a conflict that
nobody made. Its rows are found anew in the files that came.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tahoe.exceptions import ConcurrentDeleteDeleteException, ConcurrentDeleteReadException

__all__ = ["again_where_rearranged"]

Result = TypeVar("Result")

_MOST_RUNS = 100


def again_where_rearranged(run: Callable[[], Result], *, can_run_again: bool = True) -> Result:
    """What the operation returns.

    Args:
        run: begins a transaction on the newest version, stages and commits.
        can_run_again: False where it takes rows that can be read once only.

    Raises: what it raises; a conflict with a commit that only rearranged rows when there were a hundred in a row.
    """
    for _ in range(_MOST_RUNS - 1 if can_run_again else 0):
        try:
            return run()
        except (ConcurrentDeleteReadException, ConcurrentDeleteDeleteException) as conflict:
            if not conflict.facts.get("only_rearranged"):
                raise
    return run()
