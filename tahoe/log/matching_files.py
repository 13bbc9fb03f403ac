"""Reads the live files that a predicate keeps, without reading all: the predicate is pushed into the read of the checkpoint.

There are three filters, each more precise and more expensive than the one before. None drops a file that the next would keep, so only
the last decides:

1. row groups, by the Parquet statistics of ``stats_parsed`` and ``partitionValues_parsed`` (no data is read);
2. rows, by the few leaf columns of the predicate: ``stats_parsed`` if the checkpoint has it, else the text of the statistics, which
   `tahoe.log.text_filter` refutes without parsing it;
3. `tahoe.protocol.skipping.FileCondition.keep`, on the complete rows that the second filter could not decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from tahoe.base.lazy import pc
from tahoe.expr.tree.predicate import Predicate, references
from tahoe.log.checkpoints.checkpoint_reader import CheckpointReader, conformed_adds
from tahoe.log.checkpoints.parquet_source import ParquetSource, RowGroup
from tahoe.log.files.columns import concat
from tahoe.log.files.live_files import FILES_SCHEMA, files_table
from tahoe.log.partition_keys import check_keys, has_all_keys
from tahoe.log.text_filter import TextFilter, text_filter
from tahoe.protocol.actions import AddFile
from tahoe.protocol.nan_bounds import are_nan_counted
from tahoe.protocol.skipping import FileCondition, StatsCondition
from tahoe.protocol.statistics.checkpoint_row_groups import row_groups_to_read
from tahoe.schema.types import StructType

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """A predicate, compiled for the columns of the log.

    Args:
        files: the compiled predicate: the third filter, and the two parts that decide about a batch in the second.
        reads_partitions: whether any part of it refers to partition columns.
        texts: refutes the text of statistics, with `reads_tags` only of files with the tag; None if the text must be parsed.
        reads_tags: whether the predicate needs the greatest floats, which only files with a tag have.
    """

    files: FileCondition
    reads_partitions: bool
    texts: TextFilter | None
    reads_tags: bool


def plan_scan(predicate: Predicate, schema: StructType, partition_columns: Sequence[str]) -> ScanPlan:
    """See `ScanPlan`."""
    partitioned = {name.lower() for name in partition_columns}
    compiled = FileCondition.of(predicate, schema, partition_columns)
    return ScanPlan(
        files=compiled,
        reads_partitions=bool(partitioned & {path[0].lower() for path in references(predicate)}),
        texts=text_filter(None if compiled.on_data is None else compiled.on_data.condition, schema),
        reads_tags=compiled.on_data is not None and compiled.on_data.reads_tags,
    )


def scan_checkpoint(checkpoint: CheckpointReader, plan: ScanPlan, threads: int) -> pa.Table:
    """Read the checkpoint's files that the predicate keeps: `FILES_SCHEMA`, and ``stats_parsed`` if statistics have no text.

    Args:
        threads: the greatest number of row groups to read in parallel.
    """
    embedded = [action for action in checkpoint.actions if isinstance(action, AddFile)]
    files = check_keys(
        checkpoint.store.url, files_table(embedded), plan.files.schema, plan.files.partition_columns, checkpoint.checkpoint
    )
    parts = [_decided(files, plan)] if embedded else []
    groups = [group for source in checkpoint.opened("add.path") for group in _groups(source, plan)]
    if len(groups) == 1 and groups[0].metadata.num_rows > 2 * _BATCH_ROWS:
        parts += _scan_group(groups[0], plan, _side_by_side(threads))
    elif len(groups) > 1 and sum(group.metadata.num_rows for group in groups) > _BATCH_ROWS:
        with ThreadPoolExecutor(min(threads, len(groups))) as pool:
            for tables in pool.map(lambda group: _scan_group(group, plan, map), groups):
                parts += tables
    else:
        for group in groups:
            parts += _scan_group(group, plan, map)
    return concat(parts, FILES_SCHEMA)


# Small enough that a batch fits in the processor's cache and its memory is reused for the next.
_BATCH_ROWS = 8_192


@dataclass(frozen=True, slots=True)
class _SiftedRows:
    """The result of the second filter for one batch.

    Args:
        mask: true for the rows that are left.
        left: their number.
        exact: whether the third filter would keep them all.
        texts: the text statistics of those rows, if they were read.
    """

    mask: pa.Array
    left: int
    exact: bool
    texts: pa.Array | None = None


def _scan_group(group: RowGroup, plan: ScanPlan, run: Callable[..., Iterator[_SiftedRows]]) -> list[pa.Table]:
    columns = _deciding_columns(group, plan)
    if not columns:
        read = (conformed_adds(group, batch.column("add")) for batch in group.batches(_columns(group), _BATCH_ROWS))
        return [_decided(_with_keys(group, files, plan), plan) for files in read]
    sifted = list(run(lambda batch: _sift(group, batch, plan), group.batches(columns, _BATCH_ROWS)))
    while sifted and not sifted[-1].left:
        sifted.pop()
    if not sifted:
        return []
    tables = []
    columns = _columns(group, without_stats="add.stats" in columns)
    for batch, answer in zip(group.batches(columns, _BATCH_ROWS), sifted, strict=False):
        if answer.left:
            rows = conformed_adds(group, batch.column("add").filter(answer.mask), answer.texts)
            tables.append(rows if answer.exact else _decided(rows, plan))
    return tables


def _deciding_columns(group: RowGroup, plan: ScanPlan) -> list[str]:
    """Return the leaf columns that decide about a row; none if no column can."""
    leaves = group.file.leaves
    columns = []
    if plan.reads_partitions:
        if not any(leaf.startswith("add.partitionValues.") for leaf in leaves):
            return []
        columns.append("add.partitionValues")
    if plan.files.on_data is not None:
        parsed = [path for path in _leaf_paths(plan.files.on_data.statistics, "add.stats_parsed") if path in leaves]
        columns += parsed or [path for path in ("add.stats",) if path in leaves]
        if plan.reads_tags and any(leaf.startswith("add.tags.") for leaf in leaves):
            columns.append("add.tags")
    return columns


def _groups(source: ParquetSource, plan: ScanPlan) -> list[RowGroup]:
    """Return the row groups that may contain matching files. Nulls in ``partitionValues_parsed`` count only if no file lacks a value."""
    selected = set(row_groups_to_read(source.metadata, plan.files.condition))
    width = len(plan.files.partition_columns)
    return [
        group
        for group in source.row_groups()
        if group.index in selected or (plan.reads_partitions and not has_all_keys(group, width))
    ]


def _sift(group: RowGroup, batch: pa.RecordBatch, plan: ScanPlan) -> _SiftedRows:
    struct = batch.column("add")
    members = dict(zip([field.name for field in struct.type], struct.flatten(), strict=True))
    if plan.reads_partitions:
        # NULL does not match most predicates, so a missing partition value must not be taken for NULL.
        maps = members["partitionValues"]
        present = pa.table({"partitionValues": maps.filter(struct.is_valid()) if struct.null_count else maps})
        _with_keys(group, present, plan)
    mask = struct.is_valid()
    exact = True
    on_partitions, on_data = plan.files.on_partitions, plan.files.on_data
    if on_partitions is not None:
        mask = pc.and_(mask, _kept(on_partitions, members, "partitionValues"))
    if on_data is not None and mask.true_count:
        if "stats_parsed" in members:
            mask = pc.and_(mask, _kept(on_data, members, "partitionValues", "stats_parsed", "tags"))
            exact = not pc.any(pc.and_(mask, members["stats_parsed"].is_null())).as_py()
        elif plan.texts is not None and "stats" in members:
            refuted = plan.texts.refuted(members["stats"])
            if plan.reads_tags:
                read = pa.table({name: members[name] for name in ("stats", "tags") if name in members})
                refuted = pc.and_(refuted, are_nan_counted(read))
            mask = pc.and_not(mask, pc.fill_null(refuted, False))
            exact = False
        else:
            mask = pc.and_(mask, _kept(on_data, members, "partitionValues", "stats", "tags"))
            exact = "stats" in members
    return _SiftedRows(mask, mask.true_count, exact, members["stats"].filter(mask) if "stats" in members else None)


def _with_keys(group: RowGroup, files: pa.Table, plan: ScanPlan) -> pa.Table:
    return check_keys(group.file.store.url, files, plan.files.schema, plan.files.partition_columns, group.file.checkpoint)


def _kept(condition: StatsCondition, members: dict[str, pa.Array], *names: str) -> pa.Array:
    return condition.keep(pa.table({name: members[name] for name in names if name in members}))


def _decided(files: pa.Table, plan: ScanPlan) -> pa.Table:
    return files.filter(plan.files.keep(files))


def _columns(group: RowGroup, without_stats: bool = False) -> list[str]:
    """Return all columns of live files; statistics as text if all rows have it, otherwise as a struct."""
    present = {leaf.split(".")[1] for leaf in group.file.leaves if leaf.startswith("add.")}
    names = [name for name in FILES_SCHEMA.names if name in present and not (without_stats and name == "stats")]
    if "stats_parsed" in present and group.non_null("add.stats") != group.non_null("add.path"):
        names.append("stats_parsed")
    return [f"add.{name}" for name in names]


def _leaf_paths(kind: pa.StructType, path: str) -> Iterator[str]:
    for field in kind:
        inner = f"{path}.{field.name}"
        if pa.types.is_struct(field.type):
            yield from _leaf_paths(field.type, inner)
        else:
            yield inner


def _side_by_side(threads: int) -> Callable[..., Iterator[T]]:
    """A `map` whose function runs on other threads while the next argument is made, a few ahead."""

    def run(function: Callable[[pa.RecordBatch], T], arguments: Iterator[pa.RecordBatch]) -> Iterator[T]:
        with ThreadPoolExecutor(threads) as pool:
            waiting = []
            for argument in arguments:
                waiting.append(pool.submit(function, argument))
                if len(waiting) > 2 * threads:
                    yield waiting.pop(0).result()
            for future in waiting:
                yield future.result()

    return run
