"""Properties that are computed once, without making other instances wait."""

from __future__ import annotations

import ast
import threading
from pathlib import Path

import pytest

import tahoe
from tahoe.base.lazy import cached_property


class Counted:
    def __init__(self) -> None:
        self.computed = 0
        self.gate: threading.Barrier | None = None

    @cached_property
    def value(self) -> int:
        """How often this was computed."""
        self.computed += 1
        if self.gate is not None:
            self.gate.wait(60)
        return self.computed


def test_a_value_is_computed_once() -> None:
    counted = Counted()
    assert (counted.value, counted.value, counted.computed) == (1, 1, 1)
    assert "value" in counted.__dict__
    assert Counted.value.__doc__ == "How often this was computed."


def test_an_error_is_not_kept() -> None:
    class Fails:
        tries = 0

        @cached_property
        def value(self) -> int:
            self.tries += 1
            if self.tries == 1:
                raise ValueError("the first try fails")
            return self.tries

    fails = Fails()
    with pytest.raises(ValueError, match="first try"):
        _ = fails.value
    assert fails.value == 2


def test_two_instances_compute_at_the_same_time() -> None:
    gate = threading.Barrier(2)
    both = [Counted(), Counted()]
    for counted in both:
        counted.gate = gate  # passes only when both are inside
    threads = [threading.Thread(target=lambda counted=counted: counted.value) for counted in both]  # type: ignore[misc]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [counted.value for counted in both] == [1, 1]


def test_late_modules_are_those_that_type_checkers_see() -> None:
    """The imports under ``TYPE_CHECKING`` and the calls of `late_modules` name the same modules."""
    package = Path(tahoe.__file__).parent
    paths = [path for path in package.rglob("*.py") if "late_modules(" in path.read_text() and path.name != "lazy.py"]
    assert len(paths) > 4
    for path in paths:
        [block] = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.If) and node.orelse]
        imported = {
            alias.asname or alias.name: f"{node.module}.{alias.name}"
            for node in ast.walk(ast.Module(block.body, []))
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        for node in block.orelse:
            assert isinstance(node, ast.Assign)
            assert isinstance(node.targets[0], ast.Tuple)
            assert isinstance(node.value, ast.Call)
            parent, *names = [ast.literal_eval(argument) for argument in node.value.args]
            targets = [target.id for target in node.targets[0].elts if isinstance(target, ast.Name)]
            assert {name: imported[name] for name in targets} == {
                target: f"{parent}.{name}" for target, name in zip(targets, names, strict=True)
            }
