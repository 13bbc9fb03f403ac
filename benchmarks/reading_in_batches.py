"""A table larger than the desired memory: streamed, read completely, and DELETE by vectors and by copying, compared with deltalake.

Goals for 855 MB of Arrow data: a stream stays under 250 MB of resident memory, DELETE under 400 MB. Each run is a separate process;
its peak memory includes the interpreter and the libraries.

    python benchmarks/reading_in_batches.py [--megabytes 855] [--files 8] [--rounds 2]
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from _processes import answer, by_turns, show

ROWS_OF_A_PART = 500_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=855)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--run", nargs=3, help="used by the benchmark itself: work, peer, path")
    arguments = parser.parse_args()
    if arguments.run is not None:
        work, peer, path = arguments.run
        answer(WORKS[work, peer](path))
        return
    with tempfile.TemporaryDirectory() as folder:
        cases = {}
        for files in sorted({1, arguments.files}):
            origin = Path(folder) / f"origin-{files}"
            make_table(origin, arguments.megabytes, files)
            for work, goal in (("stream", "250 MB"), ("filtered stream", "250 MB"), ("to_arrow", ""), ("copying", "400 MB")):
                cases[f"{work}, {files} files"] = measured(work, ("Tahoe", "deltalake"), origin, arguments.rounds), goal
            vectors = measured("vectors", ("Tahoe",), origin, arguments.rounds)
            # deltalake writes no vectors: the table shows its alternative.
            vectors["deltalake, copying"] = cases[f"copying, {files} files"][0]["deltalake"]
            cases[f"vectors, {files} files"] = vectors, "400 MB"
        show(f"{arguments.megabytes} MB of Arrow data", cases)


def measured(work: str, peers: tuple[str, ...], origin: Path, rounds: int) -> dict[str, list]:
    place = origin.with_name("place")

    def reset() -> None:
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(origin, place)
        if work == "vectors":
            import tahoe

            tahoe.Table(place).set_properties({"delta.enableDeletionVectors": "true"})

    reset()
    return by_turns(Path(__file__), {peer: ["--run", work, peer, str(place)] for peer in peers}, rounds, after=reset)


def make_table(path: Path, megabytes: int, files: int) -> None:
    import numpy as np
    import pyarrow as pa

    import tahoe

    def part(number: int) -> pa.Table:
        chance = np.random.default_rng(number)
        start = number * ROWS_OF_A_PART
        return pa.table(
            {
                "id": np.arange(start, start + ROWS_OF_A_PART),
                "a": chance.random(ROWS_OF_A_PART),
                "b": chance.integers(0, 1000, ROWS_OF_A_PART),
                "text": np.char.add("text number ", chance.integers(0, 10**12, ROWS_OF_A_PART).astype(str)),
                "kind": np.char.add("category ", chance.integers(0, 50, ROWS_OF_A_PART).astype(str)),
                "time": pa.array(chance.integers(0, 2 * 10**15, ROWS_OF_A_PART)).cast(pa.timestamp("us", "UTC")),
            }
        )

    parts = [part(number) for number in range(max(files, round(megabytes * 1e6 / part(0).nbytes)))]
    table = tahoe.Table.create(path, parts[0].schema)
    for number in range(files):
        table.append(pa.concat_tables(parts[number::files]))


def streamed(path: str, filter: str | None = None) -> Callable[[], object]:
    import tahoe

    def run() -> int:
        return sum(batch.num_rows for batch in tahoe.Table(path).to_batches(filter))

    return run


def streamed_by_deltalake(path: str, filtered: bool = False) -> Callable[[], object]:
    import deltalake
    import pyarrow.dataset as ds

    def run() -> int:
        dataset = deltalake.DeltaTable(path).to_pyarrow_dataset()
        return sum(batch.num_rows for batch in dataset.to_batches(filter=ds.field("b") < 100 if filtered else None))

    return run


def whole(path: str) -> Callable[[], object]:
    import tahoe

    return lambda: tahoe.Table(path).to_arrow().num_rows


def whole_by_deltalake(path: str) -> Callable[[], object]:
    import deltalake

    return lambda: deltalake.DeltaTable(path).to_pyarrow_table().num_rows


def deleted(path: str) -> Callable[[], object]:
    import tahoe

    return lambda: tahoe.Table(path).delete("b < 10").num_deleted_rows


def deleted_by_deltalake(path: str) -> Callable[[], object]:
    import deltalake

    return lambda: deltalake.DeltaTable(path).delete("b < 10")["num_deleted_rows"]


WORKS: dict[tuple[str, str], Callable[[str], Callable[[], object]]] = {
    ("stream", "Tahoe"): streamed,
    ("stream", "deltalake"): streamed_by_deltalake,
    ("filtered stream", "Tahoe"): lambda path: streamed(path, "b < 100"),
    ("filtered stream", "deltalake"): lambda path: streamed_by_deltalake(path, filtered=True),
    ("to_arrow", "Tahoe"): whole,
    ("to_arrow", "deltalake"): whole_by_deltalake,
    ("copying", "Tahoe"): deleted,
    ("copying", "deltalake"): deleted_by_deltalake,
    ("vectors", "Tahoe"): deleted,
}


if __name__ == "__main__":
    main()
