"""The number of files that a point predicate skips, for each layout: sorted by one column, Z, Hilbert, a k-d grid.

Four columns as of network flows (two addresses of 32 bits, two ports of 16), uniform, 100 files; the second table has a time, a user by
Zipf's law, a state of five values and an amount. A file is skipped if its minimum and maximum exclude the predicate's value.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from tahoe.ops.layout.curves import CURVES, comparable, placement

ROWS, FILES, POINTS, SAMPLE = 2_000_000, 100, 200, 100_000


def main() -> None:
    """Print both tables."""
    for title, columns in (("uniform", _flows()), ("skewed", _events())):
        print(f"{title}: {ROWS:,} rows, {FILES} files, % of files skipped by a point predicate on each column")
        print(f"{'layout':10}{''.join(f'{name:>12}' for name in columns)}{'mean':>8}{'least':>8}{'largest file':>14}{'key s':>8}")
        arrays = [comparable(values) for values in columns.values()]
        layouts: dict[str, Callable[[], pa.Array]] = {"one column": lambda arrays=arrays: _sorted(arrays)}
        layouts |= {curve: lambda arrays=arrays, curve=curve: _placed(arrays, curve) for curve in sorted(CURVES, reverse=True)}
        for name, layout in layouts.items():
            begun = time.perf_counter()
            cells = layout()
            _show(name, arrays, cells, time.perf_counter() - begun)


def _flows() -> dict[str, pa.Array]:
    chance = random.Random(7)
    return {
        name: pa.array([chance.randrange(1 << bits) for _ in range(ROWS)], pa.int64())
        for name, bits in (("source", 32), ("port", 16), ("target", 32), ("its port", 16))
    }


def _events() -> dict[str, pa.Array]:
    chance = random.Random(8)
    return {
        "time": pa.array([1_700_000_000 + i // 3 for i in range(ROWS)], pa.int64()),
        "user": pa.array([int(chance.paretovariate(1.1)) % 1_000_000 for _ in range(ROWS)], pa.int64()),
        "state": pa.array(chance.choices(range(5), [50, 30, 15, 4, 1], k=ROWS), pa.int64()),
        "amount": pa.array([chance.lognormvariate(3, 1) for _ in range(ROWS)], pa.float64()),
    }


def _sorted(columns: list[pa.Array]) -> pa.Array:
    order = pc.sort_indices(columns[0])
    places = pc.sort_indices(order)
    return pc.divide(pc.multiply(places.cast(pa.int64()), FILES), ROWS)


def _placed(columns: list[pa.Array], curve: str) -> pa.Array:
    rows = pa.array(range(0, ROWS, ROWS // SAMPLE), pa.int64())
    return placement([values.take(rows) for values in columns], FILES, curve).cells(columns)


def _show(name: str, columns: list[pa.Array], cells: pa.Array, seconds: float) -> None:
    table = pa.table({"cell": cells, **{str(i): values for i, values in enumerate(columns)}})
    stats = [(str(i), of) for i in range(len(columns)) for of in ("min", "max")]
    files = table.group_by("cell").aggregate([*stats, ("0", "count")])
    skipped = [_skipped(files[f"{i}_min"], files[f"{i}_max"], values) for i, values in enumerate(columns)]
    largest = pc.max(files["0_count"]).as_py() * files.num_rows / ROWS
    shown = "".join(f"{100 * item:12.1f}" for item in skipped)
    mean = 100 * sum(skipped) / len(skipped)
    print(f"{name:10}{shown}{mean:8.1f}{100 * min(skipped):8.1f}{largest:12.2f} x{seconds:8.2f}")


def _skipped(least: pa.ChunkedArray, greatest: pa.ChunkedArray, values: pa.Array) -> float:
    points = values.take(pa.array(range(0, ROWS, ROWS // POINTS), pa.int64()))
    files = len(least)
    read = sum(pc.sum(pc.and_(pc.less_equal(least, item), pc.greater_equal(greatest, item))).as_py() for item in points)
    return 1 - read / files / len(points)


if __name__ == "__main__":
    main()
