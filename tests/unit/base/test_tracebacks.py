"""The user's part of a traceback, when Python or a notebook prints an error."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tahoe.base import tracebacks
from tahoe.base.exceptions import InvalidRequest, TahoeError
from tahoe.base.tracebacks import install_hook, only_users_part, rendered


@pytest.fixture(autouse=True)
def _as_users_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(tracebacks.VARIABLE, raising=False)


def module(name: str, source: str, file: str = "", **names: object) -> ModuleType:
    """Return a module of another package, with the functions of a source text."""
    made = ModuleType(name)
    vars(made).update(names)
    exec(compile(source, file or f"{name}.py", "exec"), vars(made))
    return made


RAISING = "def call(function):\n    function()"


def caught(function: Callable[[], object]) -> BaseException:
    try:
        function()
    except Exception as error:  # noqa: BLE001 - of any class
        return error
    raise AssertionError


def shown(error: BaseException) -> list[str]:
    """Return the names of the modules whose frames are printed, outermost first."""
    with only_users_part(error) as part:
        return [Path(frame.filename).stem for frame in traceback.extract_tb(part)]


def fail() -> None:
    raise InvalidRequest("no", code="TAHOE_X")


def test_frames_of_engines_and_of_packages_below_them_are_left_out() -> None:
    engine, spark, arrow = (
        module("tahoe.x", RAISING),
        module("pyspark.sql", RAISING),
        module("pa", RAISING, "/site-packages/pa.py"),
    )
    raising = module("tahoe.y", "def fail():\n    raise error", error=InvalidRequest("no", code="TAHOE_X"))
    error = caught(lambda: spark.call(lambda: engine.call(lambda: arrow.call(raising.fail))))
    assert set(shown(error)) == {"test_tracebacks"}
    assert {"sql", "tahoe.x", "pa"} & {Path(frame.filename).stem for frame in traceback.extract_tb(error.__traceback__)}


def test_frames_of_the_user_below_an_engine_and_of_packages_above_it_are_shown() -> None:
    library, engine = module("library", RAISING, "/site-packages/library.py"), module("tahoe.x", RAISING)
    error = caught(lambda: library.call(lambda: engine.call(fail)))
    assert "library" in shown(error)
    assert "tahoe.x" not in shown(error)
    assert rendered(error)[-2].strip() == 'raise InvalidRequest("no", code="TAHOE_X")'


def test_the_error_is_unchanged_afterwards() -> None:
    def fail_twice() -> None:
        try:
            raise KeyError("first")
        except KeyError as cause:
            raise InvalidRequest("no") from cause

    error = caught(fail_twice)
    before = error.__traceback__, error.__cause__, error.__context__, error.__suppress_context__
    with only_users_part(error):
        pass
    assert (error.__traceback__, error.__cause__, error.__context__, error.__suppress_context__) == before


@pytest.mark.parametrize(
    ("cause", "is_shown"),
    [
        (OSError("disk full"), True),
        (OSError("the reason"), False),
        (OSError("two\nlines"), False),
        (OSError("x" * 1000), False),
    ],
)
def test_a_cause_from_an_engine_is_shown_if_it_is_short_and_not_repeated(cause: Exception, is_shown: bool) -> None:
    engine = module("tahoe.x", "def fail():\n    raise error from cause", error=InvalidRequest("the reason is this"), cause=cause)
    text = "\n".join(rendered(caught(engine.fail)))
    assert ("direct cause" in text) == is_shown
    assert "the reason is this" in text


def test_an_error_that_the_user_handled_before_is_shown() -> None:
    def fail_while_handling() -> None:
        try:
            raise KeyError("first")
        except KeyError:
            fail()

    text = "\n".join(rendered(caught(fail_while_handling)))
    assert "During handling" in text
    assert "KeyError" in text


def test_the_hook_shortens_only_its_errors_and_passes_them_on(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Any, int]] = []

    def previous(kind: type[BaseException], error: BaseException, frames: Any) -> None:
        calls.append((error, len(traceback.extract_tb(frames))))

    monkeypatch.setattr(sys, "excepthook", previous)
    install_hook(lambda error: isinstance(error, TahoeError))
    installed = sys.excepthook
    install_hook(lambda error: False)
    assert sys.excepthook is installed, "once"
    engine = module("tahoe.x", RAISING)
    errors = [caught(lambda error=error: engine.call(lambda: raise_(error))) for error in (InvalidRequest("no"), ValueError())]
    for error in errors:
        sys.excepthook(type(error), error, error.__traceback__)
    monkeypatch.setenv(tracebacks.VARIABLE, "1")
    sys.excepthook(type(errors[0]), errors[0], errors[0].__traceback__)
    whole = len(traceback.extract_tb(errors[0].__traceback__))
    assert calls == [(errors[0], whole - 1), (errors[1], whole), (errors[0], whole)]


def raise_(error: Exception) -> None:
    raise error


def test_notebooks_find_the_method_unless_whole_tracebacks_are_requested(monkeypatch: pytest.MonkeyPatch) -> None:
    error: Any = caught(fail)
    assert error._render_traceback_()[-1].endswith("[TAHOE_X] no")
    assert error._render_traceback_(type(error), error, error.__traceback__)
    monkeypatch.setenv(tracebacks.VARIABLE, "1")
    assert not hasattr(error, "_render_traceback_")
