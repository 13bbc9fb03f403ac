"""Threads take turns in an order determined by the seed."""

from __future__ import annotations

import pytest

from tahoe.store.log_store import Created
from tahoe.store.object_store import open_store
from tahoe.testing.interleaving import Interleaver, SteppedStore


def _race(seed: int, url: str, writers: int = 3, names: int = 6) -> tuple[list[int], list[int]]:
    """Return the tasks that had the turns, and the winner of each name."""
    interleaver = Interleaver(seed)
    winners = [-1] * names

    def write(writer: int) -> None:
        store = SteppedStore(open_store(url), interleaver)
        for name in range(names):
            if store.put_if_absent(str(name), b"x") == Created():
                winners[name] = writer

    interleaver.run([lambda writer=writer: write(writer) for writer in range(writers)])
    return interleaver.turns, winners


def test_a_seed_gives_the_same_race_again(memory_url: str) -> None:
    for seed in range(5):
        assert _race(seed, f"{memory_url}-{seed}") == _race(seed, f"{memory_url}-{seed}-again")


def test_seeds_give_different_races_and_every_task_can_win(memory_url: str) -> None:
    races = [_race(seed, f"{memory_url}-{seed}") for seed in range(30)]
    assert len({tuple(turns) for turns, _ in races}) == 30
    assert {winner for _, winners in races for winner in winners} == {0, 1, 2}


def test_each_task_has_a_turn_for_its_start_and_for_each_call(memory_url: str) -> None:
    turns, _ = _race(1, memory_url)
    assert [turns.count(writer) for writer in range(3)] == [7, 7, 7]


def test_the_error_of_a_task_is_raised_after_the_others_have_ended(memory_url: str) -> None:
    interleaver, done = Interleaver(0), []

    def fail() -> None:
        raise ValueError("this one fails")

    def work() -> None:
        for _ in range(10):
            interleaver.step()
        done.append(True)

    with pytest.raises(ValueError, match="this one fails"):
        interleaver.run([work, fail, work])
    assert done == [True, True]
