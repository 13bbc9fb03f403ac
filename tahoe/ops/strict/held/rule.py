"""What a rule is: a section of PROTOCOL.md, and a function that tells what breaks it.

    @rule("Append-only Tables")
    def append_only_tables_lose_nothing(step: Step) -> Breaches: ...

A rule looks at one subject (a commit in its place, a checkpoint, a data file) and knows nothing of the others. Its name is its code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["Breaches", "Broken", "Rule", "rule"]

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Broken:
    """How one file breaks a rule.

    Args:
        message: one sentence: what was found, and what was expected.
        file: the store's name of the file, or the path as the log spells it.
    """

    message: str
    file: str


Breaches = Iterator[str | Broken]
"""Sentences where the subject itself is what breaks the rule, `Broken` where it is a file that the subject names."""


@dataclass(frozen=True, slots=True)
class Rule(Generic[S]):
    """One demand of the specification.

    Args:
        section: of PROTOCOL.md, as its heading spells it.
        name: of the function, with hyphens; the violation's code.
        breaches: what in a subject breaks the rule.
    """

    section: str
    name: str
    breaches: Callable[[S], Breaches]


def rule(section: str) -> Callable[[Callable[[S], Breaches]], Rule[S]]:
    """Make a function a rule of a section."""

    def made(breaches: Callable[[S], Breaches]) -> Rule[S]:
        return Rule(section, breaches.__name__.replace("_", "-"), breaches)

    return made
