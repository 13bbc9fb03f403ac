"""Data skipping: the files that may contain a row for which a predicate is TRUE. Columns in, mask out; no I/O.

The predicate over rows becomes a predicate over the file's entry in the log (`stats_predicate`): `a < 5` becomes `minValues.a < 5`.
Unknown values are NULL, NULL propagates by SQL's rules, and a file is left out only if the result is FALSE. Partition
values are known, so for them the result is exact.

A greatest float counts only if the file's writer is known to rank NaN above it, as Spark does (`tahoe.protocol.nan_bounds`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa

from tahoe.base.lazy import pc
from tahoe.expr.compute.evaluate import evaluate
from tahoe.expr.tree.alternatives import outline
from tahoe.expr.tree.predicate import (
    FALSE,
    TRUE,
    And,
    Column,
    Comparison,
    Constant,
    In,
    IsNotNull,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    StartsWith,
    all_of,
    any_of,
    normalise,
    references,
    split_by_columns,
)
from tahoe.protocol.nan_bounds import are_nan_counted, is_float
from tahoe.protocol.partition import deserialize_column
from tahoe.protocol.statistics.bounds import NAN_COUNTED, has_bounds
from tahoe.protocol.statistics.stats_json import parse_statistics
from tahoe.schema.arrow import to_arrow_type
from tahoe.schema.arrow_values import combined, scalar
from tahoe.schema.collations import compares_by_bytes
from tahoe.schema.types import DataType, PrimitiveType, StructField, StructType

HAS_VALUES = "hasValues"
"""The column of a `stats_predicate` for the fact that a column is not NULL in every row: ``nullCount < numRecords``."""

NAN_MAY_BE_MISSING = Comparison("=", Column((NAN_COUNTED,)), Literal(False, PrimitiveType("boolean")))
"""The term of a `stats_predicate` for the fact that a file may have NaN above its greatest float: FALSE or unknown, never TRUE."""


@dataclass(frozen=True, slots=True)
class FileCondition:
    """A predicate, compiled once for all files.

    Args:
        predicate: over logical names.
        schema: the table's logical schema, with physical names if columns are mapped.
        partition_columns: logical names.
        condition: from `stats_predicate`, for the whole predicate; None if it cannot skip files.
        on_partitions: the part of the predicate on partition columns only; None for nothing.
        on_data: the rest of it, which may include partition columns too; None for nothing.
    """

    predicate: Predicate
    schema: StructType
    partition_columns: tuple[str, ...]
    condition: Predicate | None
    on_partitions: StatsCondition | None
    on_data: StatsCondition | None

    @classmethod
    def of(cls, predicate: Predicate, schema: StructType, partition_columns: Sequence[str]) -> FileCondition:
        """Compile a predicate; see the class."""
        on_partitions, on_data = _split(predicate, partition_columns)
        # Partition values decide exactly; statistics only keep too much, and evaluating a long condition for every file is slow.
        on_data = None if on_data is None else outline(on_data)
        in_short = all_of(outline(part) for part in (on_partitions, on_data) if part is not None)
        return cls(
            predicate,
            schema,
            tuple(partition_columns),
            stats_predicate(in_short, schema, partition_columns),
            StatsCondition.of(on_partitions, schema, partition_columns),
            StatsCondition.of(on_data, schema, partition_columns),
        )

    def keep(self, files: pa.Table) -> pa.BooleanArray:
        """Return True for each file that may contain a row for which the predicate is TRUE; never null.

        Args:
            files: with columns of `tahoe.log.replay.FILES_SCHEMA`. Used are ``partitionValues``, if the predicate names partition columns,
                and ``stats_parsed`` (``stats`` where that is null or missing); missing statistics are unknown. For
                greatest floats ``tags`` is used; where it is missing they are unknown.
        """
        if self.on_partitions is None:
            return pa.repeat(scalar(True), files.num_rows) if self.on_data is None else self.on_data.keep(files)
        mask = self.on_partitions.keep(files)
        if self.on_data is None:
            return mask
        if pc.all(mask).as_py():
            return self.on_data.keep(files)
        # Statistics are read only for the files that the partition condition keeps.
        left = files.select([name for name in _COLUMNS if name in files.column_names]).filter(mask)
        return pc.replace_with_mask(mask, mask, self.on_data.keep(left))


@dataclass(frozen=True, slots=True)
class StatsCondition:
    """The condition on a file's statistics and partition values that must not be FALSE, and the columns that it reads.

    Args:
        condition: from `stats_predicate`.
        statistics: from `wanted_statistics`.
        known: the physical paths for which it reads `HAS_VALUES`.
        partitions: the partition columns that it reads.
        reads_tags: whether it reads greatest floats, which files without a tag do not have.
    """

    condition: Predicate
    statistics: pa.StructType
    known: tuple[tuple[str, ...], ...]
    partitions: tuple[StructField, ...]
    reads_tags: bool

    @classmethod
    def of(cls, predicate: Predicate | None, schema: StructType, partition_columns: Sequence[str]) -> StatsCondition | None:
        """Compile a predicate; None if it cannot skip files."""
        condition = None if predicate is None else stats_predicate(predicate, schema, partition_columns)
        if condition is None:
            return None
        paths = references(condition)
        physical = {path[1] for path in paths if path[0] == "partitionValues"}
        return cls(
            condition,
            wanted_statistics(condition, schema),
            tuple(sorted(path[1:] for path in paths if path[0] == HAS_VALUES)),
            tuple(column for column in schema if column.physical_name in physical),
            (NAN_COUNTED,) in paths,
        )

    def keep(self, files: pa.Table) -> pa.BooleanArray:
        """Return True for each file for which the condition is not FALSE."""
        return combined(pc.fill_null(evaluate(self.condition, self._facts(files)), scalar(True)))

    def _facts(self, files: pa.Table) -> pa.Table:
        """The columns that the condition names."""
        columns: dict[str, Any] = {}
        if self.statistics.num_fields:
            statistics = statistics_of(files, self.statistics)
            columns = {member.name: pc.struct_field(statistics, [member.name]) for member in self.statistics.fields}
        if self.known:
            counts, rows = columns["nullCount"], columns["numRecords"]
            columns[HAS_VALUES] = _struct_column(
                {path: pc.less(pc.struct_field(counts, list(path)), rows) for path in self.known}
            )
        if self.reads_tags:
            columns[NAN_COUNTED] = are_nan_counted(files)
        if self.partitions:
            columns["partitionValues"] = _struct_column(
                {(column.physical_name,): partition_column(files, column) for column in self.partitions}
            )
        return pa.table(columns or {"none": pa.nulls(files.num_rows)})


def keep(predicate: Predicate, files: pa.Table, schema: StructType, partition_columns: Sequence[str]) -> pa.BooleanArray:
    """Apply `FileCondition.keep` for a predicate that is used once."""
    return FileCondition.of(predicate, schema, partition_columns).keep(files)


def stats_predicate(predicate: Predicate, schema: StructType, partition_columns: Sequence[str]) -> Predicate | None:
    """Return a condition on a file's statistics and partition values; the file is read unless it is FALSE. None if it cannot skip files.

    The columns are ``minValues``, ``maxValues`` and ``nullCount`` followed by physical names, ``partitionValues`` followed by the
    physical name of a partition column (typed, as in ``partitionValues_parsed``), `HAS_VALUES` followed by physical names, and that
    of `NAN_MAY_BE_MISSING`. A reader that lacks one of these treats it as NULL.
    """
    translated = _Translation(schema, partition_columns).translate(normalise(predicate))
    return None if translated == TRUE else translated


def wanted_statistics(predicate: Predicate, schema: StructType) -> pa.StructType:
    """Return the part of `tahoe.protocol.statistics.collect.stats_arrow_type` that a `stats_predicate` reads."""
    tree: dict[str, Any] = {}
    for path in sorted(references(predicate)):
        if path[0] == HAS_VALUES:
            tree["numRecords"] = pa.int64()
            path = ("nullCount", *path[1:])
        if path[0] not in ("minValues", "maxValues", "nullCount"):
            continue
        inner = tree
        for name in path[:-1]:
            inner = inner.setdefault(name, {})
        inner[path[-1]] = pa.int64() if path[0] == "nullCount" else to_arrow_type(_physical_field(schema, path[1:]).data_type)
    return _struct(tree)


def partition_column(files: pa.Table, column: StructField) -> pa.Array:
    """Return the typed values of one partition column of the files."""
    texts = pa.chunked_array(
        [_map_values(chunk, column.physical_name) for chunk in files.column("partitionValues").chunks], pa.string()
    )
    return deserialize_column(texts, column.data_type)


def _split(predicate: Predicate, partition_columns: Sequence[str]) -> tuple[Predicate | None, Predicate | None]:
    """Split as `split_by_columns` does, without taking apart a predicate on data columns only, which is slow for a long one."""
    asked, partitioned = references(predicate), set(partition_columns)
    if asked and not any(path[0] in partitioned for path in asked):
        return None, predicate
    return split_by_columns(predicate, partition_columns)


_COLUMNS = ("partitionValues", "stats", "stats_parsed", "tags")
_MAX_TERMS = 32
_MILLISECOND = timedelta(milliseconds=1)


class _Translation:
    def __init__(self, schema: StructType, partition_columns: Sequence[str]) -> None:
        self._schema = schema
        self._partitioned = {name.lower() for name in partition_columns}

    def translate(self, predicate: Predicate) -> Predicate:
        match predicate:
            case And(parts):
                return all_of(self.translate(part) for part in parts)
            case Or(parts):
                return any_of(self.translate(part) for part in parts)
            case Constant(value):
                return TRUE if value is True else FALSE
            case Not(part):
                leaf = part
            case _:
                leaf = predicate
        assert isinstance(leaf, Comparison | In | IsNull | IsNotNull | StartsWith)
        fields = _fields(self._schema, leaf.column.path)
        if fields is None:
            return TRUE
        if len(fields) == 1 and fields[0].name.lower() in self._partitioned:
            exact = _exactly(predicate, Column(("partitionValues", fields[0].physical_name)))
            return _has_value(exact) if not compares_by_bytes(fields[0]) else exact
        return _Bounded(fields).translate(predicate)


def _exactly(predicate: Predicate, column: Column) -> Predicate:
    """Return the predicate on a known value: FALSE where SQL yields NULL."""
    match predicate:
        case IsNull():
            return IsNull(column)
        case IsNotNull():
            return IsNotNull(column)
        case Not(In(_, literals)) if any(literal.value is None for literal in literals):
            return FALSE
        case Comparison("<=>", _, literal):
            return Comparison("<=>", column, literal)
        case Comparison(op, _, literal):
            inner: Predicate = Comparison(op, column, literal)
        case In(_, literals):
            inner = In(column, tuple(literal for literal in literals if literal.value is not None))
        case StartsWith(_, prefix):
            inner = StartsWith(column, prefix)
        case Not(In(_, literals)):
            inner = Not(In(column, literals))
        case Not(StartsWith(_, prefix)):
            inner = Not(StartsWith(column, prefix))
        case _:
            return TRUE
    return all_of((IsNotNull(column), inner))


def _has_value(predicate: Predicate) -> Predicate:
    """Weaken the result of `_exactly` for texts that may be equal although their bytes differ."""
    match predicate:
        case And((IsNotNull() as known, *_)):
            return known
        case Comparison(_, column, literal):
            return IsNull(column) if literal.value is None else IsNotNull(column)
    return predicate


class _Bounded:
    """Leaves of one data column, as conditions on its least and greatest value and its NULLs."""

    def __init__(self, fields: tuple[StructField, ...]) -> None:
        names = tuple(column.physical_name for column in fields)
        self._type = fields[-1].data_type
        self._least = Column(("minValues", *names))
        self._greatest = Column(("maxValues", *names))
        self._nulls = Column(("nullCount", *names))
        self._has_values = Column((HAS_VALUES, *names))
        self._is_leaf = not isinstance(self._type, StructType)
        # A collation's order differs from that of the bytes from which the bounds are made.
        self._ordered = has_bounds(self._type) and compares_by_bytes(fields[-1])
        self._moment = self._type in (PrimitiveType("timestamp"), PrimitiveType("timestamp_ntz"))
        self._was_float = any(change.get("fromType") == "float" for change in fields[-1].metadata.get("delta.typeChanges", ()))

    def translate(self, predicate: Predicate) -> Predicate:
        if not self._is_leaf:
            return TRUE  # a struct has no statistics itself
        if isinstance(predicate, IsNull):
            return Comparison(">", self._nulls, Literal(0, PrimitiveType("long")))
        some = Comparison("=", self._has_values, Literal(True, PrimitiveType("boolean")))
        return all_of((some, self._within(predicate))) if self._ordered else some

    def _within(self, predicate: Predicate) -> Predicate:
        match predicate:
            case Comparison("!=", _, literal):
                return self._not_only(literal)
            case Comparison(op, _, literal):
                return self._compared(op, literal)
            case In(_, literals):
                return any_of(self._between(low, high) for low, high in _ranges(literals))
            case Not(In(_, literals)):
                return self._in_none(literals)
            case StartsWith(_, prefix):
                return self._begins(prefix)
            case Not(StartsWith(_, prefix)):
                return any_of((Not(StartsWith(self._least, prefix)), Not(StartsWith(self._greatest, prefix))))
        return TRUE

    def _compared(self, op: str, literal: Literal) -> Predicate:
        if op in ("<", "<="):
            return self._below(op, literal)
        if op in (">", ">="):
            return self._above(op, literal)
        return self._between(literal, literal)

    def _between(self, low: Literal, high: Literal) -> Predicate:
        """Return the condition that a value between the two, inclusive, may exist."""
        return all_of((self._below("<=", high), self._above(">=", low)))

    def _below(self, op: str, literal: Literal) -> Predicate:
        return Comparison(op, self._least, Literal(self._loosened(literal.value, 1), self._type))

    def _above(self, op: str, literal: Literal) -> Predicate:
        value = literal.value
        if self._moment:
            # Greatest timestamps are truncated to milliseconds: the file's greatest may be up to a millisecond later.
            try:
                value = value - _MILLISECOND
            except OverflowError:
                return TRUE
        return self._with_nan(Comparison(op, self._greatest, Literal(self._loosened(value, -1), self._type)))

    def _not_only(self, literal: Literal) -> Predicate:
        if self._moment or self._was_float:
            return TRUE  # equal bounds do not imply equal values
        return self._with_nan(any_of((Comparison("<", self._least, literal), Comparison(">", self._greatest, literal))))

    def _with_nan(self, condition: Predicate) -> Predicate:
        """Weaken a condition on the greatest value, because some writers' greatest floats ignore NaN."""
        return any_of((condition, NAN_MAY_BE_MISSING)) if is_float(self._type) else condition

    def _in_none(self, literals: tuple[Literal, ...]) -> Predicate:
        if any(literal.value is None for literal in literals):
            return FALSE
        return all_of(self._not_only(literal) for literal in literals) if len(literals) <= _MAX_TERMS else TRUE

    def _begins(self, prefix: str) -> Predicate:
        literal = Literal(prefix, PrimitiveType("string"))
        early = any_of((Comparison("<=", self._least, literal), StartsWith(self._least, prefix)))
        return all_of((Comparison(">=", self._greatest, literal), early))

    def _loosened(self, value: Any, direction: int) -> Any:
        """Widen a bound of a double column that was float: bounds in the log have fewer digits than its values have now."""
        return value + direction * (abs(value) * 2**-22 + 2**-148) if self._was_float else value


