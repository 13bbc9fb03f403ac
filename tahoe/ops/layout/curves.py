"""Cluster rows by several columns, so that a predicate on any of them skips files. Pure.

    a sample of the columns ─► `placement` ─► `Placement`: boundaries ─► the cell of each row of any batch, 0 … cells - 1; a cell is a file

* ``kd``: a k-d grid. The sample is split by one column into parts with the same number of rows, each part by the next column, and so on. All
  cells are boxes with the same number of rows, so no file has a wider value range than necessary; this skips the most files.
* ``hilbert`` and ``z``: the ranks of a row's values give its position on a curve, which is split into pieces with the same number of rows.

NULL sorts before all values and NaN after them, as in Spark. Rows with equal values are never separated, so cells may differ in size if a
value is in many rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

import pyarrow as pa

from tahoe.base.lazy import pc
from tahoe.schema.arrow_values import array, scalar

_LONG = pa.int64()
_NODE = pa.int32()


class Placement(Protocol):
    """Assigns rows to cells."""

    def cells(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Return the cell of each row, as int64 without nulls.

        Args:
            columns: the key columns in the order of the sample, converted by `comparable`.
        """


def placement(sample: Sequence[pa.Array], count: int, curve: str) -> Placement:
    """Compute the placement of rows from a sample.

    Args:
        sample: the key columns of evenly drawn rows, converted by `comparable`; some hundred rows per cell are enough.
        count: the number of cells; there are a few less if values are in many rows.
        curve: a key of `CURVES`.
    """
    return CURVES[curve](sample, count)


def comparable(values: pa.Array) -> pa.Array:
    """Return a column in a form that Arrow can compare: Booleans become integers."""
    return values.cast(pa.int8()) if pa.types.is_boolean(values.type) else values


# -- the k-d grid ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A cell."""

    cell: int


@dataclass(frozen=True, slots=True)
class _Cut:
    """A split by the bounds of a column: a row whose value is greater than n bounds belongs to the n-th part."""

    column: int
    bounds: pa.Array
    parts: tuple[_Cut | _Leaf, ...]


@dataclass(frozen=True, slots=True)
class _Level:
    """One column of the grid, for all nodes of the tree at one depth.

    Each node has a range of positions. The first is the position of the node itself; the n-th after it is for rows whose value is greater
    than n of the node's bounds.

    Args:
        bounds: for each n, an array with the n-th bound of each node at the node's position. A node with fewer bounds repeats its last one.
        next: for each position, the position of the node at the next depth.
    """

    column: int
    bounds: tuple[pa.Array, ...]
    next: pa.Array

    def descend(self, values: pa.Array, nodes: pa.Array) -> pa.Array:
        """Return the node at the next depth for each row, from its value and its node at this depth."""
        places = nodes
        for bounds in self.bounds:
            # By construction, nodes are valid positions in `bounds`: checking them again would take 5 % longer.
            greater = _is_greater(values, pc.take(bounds, nodes, boundscheck=False))
            places = pc.add(places, greater.cast(_NODE))
        return pc.take(self.next, places, boundscheck=False)


@dataclass(frozen=True, slots=True)
class _Grid:
    """The levels of the grid; the nodes after the last level are the cells."""

    levels: tuple[_Level, ...]

    def cells(self, columns: Sequence[pa.Array]) -> pa.Array:
        nodes = pa.repeat(scalar(0, _NODE), len(columns[0]))
        for level in self.levels:
            nodes = level.descend(columns[level.column], nodes)
        return nodes


def _levels(root: _Cut | _Leaf, order: Sequence[int]) -> _Grid:
    """Convert the tree to levels. A leaf above the last depth has itself as its only part at the next depth."""
    nodes: list[_Cut | _Leaf] = [root]
    levels = []
    for depth, column in enumerate(order, 1):
        parts = [node.parts if isinstance(node, _Cut) else (node,) for node in nodes]
        below = [part for some in parts for part in some]
        if depth < len(order):
            places = _most_bounds(below) + 1
            numbers = array(range(0, len(below) * places, places), _NODE)
        else:
            numbers = array([node.cell for node in below if isinstance(node, _Leaf)], _LONG)
        levels.append(_level(column, nodes, [len(some) for some in parts], numbers))
        nodes = below
    return _Grid(tuple(levels))


def _level(column: int, nodes: Sequence[_Cut | _Leaf], parts: Sequence[int], numbers: pa.Array) -> _Level:
    """Return the level of these nodes.

    Args:
        parts: the number of parts of each node.
        numbers: the positions of all parts at the next depth, node by node.
    """
    most = _most_bounds(nodes)
    firsts = accumulate(parts, initial=0)
    following = [first + min(n, some - 1) for first, some in zip(firsts, parts, strict=False) for n in range(most + 1)]
    some_bounds = next((node.bounds for node in nodes if isinstance(node, _Cut) and len(node.bounds)), None)
    full = [] if some_bounds is None else [_filled(node, most, some_bounds) for node in nodes]
    by_place = [pa.concat_arrays([bounds.slice(n, 1) for bounds in full for _ in range(most + 1)]) for n in range(most)]
    return _Level(column, tuple(by_place), numbers.take(array(following, _NODE)))


