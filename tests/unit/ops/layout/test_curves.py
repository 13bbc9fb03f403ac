"""The properties of each curve: the same cell for equal rows, cells of similar sizes, and boxes that are small in every column."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tahoe.ops.layout.curves import CURVES, _cut, _levels, comparable, placement
from tahoe.ops.layout.curves import _hilbert as hilbert
from tahoe.ops.layout.curves import _z as z


def longs(values: list[int]) -> pa.Array:
    return pa.array(values, pa.int64())


def uniform(columns: int, rows: int = 20_000) -> list[pa.Array]:
    chance = random.Random(1)
    return [longs([chance.randrange(1 << 20) for _ in range(rows)]) for _ in range(columns)]


def skipped(columns: list[pa.Array], cells: pa.Array) -> list[float]:
    """For each column, the part of the cells whose least and greatest value rule a value out, in the mean over its values."""
    table = pa.table({"cell": cells, **{str(i): values for i, values in enumerate(columns)}})
    actual = []
    for i, values in enumerate(columns):
        boxes = table.group_by("cell").aggregate([(str(i), "min"), (str(i), "max")])
        points = values.to_pylist()[::200]
        bounds = list(zip(boxes[f"{i}_min"].to_pylist(), boxes[f"{i}_max"].to_pylist(), strict=True))
        actual.append(
            1 - sum(least <= point <= greatest for point in points for least, greatest in bounds) / len(points) / len(bounds)
        )
    return actual


@pytest.mark.parametrize(("curve", "mean", "least"), [("kd", 0.65, 0.6), ("hilbert", 0.58, 0.5), ("z", 0.52, 0.4)])
def test_point_predicates_on_any_of_four_columns_skip_files(curve: str, mean: float, least: float) -> None:
    columns = uniform(4)
    actual = skipped(columns, placement(columns, 100, curve).cells(columns))
    assert sum(actual) / 4 >= mean
    assert min(actual) >= least


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("count", [1, 2, 3, 7, 16, 100])
def test_cells_are_as_many_as_asked_and_of_like_sizes(curve: str, count: int) -> None:
    columns = uniform(3)
    rows = pc.value_counts(placement(columns, count, curve).cells(columns)).field("counts").to_pylist()
    assert len(rows) == count
    assert max(rows) <= 1.5 * sum(rows) / count


_VALUES = st.one_of(st.none(), st.integers(-3, 3).map(float), st.just(math.nan), st.just(math.inf), st.just(-0.0))


@pytest.mark.parametrize("curve", CURVES)
@given(
    st.lists(
        st.tuples(_VALUES, st.one_of(st.none(), st.text("ab", max_size=2)), st.one_of(st.none(), st.booleans())), max_size=40
    ),
    st.data(),
)
def test_equal_rows_share_a_cell_and_every_row_has_one(curve: str, rows: list[tuple[object, ...]], data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 9))
    kinds = (pa.float64(), pa.string(), pa.bool_())
    columns = [comparable(pa.array([row[i] for row in rows], kind)) for i, kind in enumerate(kinds)]
    cells = placement(columns, count, curve).cells(columns).to_pylist()
    assert len(cells) == len(rows)
    assert all(0 <= cell < count for cell in cells)
    known: dict[str, int] = {}
    for row, cell in zip(rows, cells, strict=True):
        assert known.setdefault(repr(row), cell) == cell


_ROWS = st.tuples(_VALUES, st.one_of(st.none(), st.text("ab", max_size=2)), st.one_of(st.none(), st.integers(-4, 4)))


@given(st.lists(_ROWS, min_size=1, max_size=40), st.lists(_ROWS, max_size=40), st.integers(1, 30))
def test_the_grid_by_levels_is_the_tree_row_by_row(
    sampled: list[tuple[object, ...]], rows: list[tuple[object, ...]], count: int
) -> None:
    kinds = (pa.float64(), pa.string(), pa.int32())
    sample, placed = ([pa.array([row[i] for row in some], kind) for i, kind in enumerate(kinds)] for some in (sampled, rows))
    root, cells = _cut(sample, (2, 0, 1), count, 0)

    def cell_of(row: tuple[object, ...]) -> int:
        node = root
        while not hasattr(node, "cell"):
            node = node.parts[sum(_is_above(row[node.column], bound) for bound in node.bounds.to_pylist())]
        return node.cell

    assert _levels(root, (2, 0, 1)).cells(placed).to_pylist() == [cell_of(row) for row in rows]
    assert cells <= count


def _is_above(value: object, bound: object) -> bool:
    """In Spark's order."""
    return value is not None and (value != value or value > bound)


@pytest.mark.parametrize("curve", CURVES)
def test_one_column_is_cut_into_ranges(curve: str) -> None:
    values = uniform(1)
    cells = placement(values, 10, curve).cells(values)
    table = pa.table({"cell": cells, "v": values[0]}).group_by("cell").aggregate([("v", "min"), ("v", "max")]).sort_by("v_min")
    assert all(
        before <= after for before, after in pairwise(x for row in table.to_pylist() for x in (row["v_min"], row["v_max"]))
    )


def test_a_column_of_few_values_is_cut_by_them_and_the_others_make_up_for_it() -> None:
    chance = random.Random(2)
    columns = [uniform(1)[0], longs([chance.choice([1, 1, 1, 2]) for _ in range(20_000)])]
    actual = skipped(columns, placement(columns, 20, "kd").cells(columns))
    assert actual[1] >= 0.25  # 1 is three quarters of the rows, and so of the cells
    assert actual[0] >= 0.85


def test_z_takes_the_bits_in_turn() -> None:
    assert z([longs([0b10, 0b01]), longs([0b11, 0b00])], 2).to_pylist() == [0b1101, 0b0010]


@pytest.mark.parametrize(("columns", "bits"), [(2, 3), (3, 2), (4, 2), (1, 4)])
def test_neighbours_on_hilberts_curve_are_neighbours_in_space(columns: int, bits: int) -> None:
    side = 1 << bits
    points = [[place // side**i % side for place in range(side**columns)] for i in range(columns)]
    keys = hilbert([longs(values) for values in points], bits).to_pylist()
    assert sorted(keys) == list(range(side**columns))
    walked = [point for _, point in sorted(zip(keys, zip(*points, strict=True), strict=True))]
    assert all(sum(abs(a - b) for a, b in zip(item, other, strict=True)) == 1 for item, other in pairwise(walked))
