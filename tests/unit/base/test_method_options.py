"""Options of operations, defined once as the fields of dataclasses."""

from __future__ import annotations

import inspect
from dataclasses import KW_ONLY, dataclass

import pytest

from tahoe.base.argument_checks import WrongArgument, checked_arguments
from tahoe.base.method_options import ChangeOptions, arguments_of, values_of


@dataclass(frozen=True, slots=True)
class Paint(ChangeOptions):
    """The options of a paint.

    Args:
        color: the color,
            mixed.
    """

    color: str = "red"
    _: KW_ONLY
    coats: int = 1


@checked_arguments
class Wall:
    @arguments_of(Paint)
    def painted(self, options: Paint) -> Paint:
        """Return the options."""
        return options


def test_callers_pass_the_fields_as_arguments() -> None:
    assert Wall().painted("blue", coats=2, dry_run=True) == Paint("blue", coats=2, dry_run=True)
    assert Wall().painted() == Paint()


def test_the_signature_has_the_fields_with_the_inherited_ones_last() -> None:
    assert str(inspect.signature(Wall.painted)) == (
        "(self, color: 'str' = 'red', *, coats: 'int' = 1, dry_run: 'bool' = False, user_metadata: 'str | None' = None) -> 'Paint'"
    )


def test_the_documentation_has_the_description_of_each_field() -> None:
    lines = inspect.getdoc(Wall.painted).splitlines()  # type: ignore[union-attr]
    assert lines[:5] == ["Return the options.", "", "Args:", "    color: the color,", "        mixed."]
    assert "    dry_run: report the effect and commit nothing." in lines


def test_a_wrong_argument_is_refused_by_the_name_of_the_method() -> None:
    with pytest.raises(WrongArgument, match=r"painted\(\): 'coats' must be a whole number, found 'two'"):
        Wall().painted(coats="two")  # type: ignore[arg-type]
    with pytest.raises(
        TypeError, match=r"^Wall\.painted\(\) got an unexpected keyword argument 'floor'\. Did you mean 'color'\? "
    ):
        Wall().painted(floor=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^Wall\.painted\(\) takes from 1 to 2 positional arguments but 3 were given$"):
        Wall().painted("blue", 2)  # type: ignore[call-arg, misc]


def test_values_of_a_base_class_are_those_of_its_fields() -> None:
    assert values_of(Paint(dry_run=True), ChangeOptions) == {"dry_run": True, "user_metadata": None}