def _most_bounds(nodes: Sequence[_Cut | _Leaf]) -> int:
    return max(len(node.bounds) if isinstance(node, _Cut) else 0 for node in nodes)


def _filled(node: _Cut | _Leaf, most: int, default: pa.Array) -> pa.Array:
    """Pad the bounds of a node to `most` by repeating the last. A node without bounds uses `default`: it has a single part anyway."""
    bounds = node.bounds if isinstance(node, _Cut) and len(node.bounds) else default
    return pa.concat_arrays([bounds, *[bounds.slice(len(bounds) - 1, 1)] * (most - len(bounds))])


def _grid(sample: Sequence[pa.Array], count: int) -> Placement:
    # Columns with few values go first: the other columns make up for the parts that these lack.
    order = sorted(range(len(sample)), key=lambda i: min(pc.count_distinct(sample[i]).as_py(), count))
    return _levels(_cut(sample, order, count, 0)[0], order)


def _cut(sample: Sequence[pa.Array], order: Sequence[int], count: int, first: int) -> tuple[_Cut | _Leaf, int]:
    """Return the tree that splits rows into `count` cells, numbered from `first`; and the number after its last cell."""
    if count <= 1 or not order or len(sample[0]) < 2:
        return _Leaf(first), first + 1
    column, rest = order[0], order[1:]
    parts = max(1, round(count ** (1 / len(order))))
    ordered = _order(sample[column])
    bounds = _bounds(sample[column].take(ordered), count, parts)
    groups = _groups([values.take(ordered) for values in sample], column, bounds)
    counts = _shares(count, [len(group[0]) for group in groups])
    nodes: list[_Cut | _Leaf] = []
    for group, share in zip(groups, counts, strict=True):
        node, first = _cut(group, rest, share, first)
        nodes.append(node)
    return _Cut(column, bounds, tuple(nodes)), first


def _groups(sample: Sequence[pa.Array], column: int, bounds: pa.Array) -> list[list[pa.Array]]:
    """Split rows that are sorted by a column at its bounds."""
    ends = [len(sample[0]) - (pc.sum(_is_greater(sample[column], bound)).as_py() or 0) for bound in bounds]
    starts = [0, *ends]
    return [
        [values.slice(start, end - start) for values in sample]
        for start, end in zip(starts, [*ends, len(sample[0])], strict=True)
    ]


def _shares(count: int, rows: Sequence[int]) -> list[int]:
    """Distribute `count` cells over the parts in proportion to their rows, at least one to each part."""
    total = sum(rows)
    exact = [count * some / total for some in rows]
    shares = [max(1, int(share)) for share in exact]
    for _ in range(count - sum(shares)):
        short = max(range(len(rows)), key=lambda i: exact[i] - shares[i])
        shares[short] += 1
    return shares


# -- curves ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Ranks:
    """The boundaries of parts of a column with the same number of rows: a row's rank is the number of bounds below its value."""

    bounds: pa.Array

    @classmethod
    def of(cls, values: pa.Array, bits: int) -> _Ranks:
        """Return the boundaries of 2 ** bits parts."""
        ordered = values.take(_order(values))
        return cls(_bounds(ordered, 1 << bits, 1 << bits))

    def ranks(self, values: pa.Array) -> pa.Array:
        """Return the rank of each value, from 0 to the number of bounds, by binary search."""
        ranks = pa.repeat(scalar(0, _LONG), len(values))
        if not len(self.bounds):
            return ranks
        last = scalar(len(self.bounds) - 1, _LONG)
        step = 1 << (len(self.bounds).bit_length() - 1)
        while step:
            probe = pc.add(ranks, scalar(step - 1, _LONG))
            inside = pc.less_equal(probe, last)
            above = _is_greater(values, self.bounds.take(pc.min_element_wise(probe, last)))
            ranks = pc.add(ranks, pc.multiply(pc.and_(inside, above).cast(_LONG), scalar(step, _LONG)))
            step >>= 1
        return ranks


