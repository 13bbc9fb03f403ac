"""The limits of the size and depth of an expression, and the errors for rejected text."""

from __future__ import annotations

from tahoe.base.exceptions import InvalidRequest

MAX_LENGTH = 4_000_000
"""Characters that a text may have: a bound on the work that it can ask for."""
MOST_LEVELS = 100
"""The greatest nesting depth of operations or parentheses: evaluation is recursive, and Python's stack allows this depth in any caller."""


def check_length(text: str) -> None:
    """Raise where the text is longer than `MAX_LENGTH`."""
    if len(text) > MAX_LENGTH:
        raise InvalidRequest(
            f"The condition has {len(text)} characters; at most {MAX_LENGTH} are read. Shorten it.",
            code="TAHOE_EXPRESSION_TOO_LONG",
        )


def too_deep(text: str, levels: int | None = None) -> InvalidRequest:
    """The error for an expression that is nested deeper than Python can follow.

    Args:
        levels: of the expression; None where it was not read to its depth.
    """
    depth = f"{levels} operations stand inside one another" if levels else f"{_open_brackets(text)} brackets are open at once"
    return InvalidRequest(
        f"'{short(text)}' ({len(text)} characters) is nested too deep: {depth}; {MOST_LEVELS} operations inside one another are allowed, "
        "and as many brackets. Chains of AND and OR count once, however long they are: write it flatter, or store a part of it in a "
        "column.",
        code="TAHOE_EXPRESSION_TOO_DEEP",
        condition=text[:1000],
    )


def refused(part: str, reason: str) -> InvalidRequest:
    """The error for a part of an expression, in the user's words, that is not on the allow-list."""
    return InvalidRequest(
        f"The condition contains '{short(part)}': {reason}.", code="TAHOE_EXPRESSION_NOT_ALLOWED", expression=part[:1000]
    )


def no_condition(text: str, reason: str) -> InvalidRequest:
    """The error for a text that is no expression at all."""
    return InvalidRequest(f"'{short(text)}' is no SQL condition: {reason}.", code="PARSE_SYNTAX_ERROR", condition=text[:1000])


def short(text: str) -> str:
    """The text, or its beginning where it is long."""
    return text if len(text) <= 120 else text[:117] + "..."


def _open_brackets(text: str) -> int:
    opened = deepest = 0
    for sign in text:
        opened += (sign in "([") - (sign in ")]")
        deepest = max(deepest, opened)
    return deepest
