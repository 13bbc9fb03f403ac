"""Properties that are computed once, without making other instances wait."""

from __future__ import annotations

import threading

import pytest

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