@dataclass(frozen=True, slots=True)
class _OnCurve:
    """The boundaries of each column, the function that maps ranks to a position on the curve, and the boundaries of its pieces."""

    columns: Sequence[_Ranks]
    place: Callable[[list[pa.Array], int], pa.Array]
    bits: int
    pieces: _Ranks

    def cells(self, columns: Sequence[pa.Array]) -> pa.Array:
        return self.pieces.ranks(self.key(columns))

    def key(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Return the position of each row on the curve."""
        # A column with few values has few ranks. They are shifted to the high bits, because low bits have little effect on the position.
        spread = [scalar(self.bits - len(ranks.bounds).bit_length(), _LONG) for ranks in self.columns]
        ranks = [ranks.ranks(values) for ranks, values in zip(self.columns, columns, strict=True)]
        return self.place([pc.shift_left(rank, more) for rank, more in zip(ranks, spread, strict=True)], self.bits)


def _on_curve(place: Callable[[list[pa.Array], int], pa.Array]) -> Callable[[Sequence[pa.Array], int], Placement]:
    def made(sample: Sequence[pa.Array], count: int) -> Placement:
        bits = min(_MOST_BITS, _BITS_OF_A_KEY // len(sample))
        ranks = [_Ranks.of(values, bits) for values in sample]
        whole = _OnCurve(ranks, place, bits, _Ranks(pa.nulls(0, _LONG)))
        keys = whole.key(sample)
        ordered = keys.take(pc.sort_indices(keys))
        return _OnCurve(ranks, place, bits, _Ranks(_bounds(ordered, count, count)))

    return made


def _z(ranks: list[pa.Array], bits: int) -> pa.Array:
    """Interleave the bits of all ranks, highest first."""
    key = pa.repeat(scalar(0, _LONG), len(ranks[0]))
    for bit in reversed(range(bits)):
        for values in ranks:
            bit_of_value = pc.bit_wise_and(pc.shift_right(values, scalar(bit, _LONG)), scalar(1, _LONG))
            key = pc.bit_wise_or(pc.shift_left(key, scalar(1, _LONG)), bit_of_value)
    return key


def _hilbert(ranks: list[pa.Array], bits: int) -> pa.Array:
    """Return the position on the Hilbert curve: J. Skilling's transform ("Programming the Hilbert curve", 2004), followed by `_z`."""
    axes, zero = list(ranks), scalar(0, _LONG)
    for bit in reversed(range(1, bits)):
        low = scalar((1 << bit) - 1, _LONG)
        for i in range(len(axes)):
            is_set = pc.not_equal(pc.bit_wise_and(axes[i], scalar(1 << bit, _LONG)), zero)
            exchanged = pc.bit_wise_and(pc.bit_wise_xor(axes[0], axes[i]), low)
            turned = pc.bit_wise_xor(axes[0], pc.if_else(is_set, low, exchanged))
            if i:
                axes[i] = pc.bit_wise_xor(axes[i], pc.if_else(is_set, zero, exchanged))
                axes[0] = turned
            else:
                axes[0] = pc.if_else(is_set, turned, axes[0])
    for i in range(1, len(axes)):
        axes[i] = pc.bit_wise_xor(axes[i], axes[i - 1])
    turn = pa.repeat(zero, len(axes[0]))
    for bit in reversed(range(1, bits)):
        is_set = pc.not_equal(pc.bit_wise_and(axes[-1], scalar(1 << bit, _LONG)), zero)
        turn = pc.bit_wise_xor(turn, pc.if_else(is_set, scalar((1 << bit) - 1, _LONG), zero))
    return _z([pc.bit_wise_xor(values, turn) for values in axes], bits)


# delta-spark splits a column into 1,000 parts.
_MOST_BITS = 10
_BITS_OF_A_KEY = 63


# -- values ----------------------------------------------------------------------------------------------------------------------


def _order(values: pa.Array) -> pa.Array:
    """Return the indices of values in Spark's order: NULL, values, NaN."""
    order, nulls = pc.sort_indices(values), values.null_count
    return pa.concat_arrays([order.slice(len(order) - nulls), order.slice(0, len(order) - nulls)]) if nulls else order


def _bounds(ordered: pa.Array, cells: int, parts: int) -> pa.Array:
    """Return the distinct maximums of all parts but the last, without NULL, NaN and the maximum of all values.

    Args:
        cells: the number of cells for these rows, each with the same number of rows; the numbers of cells of two parts differ by at most 1.
    """
    if not len(ordered):
        return ordered
    ends = [cells * part // parts for part in range(1, parts)]
    places = [max(0, len(ordered) * end // cells - 1) for end in ends]
    bounds = ordered.take(pa.array(places, _LONG)).drop_null().unique()
    if pa.types.is_floating(bounds.type):
        bounds = bounds.filter(pc.invert(pc.is_nan(bounds)))
    last = ordered[-1]
    return bounds.filter(_is_greater(pa.repeat(last, len(bounds)), bounds))


def _is_greater(values: pa.Array | pa.Scalar, bound: pa.Scalar | pa.Array) -> pa.Array:
    """Whether values are greater than a bound, which is neither NULL nor NaN. NULL is not greater; NaN is."""
    if pa.types.is_floating(values.type):
        greater = pc.invert(pc.less_equal(values, bound))  # NaN is neither less nor equal
    else:
        greater = pc.greater(values, bound)
    return pc.fill_null(greater, scalar(False)) if greater.null_count else greater


CURVES: Mapping[str, Callable[[Sequence[pa.Array], int], Placement]] = {
    "kd": _grid,
    "hilbert": _on_curve(_hilbert),
    "z": _on_curve(_z),
}
"""The clustering methods, by name."""

NAMES_OF_CURVES: Mapping[str, str] = {"kd": "kd", "hilbert": "hilbert", "z": "zorder"}
"""The names of the clustering methods in the tags of files; the last two are delta-spark's names."""
