"""Defaults and comments in the column specifications of each Spark version."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tahoe.spark.versions.column_specs import drops_comment, new_default


def option(value: Any) -> Any:
    return SimpleNamespace(isDefined=lambda: value is not None, get=lambda: value)


def spec(release: str, default: Any, **flags: bool) -> Any:
    """An ``AlterColumnSpec`` with the fields of a release."""
    kind = SimpleNamespace(getName=lambda: f"spark.AlterColumnSpec of {release}")
    names = SimpleNamespace(mkString=lambda separator: separator.join(("newDefaultExpression", *flags)))
    methods = {name: lambda value=value: value for name, value in flags.items()}
    return SimpleNamespace(
        getClass=lambda: kind, productElementNames=lambda: names, newDefaultExpression=lambda: option(default), **methods
    )


EXPRESSION = SimpleNamespace(originalSQL=lambda: "1 + 1")


@pytest.mark.parametrize(
    ("column", "default", "no_comment"),
    [
        (spec("4.0", None), None, False),
        (spec("4.0", "1 + 1"), "1 + 1", False),
        (spec("4.0", ""), "", False),
        (spec("4.1", EXPRESSION, dropDefault=False), "1 + 1", False),
        (spec("4.1", None, dropDefault=True), "", False),
        (spec("4.3", None, dropDefault=False, dropComment=True), None, True),
        (spec("4.3", EXPRESSION, dropDefault=False, dropComment=False), "1 + 1", False),
    ],
    ids=["4.0 none", "4.0 set", "4.0 drop", "4.1 set", "4.1 drop", "4.3 drop comment", "4.3 set"],
)
def test_each_release_says_the_same(column: Any, default: str | None, no_comment: bool) -> None:
    assert (new_default(column), drops_comment(column)) == (default, no_comment)
