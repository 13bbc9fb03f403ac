"""`Rule`, a section of PROTOCOL.md with a function that yields its violations.

    @rule("Append-only Tables")
    def append_only_tables_lose_nothing(step: Step) -> Breaches: ...

A rule checks one subject (a commit in sequence, a checkpoint, a data file) independently of the others. Its name is its code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["Breaches", "Broken", "Rule", "rule"]

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Broken:
    """A violation of a rule by one file.

    Args:
        message: one sentence with the actual and the expected value.
        file: the store's name of the file, or the path as in the log.
    """

    message: str
    file: str


Breaches = Iterator[str | Broken]
"""Sentences if the subject itself breaks the rule, `Broken` if a file that the subject names does."""


@dataclass(frozen=True, slots=True)
class Rule(Generic[S]):
    """One requirement of the specification.

    Args:
        section: of PROTOCOL.md, as its heading spells it.
        name: of the function, with hyphens; the violation's code.
        breaches: yields the violations in a subject.
    """

    section: str
    name: str
    breaches: Callable[[S], Breaches]


def rule(section: str) -> Callable[[Callable[[S], Breaches]], Rule[S]]:
    """Make a function a rule of a section."""

    def made(breaches: Callable[[S], Breaches]) -> Rule[S]:
        return Rule(section, breaches.__name__.replace("_", "-"), breaches)

    return made
