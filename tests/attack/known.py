"""Corruption that cannot be detected, by name and with its reason. All other corruption must be reported or harmless.

`docs/design/014-corruption.md` lists the same for users, with remedies. A test asserts that each entry is still needed.
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


_SILENT = ("wrong rows", "another version")


def _of_foreign_commits(*damages: str) -> Callable[[Failure], bool]:
    def covers(found: Failure) -> bool:
        # A changed name of a column is a valid name: a filter on the old name raises an error for a missing column.
        asks_for_another_name = found.detail.startswith("InvalidRequest: There is no column")
        silent = found.outcome in _SILENT or asks_for_another_name
        return silent and found.table == "foreign" and "commit" in found.case.kind and found.case.damage in damages

    return covers


def _newest_version_gone(found: Failure) -> bool:
    silent = found.outcome in _SILENT or found.question == "check"
    return silent and found.case.damage == "removed" and "newest commit gone with its checksum" in found.case.what


def _page_without_checksum(found: Failure) -> bool:
    return found.outcome == "wrong rows" and found.case.damage == "flipped" and "data" in found.case.kind


KNOWN: dict[str, Known] = {
    "the newest commit and its checksum are gone": Known(
        "What is left is the table as it was a version before. Only a handle that has seen the newer version can tell.",
        "plain",
        "removed",
        _newest_version_gone,
    ),
    "commits of other writers without checksums, exchanged": Known(
        "A commit without a seal does not say which version it is, and without a checksum nothing says what the version adds up to.",
        "foreign",
        "swapped",
        _of_foreign_commits("swapped", "copied", "moved", "removed"),
    ),
    "lines of commits of other writers without checksums": Known(
        "Each line is whole by itself; nothing says how many there were, nor what a value was before.",
        "foreign",
        "lost lines",
        _of_foreign_commits("lost lines", "repeated lines", "lost fields", "flipped", "truncated", "zeros", "appended"),
    ),
    "a flipped bit in a page without a checksum": Known(
        "Parquet's checksums of pages are optional; a value with another bit is a value.",
        "foreign",
        "flipped",
        _page_without_checksum,
    ),
}


def is_known(failure: Failure) -> bool:
    """Whether an answer is one of those that the list has."""
    return any(entry.covers(failure) for entry in KNOWN.values())
