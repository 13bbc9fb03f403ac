"""The live files that a predicate keeps, without making the table of all live files: the predicate goes into the checkpoint's read.

Three sieves, each finer and dearer than the one before. None throws out what the next would keep, so only the last decides:

1. row groups, by the Parquet statistics of ``stats_parsed`` and ``partitionValues_parsed`` (no data is read);
2. rows, by the few leaf columns that the predicate speaks of: ``stats_parsed`` where it is there, else the text of the statistics, which
   `tahoe.log.text_filter` refutes without parsing it;
3. `tahoe.protocol.skipping.keep`, on whole rows, of which few are left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from tahoe.expr.predicate import Predicate, split_by_columns
from tahoe.log.checkpoint_reader import CheckpointReader, RowGroup, concat, conformed_adds
from tahoe.log.files import FILES_SCHEMA, files_table
from tahoe.log.text_filter import TextFilter, text_filter
from tahoe.protocol.actions import AddFile
from tahoe.protocol.row_groups import row_groups_to_read
from tahoe.protocol.skipping import keep, stats_predicate, wanted_statistics
from tahoe.schema.types import StructType

__all__ = ["ScanPlan", "candidates", "plan_scan"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """A predicate, and what follows from it for the columns of the log.

    Args:
        condition: of `stats_predicate`; None where nothing can be said.
        on_partitions, on_data: the predicate's two parts.
        statistics: the part of the statistics that `condition` reads.
        texts: refutes the text of statistics; None where it must be parsed.
    """

    schema: StructType
    partition_columns: tuple[str, ...]
    condition: Predicate | None
    on_partitions: Predicate | None
    on_data: Predicate | None
    statistics: pa.StructType
    texts: TextFilter | None


def plan_scan(predicate: Predicate, schema: StructType, partition_columns: Sequence[str]) -> ScanPlan:
    """See `ScanPlan`."""
    on_partitions, on_data = split_by_columns(predicate, partition_columns)
    data_condition = None if on_data is None else stats_predicate(on_data, schema, partition_columns)
    return ScanPlan(
        schema=schema,
        partition_columns=tuple(partition_columns),
        condition=stats_predicate(predicate, schema, partition_columns),
        on_partitions=on_partitions,
        on_data=on_data if data_condition is not None else None,
        statistics=pa.struct([]) if data_condition is None else wanted_statistics(data_condition, schema),
        texts=text_filter(data_condition, schema),
    )


def candidates(checkpoint: CheckpointReader, plan: ScanPlan, threads: int) -> pa.Table:
    """The checkpoint's files that the first two sieves leave: those that the predicate keeps, and some more.

    Args:
        threads: how many row groups may be read side by side.
    """
    embedded = [action for action in checkpoint.actions if isinstance(action, AddFile)]
    parts = [files_table(embedded)] if embedded else []
    groups = [
        RowGroup(source, index)
        for source in checkpoint.sources
        if "add.path" in source.leaves
        for index in row_groups_to_read(source.metadata, plan.condition)
    ]
    if len(groups) == 1 and groups[0].metadata.num_rows > 2 * _BATCH_ROWS:
        parts += _scan_group(groups[0], plan, _side_by_side(threads))
    elif len(groups) > 1 and sum(group.metadata.num_rows for group in groups) > _BATCH_ROWS:
        with ThreadPoolExecutor(min(threads, len(groups))) as pool:
            for found in pool.map(lambda group: _scan_group(group, plan, map), groups):
                parts += found
    else:
        for group in groups:
            parts += _scan_group(group, plan, map)
    return concat(parts, FILES_SCHEMA)


_BATCH_ROWS = 32_768


@dataclass(frozen=True, slots=True)
class _Sifted:
    """The second sieve's answer for one batch: which rows are left, and the texts of their statistics where those were read."""

    mask: pa.Array
    left: int
    texts: pa.Array | None


