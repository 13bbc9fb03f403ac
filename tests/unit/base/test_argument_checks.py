"""Arguments compared with annotations, and converted where they have one clear meaning."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import pytest

from tahoe.base.argument_checks import WrongArgument, checked_arguments
from tahoe.base.exceptions import InvalidRequest


@checked_arguments
def taken(
    version: int | None = None,
    columns: Sequence[str] = (),
    *more: str,
    flag: bool = False,
    ratio: float = 0.5,
    at: str | dt.date | None = None,
    source: Literal["a", "b"] = "a",
    properties: Mapping[str, str] | None = None,
    app: tuple[str, int] | None = None,
    **others: Any,
) -> tuple[Any, ...]:
    """Its own arguments."""
    return version, columns, more, flag, ratio, at, source, properties, app, others


@pytest.mark.parametrize(
    ("arguments", "place", "result"),
    [
        ({"version": 3}, 0, 3),
        ({"version": np.int64(3)}, 0, 3),
        ({"columns": "id"}, 1, ("id",)),
        ({"columns": ["a", "b"]}, 1, ("a", "b")),
        ({"columns": (name for name in "ab")}, 1, ("a", "b")),
        ({"flag": np.True_}, 3, True),
        ({"ratio": 1}, 4, 1),
        ({"ratio": Decimal("0.25")}, 4, 0.25),
        ({"at": dt.datetime(2026, 1, 1)}, 5, dt.datetime(2026, 1, 1)),
        ({"source": "b"}, 6, "b"),
        ({"properties": {"a": True, "b": 7, "c": "x"}}, 7, {"a": "true", "b": "7", "c": "x"}),
        ({"app": ("etl", 7)}, 8, ("etl", 7)),
        ({"unknown": object}, 9, {"unknown": object}),
    ],
)
def test_accepted_values(arguments: dict[str, Any], place: int, result: Any) -> None:
    assert taken(**arguments)[place] == result
    assert type(taken(**arguments)[place]) is type(result)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"version": "3"}, r"taken\(\): 'version' must be a whole number, found '3' \(str\)\. Write version=3, without quotes\."),
        ({"version": True}, r"'version' must be a whole number, found True \(bool\)"),
        ({"version": 3.0}, r"'version' must be a whole number, found 3\.0 \(float\)"),
        ({"columns": ["a", 5]}, r"'columns' must be a name or a list of names, found \['a', 5\] \(list\)"),
        ({"columns": {"a": 1}}, "'columns' must be a name or a list of names"),
        ({"columns": None}, "'columns' must be a name or a list of names, found None"),
        ({"flag": "false"}, r"'flag' must be True or False, found 'false' \(str\)"),
        ({"flag": 1}, "'flag' must be True or False, found 1"),
        ({"ratio": "0.5"}, "'ratio' must be a number"),
        ({"source": "c"}, "'source' must be one of 'a', 'b', found 'c'"),
        ({"source": []}, r"'source' must be one of 'a', 'b', found \[\]"),
        ({"properties": {"a": None}}, "'properties' must be a mapping of texts to texts"),
        ({"properties": [("a", "b")]}, "'properties' must be a mapping of texts to texts"),
        ({"app": ("etl", "7")}, "'app' must be an application id"),
    ],
)
def test_refused_values(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(WrongArgument, match=message) as raised:
        taken(**arguments)
    assert isinstance(raised.value, TypeError) and isinstance(raised.value, InvalidRequest)
    assert (raised.value.code, raised.value.facts["parameter"]) == ("TAHOE_WRONG_ARGUMENT", next(iter(arguments)))


def test_arguments_by_position_are_checked_too() -> None:
    assert taken(1, "id", "x", "y")[1:3] == (("id",), ("x", "y"))
    with pytest.raises(WrongArgument, match="'more' must be a text, found 7"):
        taken(1, "id", "x", 7)  # type: ignore[arg-type]


@checked_arguments
class Checked:
    def __init__(self, name: str) -> None:
        self.name = name

    @classmethod
    def made(cls, name: str) -> Checked:
        return cls(name)

    @staticmethod
    def doubled(number: int) -> int:
        return 2 * number

    def same(self, other: Checked | None) -> bool:
        """Docs."""
        return other is self

    def _private(self, name: str) -> str:
        return name


def test_a_class_is_checked_in_its_public_methods() -> None:
    made = Checked.made("a")
    assert made.same(made) and Checked.doubled(2) == 4 and made._private(5) == 5  # type: ignore[arg-type]
    assert Checked.same.__doc__ == "Docs."
    for call in (lambda: Checked(5), lambda: Checked.made(5), lambda: Checked.doubled("5"), lambda: made.same("a")):  # type: ignore[arg-type]
        with pytest.raises(WrongArgument):
            call()
