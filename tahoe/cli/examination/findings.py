"""A finding: the outcome of one examination, as a sentence with a remedy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """The outcome of one examination."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"
    NOT_EXAMINED = "not examined"


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one examination: a sentence, and the remedy unless it is `State.OK`.

    The sentence of `State.NOT_EXAMINED` is the reason, and the remedy a way to learn it.
    """

    subject: str
    state: State
    sentence: str
    remedy: str = ""
