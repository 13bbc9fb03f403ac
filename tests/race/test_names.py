"""Processes that want the same names of a local folder."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

from tahoe.store.log_store import Created
from tahoe.store.object_store import open_store


def _race(path: str, writer: int, races: int, gate: object, results: object) -> None:
    store = open_store(path)
    gate.wait()  # type: ignore[attr-defined]
    won = [
        name for name in range(races) if store.put_if_absent(f"_delta_log/{name:020d}.json", str(writer).encode()) == Created()
    ]
    results.put((writer, won))  # type: ignore[attr-defined]


def test_of_four_processes_one_wins_each_of_10000_names(tmp_path: Path) -> None:
    """So many, since a file system that loses one race in thousands loses commits; four processes begin for it, which lasts too."""
    writers, races = 4, 10_000
    context = multiprocessing.get_context("spawn")
    gate, results = context.Barrier(writers), context.Queue()
    processes = [
        context.Process(target=_race, args=(str(tmp_path / "table"), writer, races, gate, results)) for writer in range(writers)
    ]
    for process in processes:
        process.start()
    won = dict(results.get(timeout=600) for _ in processes)
    for process in processes:
        process.join()
    assert sorted(name for names in won.values() for name in names) == list(range(races))
    store = open_store(tmp_path / "table")
    for writer, names in won.items():
        assert set(store.get_many([f"_delta_log/{name:020d}.json" for name in names])) <= {str(writer).encode()}
