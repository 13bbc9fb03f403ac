"""The background queue: one conversion at a time, the newest wins, and errors do not reach the writer."""

from __future__ import annotations

import logging
from threading import Event

from tahoe.uniform.convert.queue import ConversionQueue

SECONDS = 120
"""Long enough that only a failing test times out."""


def test_while_one_runs_only_the_newest_waits():
    queue, started, go_on, done = ConversionQueue(), Event(), Event(), []

    def run(version: int) -> None:
        started.set()
        assert go_on.wait(SECONDS)
        done.append(version)

    queue.submit("t", run, 1)
    assert started.wait(SECONDS)
    for version in (1, 2, 4, 3, 5, 4):
        queue.submit("t", run, version)
    assert queue.is_busy("t")
    assert not queue.drain(0.01)
    go_on.set()
    assert queue.drain(SECONDS)
    assert done == [1, 5]
    assert not queue.is_busy("t")


def test_the_version_that_is_being_converted_is_not_queued_again():
    queue, started, go_on, done = ConversionQueue(), Event(), Event(), []

    def run(version: int) -> None:
        started.set()
        assert go_on.wait(SECONDS)
        done.append(version)

    queue.submit("t", run, 7)
    assert started.wait(SECONDS)
    queue.submit("t", run, 7)
    queue.submit("t", run, 6)
    go_on.set()
    assert queue.drain(SECONDS)
    assert done == [7]


def test_tables_do_not_wait_for_each_other():
    queue, go_on, done = ConversionQueue(), Event(), Event()
    queue.submit("slow", lambda version: go_on.wait(SECONDS), 1)
    queue.submit("quick", lambda version: done.set(), 1)
    assert done.wait(SECONDS)
    assert queue.drain(SECONDS, "quick")
    assert queue.is_busy("slow")
    go_on.set()
    assert queue.drain(SECONDS)


def test_an_error_is_logged_with_its_version_and_the_next_job_runs(caplog):
    queue, done = ConversionQueue(), []

    def fail(version: int) -> None:
        raise RuntimeError("the disk is full")

    with caplog.at_level(logging.ERROR, "tahoe.uniform.convert.queue"):
        queue.submit("file:///t", fail, 41)
        assert queue.drain(SECONDS)
    assert "version 41 of file:///t" in caplog.text
    assert "the disk is full" in caplog.text
    queue.submit("file:///t", done.append, 42)
    assert queue.drain(SECONDS)
    assert done == [42]