def _ranges(literals: tuple[Literal, ...]) -> Iterator[tuple[Literal, Literal]]:
    """Cover the literals by a few ranges: one range each, or a range for several neighbors when there are many."""
    values = [literal for literal in literals if literal.value is not None]
    if len(values) <= _MAX_TERMS:
        yield from ((literal, literal) for literal in values)
        return
    not_numbers = [literal for literal in values if literal.value != literal.value]
    ordered = sorted((literal for literal in values if literal.value == literal.value), key=lambda literal: literal.value)
    size = -(-len(ordered) // _MAX_TERMS)
    for start in range(0, len(ordered), size):
        group = ordered[start : start + size]
        yield group[0], group[-1]
    yield from ((literal, literal) for literal in not_numbers[:1])


def statistics_of(files: pa.Table, shape: pa.StructType) -> pa.ChunkedArray:
    """Return the requested statistics from ``stats_parsed`` where a file has it, else from the text of ``stats``."""
    names = files.column_names
    texts = files.column("stats") if "stats" in names else pa.nulls(files.num_rows, pa.string())
    if "stats_parsed" not in names:
        return parse_statistics(texts, shape)
    parsed = files.column("stats_parsed")
    narrow = pa.chunked_array([_narrow_chunk(chunk, shape) for chunk in parsed.chunks], shape)
    unparsed = pc.and_(pc.is_null(parsed), pc.is_valid(texts))
    if not pc.any(unparsed).as_py():
        return narrow
    both = pa.chunked_array([*narrow.chunks, *parse_statistics(texts.filter(unparsed), shape).chunks], shape)
    ranks = pc.cumulative_sum(pc.cast(unparsed, pa.int64()))
    return both.take(pc.if_else(unparsed, pc.add(ranks, scalar(files.num_rows - 1)), _counting(files.num_rows)))


def _counting(rows: int) -> pa.Array:
    return pc.subtract(pc.cumulative_sum(pa.repeat(scalar(1, pa.int64()), rows)), scalar(1))


def _narrow_chunk(chunk: pa.StructArray, shape: pa.StructType) -> pa.StructArray:
    members = []
    for member in shape.fields:
        position = chunk.type.get_field_index(member.name)
        if position < 0:
            members.append(pa.nulls(len(chunk), member.type))
            continue
        values = pc.struct_field(chunk, [position])
        if pa.types.is_struct(member.type):
            nested = pa.types.is_struct(values.type)
            members.append(_narrow_chunk(values, member.type) if nested else pa.nulls(len(chunk), member.type))
        else:
            members.append(_cast(values, member.type))
    return pa.StructArray.from_arrays(members, fields=shape.fields)


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Cast the values to the column's current type; unknown if the old type does not widen to it."""
    if values.type == kind:
        return values
    try:
        return values.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.nulls(len(values), kind)


def _map_values(maps: pa.MapArray, key: str) -> pa.Array:
    """Return the value of one key in each map; null where the key is missing."""
    at = _regular_position(maps, key)
    if at is None:
        return pc.map_lookup(maps, scalar(key, maps.type.key_type), "first").cast(pa.string())
    start, width = at
    indices = pc.add(pc.multiply(_counting(len(maps)), scalar(width)), scalar(start))
    return maps.items.take(indices).cast(pa.string())


def _regular_position(maps: pa.MapArray, key: str) -> tuple[int, int] | None:
    """Return the first position and the step of the key's values if all maps have the same keys in the same order, as in most logs."""
    if not len(maps) or maps.null_count:
        return None
    offsets = maps.offsets
    widths = pc.min_max(pc.subtract(offsets.slice(1), offsets.slice(0, len(maps))))
    width = widths["min"].as_py()
    if not width or width != widths["max"].as_py():
        return None
    start = offsets[0].as_py()
    at = pc.index(maps.keys.slice(start, width), scalar(key, maps.type.key_type)).as_py()
    if at < 0:
        return None
    indices = pc.add(pc.multiply(_counting(len(maps)), scalar(width)), scalar(start + at))
    alike = pc.equal(maps.keys.take(indices), scalar(key, maps.type.key_type))
    return (start + at, width) if pc.all(alike).as_py() else None


def _struct(tree: dict[str, Any]) -> pa.StructType:
    return pa.struct([pa.field(name, _struct(value) if isinstance(value, dict) else value) for name, value in tree.items()])


def _struct_column(leaves: dict[tuple[str, ...], Any]) -> pa.StructArray:
    """Build a struct, nested according to the paths, from the columns at its leaves."""
    members: dict[str, Any] = {}
    for name in dict.fromkeys(path[0] for path in leaves):
        inner = {path[1:]: values for path, values in leaves.items() if path[0] == name}
        values = inner[()] if () in inner else _struct_column(inner)
        members[name] = combined(values)
    return pa.StructArray.from_arrays(list(members.values()), names=list(members))


def _fields(schema: StructType, path: tuple[str, ...]) -> tuple[StructField, ...] | None:
    fields: list[StructField] = []
    current: DataType = schema
    for name in path:
        column = current.find(name) if isinstance(current, StructType) else None
        if column is None:
            return None
        fields.append(column)
        current = column.data_type
    return tuple(fields)


def _physical_field(schema: StructType, path: tuple[str, ...]) -> StructField:
    current: DataType = schema
    for name in path:
        assert isinstance(current, StructType)
        column = next(column for column in current if column.physical_name == name)
        current = column.data_type
    return column
