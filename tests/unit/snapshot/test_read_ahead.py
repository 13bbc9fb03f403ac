"""Batches of several streams at once: in order, within bounds, and without a thread that stays."""

from __future__ import annotations

import threading
import time

import pytest

from tahoe.base.exceptions import NotFound
from tahoe.snapshot.read_ahead import read_ahead
from tests.unit.snapshot.streams import batch, no_thread_is_left


def test_batches_come_stream_by_stream_in_order_however_the_threads_run():
    def stream(number):
        def begin():
            for i in range(3):
                time.sleep(0.001 * ((number * 7) % 4))
                yield batch(number * 10 + i)

        return begin

    actual = read_ahead([stream(n) for n in range(40)], threads=4, most_open=4, most_bytes=1 << 20)
    assert [item.column(0)[0].as_py() for item in actual] == [n * 10 + i for n in range(40) for i in range(3)]
    assert no_thread_is_left()


def test_no_more_is_read_ahead_than_there_is_room_for():
    made = []

    def endless():
        while True:
            made.append(1)
            yield batch(0)

    size = batch(0).nbytes
    actual = read_ahead([endless, endless, endless], threads=3, most_open=3, most_bytes=10 * size)
    next(actual)
    assert no_thread_is_left(), "a caller who stops asking is left with no thread"
    assert len(made) <= 10 + 3 + 1
    for _ in range(200):
        next(actual)
    assert no_thread_is_left()
    assert len(made) <= 201 + 10 + 3
    actual.close()


def test_only_so_many_streams_are_begun_at_once():
    begun, most = set(), 0
    lock = threading.Lock()

    def stream(number):
        def begin():
            nonlocal most
            with lock:
                begun.add(number)
                most = max(most, len(begun))
            yield batch(number)
            with lock:
                begun.discard(number)

        return begin

    assert len(list(read_ahead([stream(n) for n in range(50)], threads=2, most_open=3, most_bytes=1 << 20))) == 50
    assert most <= 3


def test_an_error_comes_in_its_turn_after_the_rows_before_it():
    def fails():
        yield batch(1)
        raise NotFound("it is gone")

    actual = read_ahead([lambda: iter([batch(0)]), fails, lambda: iter([batch(2)])], threads=2, most_open=3, most_bytes=1 << 20)
    assert [next(actual).column(0)[0].as_py() for _ in range(2)] == [0, 1]
    with pytest.raises(NotFound, match="it is gone"):
        next(actual)
    assert no_thread_is_left()


def test_a_stream_that_is_left_in_the_middle_is_closed():
    closed = []

    def stream(number):
        def begin():
            try:
                while True:
                    yield batch(number)
            finally:
                closed.append(number)

        return begin

    actual = read_ahead([stream(0), stream(1)], threads=2, most_open=2, most_bytes=1000)
    next(actual)
    actual.close()
    assert no_thread_is_left()
    assert sorted(closed) in ([0], [0, 1])  # the second may not have begun


def test_a_keyboard_interrupt_while_waiting_ends_the_work(monkeypatch):
    gate = threading.Event()

    def slow():
        gate.wait(120)
        yield batch(0)

    actual = read_ahead([slow, slow], threads=2, most_open=2, most_bytes=1000)
    wait = threading.Condition.wait

    def interrupted(self, timeout=None):
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        return wait(self, timeout)

    monkeypatch.setattr(threading.Condition, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(actual)
    monkeypatch.undo()
    gate.set()
    assert no_thread_is_left()
