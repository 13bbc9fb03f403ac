"""Progress: the reports of operations, and their receivers."""

from __future__ import annotations

import io
import sys
import time

import pytest
from rich.console import Console

from tahoe.base.clock import SeededClock
from tahoe.base.progress import PATIENCE_MS, Progress, Reported, shown, silent, tracked


def terminal() -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, force_terminal=True, width=100), text


def test_tracked_items_are_counted_when_they_are_done() -> None:
    progress = Reported()
    assert list(tracked(["a", "b"], progress, "files read")) == ["a", "b"]
    assert progress.reports == [("files read", 0, 2), ("files read", 1, 2), ("files read", 2, 2)]


def test_the_total_of_an_iterator_is_not_known_unless_given() -> None:
    progress = Reported()
    list(tracked(iter("ab"), progress, "files"))
    list(tracked(iter("ab"), progress, "files", total=2))
    assert [total for _, _, total in progress.reports] == [None] * 3 + [2] * 3


def test_a_step_of_less_than_two_seconds_shows_nothing() -> None:
    console, text = terminal()
    with shown(SeededClock(), console=console) as progress:
        for done in range(100):
            progress("commits read", done, 100)
    assert text.getvalue() == ""


def test_a_longer_step_is_shown_and_then_removed() -> None:
    console, text = terminal()
    clock = SeededClock()
    with shown(clock, console=console) as progress:
        progress("commits [read]", 1, 300)
        clock.sleep(PATIENCE_MS / 1000)
        progress("commits [read]", 200, 300)
    assert "commits [read]" in text.getvalue() and "200/300" in text.getvalue()
    assert text.getvalue().endswith("\x1b[2K")


def test_a_single_report_is_shown_after_two_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    console, text = terminal()
    monkeypatch.setattr("tahoe.base.progress.PATIENCE_MS", 20)
    with shown(console=console) as progress:
        progress("files searched", 0, 1)
        deadline = time.monotonic() + 120
        while "files searched" not in text.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert "0/1" in text.getvalue() and text.getvalue().endswith("\x1b[2K")


def test_a_terminal_that_is_closed_ends_the_bar_and_not_the_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    console, text = terminal()
    clock = SeededClock()
    with shown(clock, console=console) as progress:
        clock.sleep(PATIENCE_MS / 1000)
        progress("commits read", 1, 300)
        text.close()
        for done in range(2, 10):
            clock.sleep(1)
            progress("commits read", done, 300)
            progress("files read", done, 300)
    monkeypatch.setattr(sys, "stderr", text)
    with shown(clock) as progress:
        assert progress is silent


def test_the_outer_operation_keeps_the_bar() -> None:
    console, text = terminal()
    with shown(SeededClock(), console=console) as outer, shown(SeededClock(), console=console) as inner:
        assert outer is not silent and inner is silent
    with shown(SeededClock(), console=console) as afterwards:
        assert afterwards is not silent
    assert text.getvalue() == ""


def test_an_operation_that_fails_takes_its_bar_down() -> None:
    console, _ = terminal()
    clock = SeededClock()

    def fails(progress: Progress) -> None:
        clock.sleep(PATIENCE_MS)
        progress("files", 1)
        raise KeyError("x")

    with pytest.raises(KeyError), shown(clock, console=console) as progress:
        fails(progress)
    with shown(clock, console=console) as progress:
        assert progress is not silent
    progress("files", 2)  # a caller that keeps it longer than the operation reports to nobody


def test_pipes_and_files_see_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with shown() as progress:
        assert progress is silent
    monkeypatch.setattr(sys, "stderr", None)
    with shown() as progress:
        assert progress is silent
