"""Operations report their results to observers, and an observer that fails affects no operation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tahoe.base.events import Event, Fields, Finish, happened, observed, observing
from tahoe.base.exceptions import NotFound


class Recorder:
    """An observer that keeps the events."""

    def __init__(self, on: bool = True) -> None:
        self.on, self.begun, self.events = on, list[tuple[str, str]](), list[Event]()

    def is_on(self, name: str) -> bool:
        return self.on

    def begin(self, name: str, table: str) -> Finish:
        self.begun.append((name, table))
        return self.events.append

    def happened(self, event: Event) -> None:
        self.events.append(event)


class Failing:
    """An observer each of whose methods can fail."""

    def __init__(self, at: str) -> None:
        self.at = at

    def _fail(self, at: str) -> None:
        if at == self.at:
            raise RuntimeError(f"no {at}")

    def is_on(self, name: str) -> bool:
        self._fail("is_on")
        return True

    def begin(self, name: str, table: str) -> Finish:
        self._fail("begin")
        return lambda event: self._fail("finish")

    def happened(self, event: Event) -> None:
        self._fail("happened")


def test_an_operation_reports_its_result_with_its_duration() -> None:
    subject = object()
    with observing(recorder := Recorder()), observed("commit", "file:///t") as observation:
        observation.record(3, lambda: {"files_added": 2}, subject)
    (event,) = recorder.events
    assert recorder.begun == [("commit", "file:///t")]
    assert (event.name, event.table, event.version, event.fields) == ("commit", "file:///t", 3, {"files_added": 2})
    assert event.duration_ms is not None and event.duration_ms >= 0 and event.error is None and event.subject is subject


@pytest.mark.parametrize(("raised", "error"), [(NotFound("gone", code="TAHOE_GONE"), "TAHOE_GONE"), (KeyError("x"), "KeyError")])
def test_a_failed_operation_is_reported_with_the_code_or_class_of_its_error_and_still_raises(
    raised: Exception, error: str
) -> None:
    with pytest.raises(type(raised)), observing(recorder := Recorder()), observed("commit", "file:///t"):
        raise raised
    assert [event.error for event in recorder.events] == [error]


def test_something_without_a_duration_is_reported_at_once() -> None:
    with observing(recorder := Recorder()):
        happened("retry", "file:///t", 4, attempts=2)
    assert recorder.events == [Event("retry", "file:///t", 4, {"attempts": 2})]


def test_nothing_is_computed_or_kept_if_no_observer_is_on() -> None:
    def fields() -> Fields:
        raise AssertionError("computed")

    with observing(recorder := Recorder(on=False)):
        with observed("commit", "file:///t") as observation:
            observation.record(3, fields, object())
        happened("retry", "file:///t")
    assert recorder.events == recorder.begun == []
    assert observation._subject is None


@pytest.mark.parametrize("at", ["is_on", "begin", "finish", "happened"])
def test_an_observer_that_fails_is_logged_and_the_others_still_observe(at: str, caplog: pytest.LogCaptureFixture) -> None:
    with observing(Failing(at)), observing(recorder := Recorder()):
        with observed("commit", "file:///t") as observation:
            observation.record(1)
        happened("retry", "file:///t")
    assert [event.name for event in recorder.events] == ["commit", "retry"]
    assert f"no {at}" in caplog.text
    assert {(vars(record)["table"], record.levelname) for record in caplog.records} == {("file:///t", "ERROR")}


def test_fields_that_cannot_be_computed_are_left_out() -> None:
    broken: Callable[[], Fields] = lambda: {"files": 1 // 0}  # noqa: E731
    with observing(recorder := Recorder()), observed("commit", "file:///t") as observation:
        observation.record(1, broken)
    assert [(event.version, event.fields) for event in recorder.events] == [(1, {})]


def test_observers_finish_in_reverse_order_as_nested_spans_need() -> None:
    finished = list[str]()

    class Named(Recorder):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def begin(self, name: str, table: str) -> Finish:
            return lambda event: finished.append(self.name)

    with observing(Named("first")), observing(Named("second")), observed("commit", "file:///t"):
        pass
    assert finished == ["second", "first"]
