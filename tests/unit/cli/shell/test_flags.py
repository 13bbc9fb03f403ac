"""Flags of commands that are generated from the options of the operations."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

import pytest
import typer
from typer.testing import CliRunner

from tahoe.base.exceptions import InvalidRequest
from tahoe.base.method_options import ChangeOptions, option
from tahoe.cli.shell.arguments import AsJson
from tahoe.cli.shell.flags import Flags, with_flags


@dataclass(frozen=True, slots=True)
class Paint(ChangeOptions):
    """Options of every kind."""

    color: str | None = option(None, "--color", "-c", help="The color.")
    coats: int = option(1, "--coats", help="How many.")
    dries: bool = option(True, "--no-drying", help="Stay wet.")
    tin: int | None = option(None, "--tin", metavar="SIZE", help="The size of the tin.")
    walls: dict[str, str] | None = option(None, "--wall", metavar="COLUMN:TYPE", help="A wall.")
    secret: int = 7


SEEN: list[tuple[str, Flags, bool]] = []
app = typer.Typer()


@app.command()
@with_flags(Paint)
def paint(room: str, flags: Flags, json: AsJson = False) -> None:
    """Paint a room."""
    SEEN.append((room, flags, json))


def flags_of(*words: str) -> Flags:
    result = CliRunner().invoke(app, ["kitchen", *words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return SEEN.pop()[1]


def test_flags_left_out_have_the_defaults_of_the_options() -> None:
    assert flags_of() == {"color": None, "coats": 1, "dries": True, "tin": None, "walls": {}, "dry_run": False}


def test_flags_set_the_options() -> None:
    words = ("-c", "red", "--coats", "2", "--no-drying", "--tin", "2kb", "--wall", "a:date", "--wall", "b:int", "--dry-run")
    assert flags_of(*words) == {
        "color": "red",
        "coats": 2,
        "dries": False,
        "tin": 2048,
        "walls": {"a": "date", "b": "int"},
        "dry_run": True,
    }


def test_flags_are_listed_where_the_command_takes_them() -> None:
    names = list(inspect.signature(paint).parameters)
    assert names == ["room", "color", "coats", "no_dries", "tin", "walls", "dry_run", "json"]


def test_a_value_with_a_wrong_syntax_is_refused_by_the_name_of_the_flag() -> None:
    with pytest.raises(InvalidRequest, match="--target-size takes a size"):
        flags_of("--tin", "large")
    with pytest.raises(InvalidRequest, match="--partition-by takes a column and its type"):
        flags_of("--wall", "a")
