"""The clustering quality of a table by column, now and after OPTIMIZE, from the statistics in the log; no data file is read.

    live files ─ bounds ─► boxes (`tahoe.ops.layout.boxes`) ─► reads of typical predicates now
         └─ the plan of OPTIMIZE ─► rows spread evenly in the boxes of each bin ─► clustered by the curve ─► new boxes ─► reads then

The prediction is an estimate: it assumes that the values of a file are spread evenly between its bounds, each column independently.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from tahoe.base.clock import Moment
from tahoe.base.exceptions import InvalidRequest
from tahoe.base.lazy import pc
from tahoe.base.wording import counted
from tahoe.log.replay import add_files
from tahoe.ops.layout.bins import Bin
from tahoe.ops.layout.boxes import Box, ColumnLayout, Interval, PredicateCost, measured, spread
from tahoe.ops.layout.curves import placement
from tahoe.ops.layout.layout_page import notebook_part_of, page_of
from tahoe.ops.layout.optimize_plan import OptimizePlan, OptimizeRequest, plan_optimize
from tahoe.protocol.actions import AddFile
from tahoe.protocol.clustering import Path, field_chain, named_path, shown_path
from tahoe.protocol.skipping import statistics_of
from tahoe.protocol.statistics.bounds import has_bounds
from tahoe.protocol.statistics.collect import indexed_columns, stats_arrow_type
from tahoe.schema.types import StructField
from tahoe.snapshot.snapshot import Snapshot

_ROWS_OF_A_BIN = 100_000
_ROWS_OF_A_CELL = 200
_MOST_COLUMNS = 32


@dataclass(frozen=True, slots=True)
class TableLayout:
    """The layout of a version; `str` gives a readable summary, and a notebook draws it.

    Args:
        table: the URL of the table.
        size: the total size of the live files in bytes.
        plan: the plan of an OPTIMIZE.
        columns: the columns with statistics, clustering columns first.
        before, after: the live files, and the predicted files after OPTIMIZE.
        lengths, marks: for each column, the length of its line, and positions with values for the axes.
        axes: the indices of the two columns of the drawing.
    """

    table: str
    version: int
    size: int
    plan: OptimizePlan = field(repr=False)
    columns: tuple[ColumnLayout, ...]
    before: tuple[Box, ...] = field(repr=False)
    after: tuple[Box, ...] = field(repr=False)
    lengths: tuple[float, ...] = field(repr=False)
    marks: tuple[tuple[tuple[float, str], ...], ...] = field(repr=False)
    axes: tuple[int, int] = (0, 0)

    def to_json_value(self) -> dict[str, Any]:
        """Return the layout without the individual files as a JSON value, for programs."""
        plan = self.plan
        return {
            "table": self.table,
            "version": self.version,
            "files": len(self.before),
            "bytes": self.size,
            "optimize": {
                "filesRewritten": plan.files,
                "bytesRewritten": plan.size,
                "bins": len(plan.bins),
                "filesAfter": len(self.after),
                "clusters": plan.clusters,
            },
            "columns": [
                {"name": column.name, "isKey": column.is_key, "now": _camel(column.now), "then": _camel(column.then)}
                for column in self.columns
            ],
        }

    def __str__(self) -> str:
        width = max((len(column.name) for column in self.columns), default=6)
        lines = [
            f"Version {self.version} of {self.table}: {counted(len(self.before), 'file')} of {self.size:,} bytes. {self.gain()}",
            f"{'column':{width}}  files of a point  of a range  after OPTIMIZE",
        ]
        for column in self.columns:
            now, then = column.now, column.then
            if now is None or then is None:
                lines.append(f"{column.name:{width}}  no values")
                continue
            lines.append(
                f"{column.name:{width}}  {now.point_files:16.1f}  {now.range_files:10.1f}  {then.point_files:6.1f}  {then.range_files:6.1f}"
            )
        return "\n".join(lines)

    def gain(self) -> str:
        """Describe the effect of OPTIMIZE in a sentence."""
        plan = self.plan
        if not plan.bins:
            return "OPTIMIZE would leave all as it is."
        how = f"cluster them by {', '.join(map(shown_path, plan.paths))}" if plan.clusters else "pack them"
        return (
            f"OPTIMIZE would take {counted(plan.files, 'file')} of {plan.size:,} bytes and {how}: "
            f"{counted(len(self.after), 'file')} in all."
        )

    def to_html(self) -> str:
        """Return the layout as a self-contained HTML page (`tahoe.ops.layout.layout_page`)."""
        return page_of(self)

    def _repr_html_(self) -> str:
        return notebook_part_of(self)


def layout_of(
    snapshot: Snapshot, by: Sequence[str] = (), axes: Sequence[str] = (), target_file_size: int | None = None
) -> TableLayout:
    """Compute the layout of a version.

    Args:
        by: the columns for OPTIMIZE to cluster by, if the table is not a clustered table; none for bin-packing.
        axes: the two columns of the drawing; by default the first two.
        target_file_size: the target file size of the OPTIMIZE in bytes.

    Raises `InvalidRequest`: a column does not exist, or has no statistics (`TAHOE_COLUMN_WITHOUT_STATISTICS`).
    """
    plan = plan_optimize(snapshot, OptimizeRequest(zorder_by=tuple(by), target_file_size=target_file_size), Moment(0))
    leaves = _leaves(snapshot, plan.paths)
    names = [shown_path(tuple(column.name for column in leaf)) for leaf in leaves]
    files = snapshot.files()
    lines = [_Line.of(snapshot, files, leaf) for leaf in leaves]
    before = tuple(_boxes(add_files(files), lines))
    after = tuple(_after(plan, before))
    keys = set(map(shown_path, plan.paths))
    columns = tuple(
        ColumnLayout(name, name in keys, measured(before, i, lines[i].length), measured(after, i, lines[i].length))
        for i, name in enumerate(names)
    )
    chosen = [_axis(snapshot, names, name) for name in axes] or [0, min(1, len(names) - 1)]
    return TableLayout(
        snapshot.store.url,
        snapshot.version,
        sum(box.size for box in before),
        plan,
        columns,
        before,
        after,
        tuple(line.length for line in lines),
        tuple(line.marks for line in lines),
        (chosen[0], chosen[-1]),
    )


def _leaves(snapshot: Snapshot, first: Sequence[Path]) -> list[tuple[StructField, ...]]:
    """Return the columns with statistics, clustering columns first."""
    config = snapshot.config
    indexed = indexed_columns(snapshot.schema, config.partition_columns, config.metadata.configuration)
    bounded = [leaf for leaf in indexed if has_bounds(leaf[-1].data_type)]
    first_leaves = [tuple(field_chain(snapshot.schema, path)) for path in first]
    leaves = [*(leaf for leaf in first_leaves if leaf in bounded), *(leaf for leaf in bounded if leaf not in first_leaves)][
        :_MOST_COLUMNS
    ]
    if not leaves:
        raise InvalidRequest(
            f"Table {config.table} collects no statistics of any column, so its layout cannot be described. Have "
            "delta.dataSkippingNumIndexedCols or delta.dataSkippingStatsColumns cover some.",
            code="TAHOE_COLUMN_WITHOUT_STATISTICS",
            table=config.table,
        )
    return leaves


def _axis(snapshot: Snapshot, names: Sequence[str], name: str) -> int:
    fields = field_chain(snapshot.schema, named_path(name))
    title = shown_path(tuple(field.name for field in fields)) if fields else name
    if title not in names:
        raise InvalidRequest(
            f"Column {name} of table {snapshot.config.table} has no statistics, or is not there; those that have are {', '.join(names)}.",
            code="TAHOE_COLUMN_WITHOUT_STATISTICS",
            table=snapshot.config.table,
            column=name,
        )
    return names.index(title)


# -- the existing files ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Line:
    """A column of all files: the interval of each file, and its bounds for display."""

    length: float
    intervals: Sequence[Interval]
    bounds: Sequence[tuple[str, str]]
    marks: tuple[tuple[float, str], ...]

    @classmethod
    def of(cls, snapshot: Snapshot, files: pa.Table, leaf: tuple[StructField, ...]) -> _Line:
        # The position of a bound is its rank among all bounds; equal bounds have the same position.
        statistics = statistics_of(files, stats_arrow_type(snapshot.schema, [leaf]))
        path = [column.physical_name for column in leaf]
        least, greatest = (pc.struct_field(statistics, [name, *path]) for name in ("minValues", "maxValues"))
        nulls = pc.struct_field(statistics, ["nullCount", *path])
        rows = pc.struct_field(statistics, ["numRecords"])
        values = pa.chunked_array([*least.chunks, *greatest.chunks], least.type).drop_null().unique()
        ordered = values.take(pc.sort_indices(values))
        length = float(max(1, len(ordered) - 1))
        low, high = (pc.index_in(column, value_set=ordered).to_pylist() for column in (least, greatest))
        empty = pc.fill_null(pc.equal(nulls, rows), pa.scalar(False)).to_pylist()
        intervals = [_interval(a, b, none, length) for a, b, none in zip(low, high, empty, strict=True)]
        bounds = [(_display_text(a), _display_text(b)) for a, b in zip(least.to_pylist(), greatest.to_pylist(), strict=True)]
        places = dict.fromkeys(round(length * share / 4) for share in range(5)) if len(ordered) else {}
        marks = tuple((float(place), _display_text(ordered[min(place, len(ordered) - 1)].as_py())) for place in places)
        return cls(length, intervals, bounds, marks)


def _interval(low: int | None, high: int | None, is_empty: bool, length: float) -> Interval:
    if is_empty:
        return None
    return 0.0 if low is None else float(low), length if high is None else float(high)


def _display_text(value: object) -> str:
    return "?" if value is None else str(value)


def _boxes(adds: Sequence[AddFile], lines: Sequence[_Line]) -> Iterator[Box]:
    for place, add in enumerate(adds):
        vector = add.deletion_vector
        yield Box(
            add.size,
            (add.num_records or 0) - (0 if vector is None else vector.cardinality),
            tuple(line.intervals[place] for line in lines),
            add.modification_time,
            add.path,
            tuple(line.bounds[place] for line in lines),
        )


# -- the files after OPTIMIZE -------------------------------------------------------------------------------------------------


def _after(plan: OptimizePlan, before: Sequence[Box]) -> Iterator[Box]:
    by_name = {box.name: box for box in before}
    taken = {add.path for files in plan.bins for add in files.adds}
    yield from (box for box in before if box.name not in taken)
    for files in plan.bins:
        boxes = [by_name[add.path] for add in files.adds]
        yield from _clustered(plan, files, boxes) if plan.clusters else [_around(boxes)]


def _around(boxes: Sequence[Box]) -> Box:
    """Return the box of one file with the rows of all boxes."""
    columns = [
        [interval for interval in column if interval is not None]
        for column in zip(*(box.intervals for box in boxes), strict=True)
    ]
    intervals = tuple((min(low for low, _ in some), max(high for _, high in some)) if some else None for some in columns)
    return Box(sum(box.size for box in boxes), sum(box.rows for box in boxes), intervals, max(box.modified_ms for box in boxes))


def _clustered(plan: OptimizePlan, files: Bin, boxes: Sequence[Box]) -> Iterator[Box]:
    """Predict the new files of a bin: spread hypothetical rows over its boxes, and place them as `tahoe.ops.layout.clustered` does."""
    cells = plan.files_of(files)
    sample_size = min(_ROWS_OF_A_BIN, _ROWS_OF_A_CELL * cells)
    points: list[tuple[float | None, ...]] = []
    weights: list[tuple[float, float, int]] = []
    for box in boxes:
        count = max(1, sample_size // len(boxes))
        points += spread(box, count, len(points))
        weights += [(box.size / count, box.rows / count, box.modified_ms)] * count
    # The clustering columns come first.
    keys = [pa.array([point[i] for point in points], pa.float64()) for i in range(len(plan.paths))]
    cells_of_rows = placement(keys, cells, plan.request.curve).cells(keys).to_pylist()
    groups: dict[int, list[int]] = {}
    for place, cell in enumerate(cells_of_rows):
        groups.setdefault(cell, []).append(place)
    for places in groups.values():
        size, rows = (round(sum(weights[place][which] for place in places)) for which in (0, 1))
        columns = zip(*(points[place] for place in places), strict=True)
        intervals = tuple(_reach([value for value in column if value is not None]) for column in columns)
        yield Box(size, rows, intervals, max(weights[place][2] for place in places))


def _reach(values: Sequence[float]) -> Interval:
    return (min(values), max(values)) if values else None


def _camel(value: PredicateCost | None) -> Mapping[str, float] | None:
    if value is None:
        return None
    words = {name: name.split("_") for name in asdict(value)}
    return {first + "".join(map(str.capitalize, rest)): round(getattr(value, name), 2) for name, (first, *rest) in words.items()}
