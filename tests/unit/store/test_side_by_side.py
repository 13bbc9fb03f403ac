"""Requests at the same time."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tahoe.store.object_store import open_store
from tahoe.store.side_by_side import both, each, in_threads, one_ahead


def test_both_calls_run_at_the_same_time_on_an_object_store() -> None:
    meeting = threading.Barrier(2, timeout=60)
    assert both(open_store("memory://side-by-side"), meeting.wait, meeting.wait) in [(0, 1), (1, 0)]


def test_a_local_store_makes_the_calls_in_order(tmp_path: Path) -> None:
    order: list[int] = []
    both(open_store(tmp_path), lambda: order.append(1), lambda: order.append(2))
    assert order == [1, 2]


@pytest.mark.parametrize("url", ["memory://side-by-side", "local"])
def test_the_first_error_wins(url: str, tmp_path: Path) -> None:
    def fail(error: Exception) -> None:
        raise error

    store = open_store(tmp_path if url == "local" else url)
    with pytest.raises(ValueError, match="first"):
        both(store, lambda: fail(ValueError("first")), lambda: fail(KeyError("second")))
    with pytest.raises(KeyError, match="second"):
        both(store, lambda: None, lambda: fail(KeyError("second")))


def test_each_item_is_called_at_the_same_time_on_an_object_store_and_the_results_keep_their_order() -> None:
    meeting = threading.Barrier(3, timeout=60)

    def double(number: int) -> int:
        meeting.wait()
        return 2 * number

    assert each(open_store("memory://side-by-side"), double, [3, 1, 2]) == [6, 2, 4]


def test_each_item_is_called_in_order_on_a_local_store(tmp_path: Path) -> None:
    order: list[int] = []
    each(open_store(tmp_path), order.append, [3, 1, 2])
    assert order == [3, 1, 2] and each(open_store(tmp_path), order.append, []) == []


def test_the_error_of_the_first_item_wins() -> None:
    def fail(number: int) -> None:
        raise ValueError(number)

    with pytest.raises(ValueError, match="3"):
        each(open_store("memory://side-by-side"), fail, [3, 1, 2])


def test_calls_are_made_one_by_one_where_no_thread_can_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("concurrent.futures.ThreadPoolExecutor.submit", refuse)
    store = open_store("memory://side-by-side")
    assert both(store, lambda: 1, lambda: 2) == (1, 2)
    assert each(store, abs, [-3, 1, -2]) == [3, 1, 2]
    with pytest.raises(ZeroDivisionError):
        both(store, lambda: 1, lambda: 1 // 0)


def test_results_come_in_order_from_threads_where_there_is_much_to_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    local = open_store(tmp_path)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    meeting = threading.Barrier(2, timeout=60)

    def work(number: int) -> int:
        meeting.wait()
        return number * number

    assert list(in_threads(local, work, range(4), 1 << 30)) == [0, 1, 4, 9]
    assert list(in_threads(open_store("memory://side-by-side"), work, range(2), 10)) == [0, 1]
    assert list(in_threads(local, lambda _: threading.current_thread(), range(4), 10)) == [threading.current_thread()] * 4


@pytest.mark.parametrize("size", [10, 1 << 30])
def test_the_first_error_is_raised_after_the_results_before_it(size: int, tmp_path: Path) -> None:
    def work(number: int) -> int:
        if number > 1:
            raise ValueError(str(number))
        return number

    results = in_threads(open_store(tmp_path), work, range(9), size)
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(ValueError, match=r"^2$"):
        next(results)


def test_one_result_is_computed_ahead() -> None:
    started: list[int] = []
    following = threading.Event()

    def work(number: int) -> int:
        started.append(number)
        if number == 1:
            following.set()
        return 10 * number

    results = one_ahead(work, range(4))
    assert next(results) == 0
    assert following.wait(10), "the next one is computed while the caller has the last"
    assert started == [0, 1]
    assert list(results) == [10, 20, 30]
    assert list(one_ahead(work, [])) == []


def test_an_error_ahead_is_raised_at_its_turn() -> None:
    def work(number: int) -> float:
        return 1 / (number - 1)

    results = one_ahead(work, range(3))
    assert next(results) == -1
    with pytest.raises(ZeroDivisionError):
        next(results)
