"""The cases whose outcome over Spark Connect is not that of a classic session: `connect_differences.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from enum import StrEnum

from tests.conformance.cases import HERE

__all__ = ["ConnectDifference", "Kind", "kind_of", "load_connect_differences"]

CONNECT_DIFFERENCES = HERE / "connect_differences.toml"


class Kind(StrEnum):
    """What happens in place of a classic session's outcome."""

    REFUSED = "refused"
    """An error, where a classic session has none."""
    ERROR = "another error"
    """An error of another name."""
    RESULT = "another result"
    """Other rows or columns, or no error."""


_BEGINNINGS = {
    "a step before": Kind.REFUSED,
    "an error was raised": Kind.REFUSED,
    "the query after": Kind.REFUSED,
    "the error is": Kind.ERROR,
    "the message lacks": Kind.ERROR,
}


@dataclass(frozen=True)
class ConnectDifference:
    """One case of a group with the same reason."""

    kind: Kind
    reason: str


def load_connect_differences() -> dict[str, ConnectDifference]:
    """The differences by the id of their case.

    Raises:
        ValueError: a case is in two groups.
    """
    differences: dict[str, ConnectDifference] = {}
    for group in tomllib.loads(CONNECT_DIFFERENCES.read_text(encoding="utf-8"))["group"]:
        for case in group["cases"]:
            if case in differences:
                raise ValueError(f"{CONNECT_DIFFERENCES.name}: {case!r} is in two groups")
            differences[case] = ConnectDifference(Kind(group["kind"]), group["reason"])
    return differences


def kind_of(failure: str) -> Kind:
    """The kind of a difference that `tests.conformance.engines.failure_of` describes."""
    return next((kind for beginning, kind in _BEGINNINGS.items() if failure.startswith(beginning)), Kind.RESULT)
