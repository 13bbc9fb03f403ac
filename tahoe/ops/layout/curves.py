"""Ways of laying rows out by several columns, so that a condition on any of them skips files. Pure.

    a sample of the columns ─► `placement` ─► `Placement`: boundaries ─► the cell of each row of any batch, 0 … cells - 1; a cell is a file

* ``kd``: a k-d grid. The sample is cut by one column into parts of equally many rows, each part by the next column, and so on. Each cell is a
  box with as many rows as any other, so no file reaches over more of a column than it must; this skips most.
* ``hilbert`` and ``z``: the ranks of a row's values become its place on a curve, and the curve is cut into pieces of equally many rows.

NULL is less than all values and NaN greater, as Spark sorts. Rows of equal values are never parted, so cells may differ in size where one
value is in many rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

import pyarrow as pa

from tahoe.lazy import pc
from tahoe.schema.arrow_values import array, scalar

__all__ = ["CURVES", "NAMES_OF_CURVES", "Placement", "comparable", "placement"]

_LONG = pa.int64()
_NODE = pa.int32()


class Placement(Protocol):
    """Says to which cell rows belong."""

    def cells(self, columns: Sequence[pa.Array]) -> pa.Array:
        """The cell of each row, int64 without nulls.

        Args:
            columns: those that were sampled, in their order, as `comparable` gives them.
        """


def placement(sample: Sequence[pa.Array], count: int, curve: str) -> Placement:
    """How rows like these are laid out in so many cells, or a few less where values are in many rows.

    Args:
        sample: the columns, as `comparable` gives them, of rows drawn evenly; some hundred rows a cell are enough.
        curve: one of `CURVES`.
    """
    return CURVES[curve](sample, count)


def comparable(values: pa.Array) -> pa.Array:
    """A column in a form that Arrow compares: truth values as numbers."""
    return values.cast(pa.int8()) if pa.types.is_boolean(values.type) else values


# -- the k-d grid ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Leaf:
    """One cell."""

    cell: int


@dataclass(frozen=True, slots=True)
class _Cut:
    """Rows are parted by the bounds of a column: those whose value is greater than so many of them go to that part."""

    column: int
    bounds: pa.Array
    parts: tuple[_Cut | _Leaf, ...]


@dataclass(frozen=True, slots=True)
class _Level:
    """One column of the grid, for all nodes of the tree at one depth at once. A node has a run of places: its first is the node's own, and
    the one so many behind it stands for rows whose value is greater than so many of its bounds.

    Args:
        bounds: the n-th bound of each node, for each n, at the node's place. A node with fewer has its last one again.
        next: for each place the node of the next depth, by its place there.
    """

    column: int
    bounds: tuple[pa.Array, ...]
    next: pa.Array

    def descend(self, values: pa.Array, nodes: pa.Array) -> pa.Array:
        """Which nodes of the next depth rows belong to that belong to these."""
        places = nodes
        for bounds in self.bounds:
            # Nodes are places among these by how the grid is made: to look again would cost a twentieth.
            greater = _is_greater(values, pc.take(bounds, nodes, boundscheck=False))
            places = pc.add(places, greater.cast(_NODE))
        return pc.take(self.next, places, boundscheck=False)


@dataclass(frozen=True, slots=True)
class _Grid:
    """What the last level leads to is the cells."""

    levels: tuple[_Level, ...]

    def cells(self, columns: Sequence[pa.Array]) -> pa.Array:
        nodes = pa.repeat(scalar(0, _NODE), len(columns[0]))
        for level in self.levels:
            nodes = level.descend(columns[level.column], nodes)
        return nodes


def _levels(root: _Cut | _Leaf, order: Sequence[int]) -> _Grid:
    """The tree, depth by depth. A leaf above the last depth is its own only part at the next."""
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
    """The level of these nodes, of which each has so many parts; their numbers are those of all parts, node by node."""
    most = _most_bounds(nodes)
    firsts = accumulate(parts, initial=0)
    following = [first + min(n, some - 1) for first, some in zip(firsts, parts, strict=False) for n in range(most + 1)]
    some_bounds = next((node.bounds for node in nodes if isinstance(node, _Cut) and len(node.bounds)), None)
    full = [] if some_bounds is None else [_filled(node, most, some_bounds) for node in nodes]
    by_place = [pa.concat_arrays([one.slice(n, 1) for one in full for _ in range(most + 1)]) for n in range(most)]
    return _Level(column, tuple(by_place), numbers.take(array(following, _NODE)))


def _most_bounds(nodes: Sequence[_Cut | _Leaf]) -> int:
    return max(len(node.bounds) if isinstance(node, _Cut) else 0 for node in nodes)


def _filled(node: _Cut | _Leaf, most: int, others: pa.Array) -> pa.Array:
    """So many bounds: the node's last one again and again, or where it has none those of others, since all its rows go one way."""
    own = node.bounds if isinstance(node, _Cut) and len(node.bounds) else others
    return pa.concat_arrays([own, *[own.slice(len(own) - 1, 1)] * (most - len(own))])


def _grid(sample: Sequence[pa.Array], count: int) -> Placement:
    # Columns of few values go first: what they cannot be cut into, the others are.
    order = sorted(range(len(sample)), key=lambda i: min(pc.count_distinct(sample[i]).as_py(), count))
    return _levels(_cut(sample, order, count, 0)[0], order)