def _scan_group(group: RowGroup, plan: ScanPlan, run: Callable[..., Iterator[_Sifted]]) -> list[pa.Table]:
    columns, sift = _sieve(group, plan)
    if sift is None:
        return [read for batch in group.batches(_columns(group), _BATCH_ROWS) if (read := _rows(group, batch)).num_rows]
    sifted = list(run(sift, group.batches(columns, _BATCH_ROWS)))
    while sifted and not sifted[-1].left:
        sifted.pop()
    if not sifted:
        return []
    have_texts = sifted[0].texts is not None
    found = []
    for batch, answer in zip(group.batches(_columns(group, without_stats=have_texts), _BATCH_ROWS), sifted, strict=False):
        if answer.left:
            found.append(_rows(group, batch.filter(answer.mask), answer.texts))
    return found


def _sieve(group: RowGroup, plan: ScanPlan) -> tuple[list[str], Callable[[pa.RecordBatch], _Sifted] | None]:
    """The leaf columns that decide about a row, and how; no function where no column can."""
    leaves = group.file.leaves
    columns: list[str] = []
    if plan.on_partitions is not None and any(leaf.startswith("add.partitionValues.") for leaf in leaves):
        columns.append("add.partitionValues")
    parsed = [path for path in _leaf_paths(plan.statistics, "add.stats_parsed") if path in leaves]
    by_text = plan.on_data is not None and not parsed and "add.stats" in leaves
    if plan.on_data is not None and parsed:
        columns += parsed
    if by_text:
        columns.append("add.stats")
    if not columns:
        return [], None

    def sift(batch: pa.RecordBatch) -> _Sifted:
        struct = batch.column("add")
        members = dict(zip([field.name for field in struct.type], struct.flatten(), strict=True))
        mask = _mask(members, struct, plan)
        left = mask.true_count
        texts = members["stats"].filter(mask) if by_text else None
        return _Sifted(mask, left, texts)

    return columns, sift


def _mask(members: dict[str, pa.Array], struct: pa.StructArray, plan: ScanPlan) -> pa.Array:
    mask = struct.is_valid()
    if plan.on_partitions is not None and "partitionValues" in members:
        mask = pc.and_(mask, _kept(plan.on_partitions, {"partitionValues": members["partitionValues"]}, plan))
        if not mask.true_count:
            return mask
    if plan.on_data is None:
        return mask
    if "stats_parsed" in members:
        return pc.and_(mask, _kept(plan.on_data, {"stats_parsed": members["stats_parsed"]}, plan))
    if "stats" in members:
        texts = members["stats"]
        if plan.texts is None:
            return pc.and_(mask, _kept(plan.on_data, {"stats": texts}, plan))
        return pc.and_not(mask, pc.fill_null(plan.texts.refuted(texts), False))
    return mask


def _kept(predicate: Predicate, columns: dict[str, pa.Array], plan: ScanPlan) -> pa.Array:
    return keep(predicate, pa.table(columns), plan.schema, plan.partition_columns)


def _columns(group: RowGroup, without_stats: bool = False) -> list[str]:
    """All that a row of live files has, as the file holds it."""
    present = {leaf.split(".")[1] for leaf in group.file.leaves if leaf.startswith("add.")}
    names = [*FILES_SCHEMA.names, "stats_parsed", "partitionValues_parsed"]
    return [f"add.{name}" for name in names if name in present and not (without_stats and name == "stats")]


def _rows(group: RowGroup, batch: pa.RecordBatch, texts: pa.Array | None = None) -> pa.Table:
    struct = batch.column("add")
    members = dict(zip([field.name for field in struct.type], struct.flatten(), strict=True))
    if texts is not None:
        members["stats"] = texts
    return conformed_adds(group, members)


def _leaf_paths(kind: pa.StructType, path: str) -> Iterator[str]:
    for field in kind:
        inner = f"{path}.{field.name}"
        if pa.types.is_struct(field.type):
            yield from _leaf_paths(field.type, inner)
        else:
            yield inner


def _side_by_side(threads: int) -> Callable[..., Iterator[T]]:
    """A `map` whose function runs on other threads while the next argument is made; not more are made ahead than threads can take."""

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
