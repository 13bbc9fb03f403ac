"""What cannot be told, by name and with its reason. Everything that is not on this list must be told, or do no harm.

`docs/design/018-damage.md` says the same to users, and what they can do. A test asserts that each entry is still needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.attack.verdict import Failure

__all__ = ["KNOWN", "Known", "is_known"]


@dataclass(frozen=True)
class Known:
    """One damage that gives a wrong answer without a word, because nothing in the table contradicts it.

    Args:
        table, damage: where it is found still.
        covers: whether an answer is of this sort.
    """

    reason: str
    table: str
    damage: str
    covers: Callable[[Failure], bool]


KNOWN: dict[str, Known] = {}


def is_known(failure: Failure) -> bool:
    """Whether an answer is one of those that the list has."""
    return any(entry.covers(failure) for entry in KNOWN.values())
