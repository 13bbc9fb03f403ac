"""Decides which sidecars of the previous checkpoint the next one names again, and which it rewrites. Pure.

A sidecar that lost no row stays. New files get a sidecar of their own, which absorbs the preceding ones unless they are much larger: rows
are rewritten once for each doubling of their sidecar, and there are few small sidecars.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["ROWS_IN_SIDECAR", "Written", "plan_sidecars", "rows_in_sidecar"]

ROWS_IN_SIDECAR = 50_000
"""The rows of a full sidecar, as in delta-spark, except in very large tables."""


@dataclass(frozen=True, slots=True)
class Written:
    """A sidecar to write, or several if there are too many rows for one.

    Args:
        members: the indexes of the old sidecars whose rows it contains, oldest first.
        takes_new: whether it also contains the new rows, after them.
    """

    members: tuple[int, ...]
    takes_new: bool


def rows_in_sidecar(total: int) -> int:
    """Return the rows of a full sidecar: a table has about twenty sidecars, regardless of its size, with at most half a million rows each."""
    return min(max(ROWS_IN_SIDECAR, -(-total // _USUAL_SIDECARS)), 10 * ROWS_IN_SIDECAR)


def plan_sidecars(rows: Sequence[int], changed: Sequence[bool], new: int, full: int) -> list[int | Written] | None:
    """Plan the sidecars of the next checkpoint in the order of the log: the index of an old sidecar that stays, or a sidecar to write.

    Args:
        rows: the number of rows that each old sidecar has left, in their order.
        changed: whether each old sidecar has lost any.
        new: the number of new rows.
        full: `rows_in_sidecar`.

    Returns:
        None if so many sidecars would be left that rewriting all of them is better.
    """
    groups: list[_Group] = []
    if new:
        groups.append(_Group([], new, True, takes_new=True))
    for number in reversed(range(len(rows))):
        if not rows[number]:
            continue
        item = _Group([number], rows[number], changed[number])
        if groups and _belong_together(item, groups[-1], full):
            last = groups[-1]
            groups[-1] = _Group([number, *last.members], last.rows + item.rows, True, last.takes_new)
        else:
            groups.append(item)
    groups.reverse()
    if len(groups) > _MOST_OVER + 2 * -(-(sum(rows) + new) // full):
        return None
    return [Written(tuple(group.members), group.takes_new) if group.is_written else group.members[0] for group in groups]


_USUAL_SIDECARS = 20
_MOST_OVER = 16


@dataclass(slots=True)
class _Group:
    """Neighbours that become one sidecar."""

    members: list[int]
    rows: int
    is_written: bool
    takes_new: bool = False


def _belong_together(older: _Group, newer: _Group, full: int) -> bool:
    """Whether to write both as one: they fit, and the group that could stay is not much larger than the group that must be written."""
    if older.rows + newer.rows > full or not (older.is_written or newer.is_written):
        return False
    if older.is_written and newer.is_written:
        return True
    written, staying = (older, newer) if older.is_written else (newer, older)
    return staying.rows <= 2 * written.rows