def _cut(sample: Sequence[pa.Array], order: Sequence[int], count: int, first: int) -> tuple[_Cut | _Leaf, int]:
    """The tree that cuts rows into `count` cells, numbered from `first`; and the number after its last cell."""
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
    """The rows, sorted by a column, of each part of it."""
    ends = [len(sample[0]) - (pc.sum(_is_greater(sample[column], bound)).as_py() or 0) for bound in bounds]
    starts = [0, *ends]
    return [
        [values.slice(start, end - start) for values in sample]
        for start, end in zip(starts, [*ends, len(sample[0])], strict=True)
    ]


def _shares(count: int, rows: Sequence[int]) -> list[int]:
    """So many cells for each part, by its rows: at least one, and `count` in all where there are not more parts."""
    total = sum(rows)
    exact = [count * some / total for some in rows]
    shares = [max(1, int(one)) for one in exact]
    for _ in range(count - sum(shares)):
        short = max(range(len(rows)), key=lambda i: exact[i] - shares[i])
        shares[short] += 1
    return shares


# -- curves ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Ranks:
    """The boundaries of parts of a column with equally many rows: a row's rank is how many of them its value is greater than."""

    bounds: pa.Array

    @classmethod
    def of(cls, values: pa.Array, bits: int) -> _Ranks:
        """Those of 2 ** bits parts."""
        ordered = values.take(_order(values))
        return cls(_bounds(ordered, 1 << bits, 1 << bits))

    def ranks(self, values: pa.Array) -> pa.Array:
        """From 0 to the number of bounds, by halving."""
        found = pa.repeat(scalar(0, _LONG), len(values))
        if not len(self.bounds):
            return found
        last = scalar(len(self.bounds) - 1, _LONG)
        step = 1 << (len(self.bounds).bit_length() - 1)
        while step:
            probe = pc.add(found, scalar(step - 1, _LONG))
            inside = pc.less_equal(probe, last)
            above = _is_greater(values, self.bounds.take(pc.min_element_wise(probe, last)))
            found = pc.add(found, pc.multiply(pc.and_(inside, above).cast(_LONG), scalar(step, _LONG)))
            step >>= 1
        return found


@dataclass(frozen=True, slots=True)
class _OnCurve:
    """Ranks of each column, their place on a curve, and where the curve is cut."""

    columns: Sequence[_Ranks]
    place: Callable[[list[pa.Array], int], pa.Array]
    bits: int
    pieces: _Ranks

    def cells(self, columns: Sequence[pa.Array]) -> pa.Array:
        return self.pieces.ranks(self.key(columns))

    def key(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Each row's place on the curve."""
        # A column of few values has few ranks: they are spread, or their bits would all be low ones and count for nothing.
        spread = [scalar(self.bits - len(ranks.bounds).bit_length(), _LONG) for ranks in self.columns]
        ranks = [ranks.ranks(values) for ranks, values in zip(self.columns, columns, strict=True)]
        return self.place([pc.shift_left(one, more) for one, more in zip(ranks, spread, strict=True)], self.bits)


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
    """The bits of all ranks in turn, highest first."""
    key = pa.repeat(scalar(0, _LONG), len(ranks[0]))
    for bit in reversed(range(bits)):
        for values in ranks:
            one = pc.bit_wise_and(pc.shift_right(values, scalar(bit, _LONG)), scalar(1, _LONG))
            key = pc.bit_wise_or(pc.shift_left(key, scalar(1, _LONG)), one)
    return key


def _hilbert(ranks: list[pa.Array], bits: int) -> pa.Array:
    """The place on Hilbert's curve, by J. Skilling's transform ("Programming the Hilbert curve", 2004), and then as `_z`."""
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


# The reference cuts a column into 1,000 parts.
_MOST_BITS = 10
_BITS_OF_A_KEY = 63


# -- values ----------------------------------------------------------------------------------------------------------------------


def _order(values: pa.Array) -> pa.Array:
    """The places of values in Spark's order: NULL, values, NaN."""
    order, nulls = pc.sort_indices(values), values.null_count
    return pa.concat_arrays([order.slice(len(order) - nulls), order.slice(0, len(order) - nulls)]) if nulls else order


def _bounds(ordered: pa.Array, cells: int, parts: int) -> pa.Array:
    """The greatest values of all parts but the last, each once. NULL, NaN and the greatest value of all bound nothing.

    Args:
        cells: that the rows are for, all of as many rows; a part is for as many of them as another, or for one more.
    """
    if not len(ordered):
        return ordered
    ends = [cells * part // parts for part in range(1, parts)]
    places = [max(0, len(ordered) * end // cells - 1) for end in ends]
    found = ordered.take(pa.array(places, _LONG)).drop_null().unique()
    if pa.types.is_floating(found.type):
        found = found.filter(pc.invert(pc.is_nan(found)))
    last = ordered[-1]
    return found.filter(_is_greater(pa.repeat(last, len(found)), found))


def _is_greater(values: pa.Array | pa.Scalar, bound: pa.Scalar | pa.Array) -> pa.Array:
    """Whether values are greater than a bound, which is neither NULL nor NaN. NULL is not; NaN is."""
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
"""What rows can be laid out by."""

NAMES_OF_CURVES: Mapping[str, str] = {"kd": "kd", "hilbert": "hilbert", "z": "zorder"}
"""As tags of files say by which rows were laid out; the last two are the reference's names."""
