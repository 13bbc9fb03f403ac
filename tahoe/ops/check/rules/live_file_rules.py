"""Rules of a version's live files that need only the log, a listing, the deletion vectors and the footers of data files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, TypeVar

import pyarrow as pa

from tahoe.base.exceptions import CorruptTable, NotFound, TahoeError
from tahoe.base.lazy import pc
from tahoe.base.progress import Progress, silent
from tahoe.log.files.live_files import add_files
from tahoe.ops.check.subjects.rule import Breaches, Broken, RuleList, Unreadable
from tahoe.protocol.actions import DeletionVectorDescriptor, vector_of
from tahoe.protocol.dv import decode, file_name
from tahoe.protocol.partition import deserialize
from tahoe.protocol.row_tracking import has_row_tracking, high_water_mark
from tahoe.protocol.statistics.file_statistics import FileStatistics
from tahoe.protocol.statistics.stats_json import parse_statistics
from tahoe.schema.arrow_values import array, scalar
from tahoe.snapshot.arrow_reader import ReadTask, check_footer
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.location import decode_path, is_outside
from tahoe.store.log_store import LogStore

RULES: RuleList[LiveFiles] = RuleList()

T = TypeVar("T")
R = TypeVar("R")

_NUM_RECORDS = pa.struct([("numRecords", pa.int64())])
_MOST_REQUESTS = 1_000
_REPORTED_BY_STORAGE = ("DELTA_FILE_NOT_FOUND", "TAHOE_DATA_FILE_SIZE")
MOST_FOOTERS = 2_000
"""Each footer costs a request: for larger tables only the footers of the newest files are read, all of them only by a deep check."""


@dataclass(frozen=True)
class LiveFiles:
    """The live files of a snapshot, column by column, in one order.

    Args:
        progress: receives the progress of the rules.
        reads_rows: whether all data files are read too, so that their footers need not be checked.
    """

    snapshot: Snapshot
    table: pa.Table
    progress: Progress = silent
    reads_rows: bool = False

    @property
    def store(self) -> LogStore:
        """The table's store."""
        return self.snapshot.store

    @cached_property
    def paths(self) -> list[str]:
        """The paths as in the log."""
        return self.column("path")

    @cached_property
    def names(self) -> list[str | CorruptTable]:
        """The store's names, or the error of an invalid path."""
        return [_name(path, self.store.url) for path in self.paths]

    @cached_property
    def vectors(self) -> list[DeletionVectorDescriptor | None]:
        """The descriptor of each file's deletion vector; None for a file without one."""
        return [vector_of(value) for value in self.column("deletionVector")]

    @cached_property
    def num_records(self) -> list[int | None]:
        """The row counts in the statistics; None where they are missing or unreadable."""
        counts = parse_statistics(self.table["stats"], _NUM_RECORDS)
        records = pc.struct_field(counts, "numRecords")
        if "stats_parsed" in self.table.column_names:
            parsed = self.table["stats_parsed"]
            if parsed.type.get_field_index("numRecords") >= 0:
                # Statistics that only the checkpoint's struct column contains.
                counted = pc.struct_field(parsed, "numRecords")
                records = pc.coalesce(
                    records, pc.if_else(self.table["stats"].is_null(), counted, pa.nulls(len(counted), counted.type))
                )
        values: list[int | None] = records.to_pylist()
        return values

    def column(self, name: str) -> list[Any]:
        """The values of one column of `tahoe.log.replay.FILES_SCHEMA`, in the order of the files."""
        values: list[Any] = self.table[name].to_pylist()
        return values

    def shown(self, index: int) -> str:
        """The name of a file for messages."""
        name = self.names[index]
        return name if isinstance(name, str) else self.paths[index]


def side_by_side(work: Callable[[T], R], items: Iterable[T], workers: int | None = None) -> Iterator[R]:
    """Apply `work` to each item on a few threads, in completion order; at most as many items are in progress as there are threads."""
    count = workers or min(8, (os.cpu_count() or 1) + 2)
    with ThreadPoolExecutor(count, thread_name_prefix="tahoe-check") as pool:
        rest = iter(items)
        running: set[Future[R]] = {pool.submit(work, item) for item in islice(rest, count)}
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
            running |= {pool.submit(work, item) for item in islice(rest, len(done))}


@RULES.rule("Data Files", quick="file", strict=False)
def live_files_exist(files: LiveFiles) -> Breaches:
    """Check that each file exists and has the size that the log records."""
    present: dict[str, int] = {}
    for entry in files.store.walk():
        present[entry.name] = entry.size
        if len(present) % 1_000 == 0:
            files.progress("files listed", len(present))
    requests = 0
    for name, size in zip(files.names, files.column("size"), strict=True):
        if not isinstance(name, str):
            yield Unreadable(name, "A path", name.facts.get("path"))
            continue
        actual = present.get(name)
        if actual is None and (requests < _MOST_REQUESTS or is_outside(name)):
            # A listing may be stale, and does not follow links: a request for the name decides.
            requests += 1
            stored = files.store.head(name)
            actual = None if stored is None else stored.size
        if actual is None:
            yield Broken(f"data file {name} is missing", name)
        elif actual != size:
            yield Broken(f"data file {name} has {actual} bytes, the log says {size}", name)


@RULES.rule("Per-file Statistics", quick="statistics", strict=False)
def statistics_have_a_row_count(files: LiveFiles) -> Breaches:
    """Check that statistics are JSON with a row count."""
    texts = files.table["stats"]
    counts = array(files.num_records, pa.int64())
    doubtful = pc.and_(pc.is_valid(texts), pc.fill_null(pc.less(counts, scalar(0)), scalar(True)))
    for index in pc.indices_nonzero(doubtful).to_pylist():
        name = files.shown(index)
        try:
            count = FileStatistics.from_json(texts[index].as_py()).num_records
        except Exception as error:  # noqa: BLE001 - any error of a corrupt text is the finding
            yield Unreadable(error, f"The statistics of {name}", name)
            continue
        if count < 0:
            yield Broken(f"the statistics of {name} say {count} rows", name)


@RULES.rule("Partition Value Serialization", quick="partition", strict=False)
def partition_values_have_their_types(files: LiveFiles) -> Breaches:
    """Check that each file has a value for each partition column, and that it can be read as the column's type."""
    values = files.table["partitionValues"]
    columns = files.snapshot.config.partition_schema
    if columns:
        expected = {column.physical_name.lower() for column in columns}
        for index, pairs in enumerate(values.to_pylist()):
            missing = expected - {name.lower() for name, _ in pairs or ()}
            if missing:
                name = files.shown(index)
                yield Broken(f"file {name} has no value of partition column {min(missing)}", name)
    for column in columns:
        texts = pc.map_lookup(values, scalar(column.physical_name, values.type.key_type), "first")
        for text in pc.unique(texts).to_pylist():
            try:
                deserialize(text, column.data_type)
            except TahoeError as error:
                index = pc.index(texts, scalar(text, texts.type)).as_py()
                yield Unreadable(error, f"Column {column.name}", files.shown(index))


# -- vectors ---------------------------------------------------------------------------------------------------------------


@RULES.rule("Deletion Vectors", quick="vector", strict=False)
def vectors_mark_existing_rows(files: LiveFiles) -> Breaches:
    """Check that each vector decodes to its cardinality and marks existing rows. A file of many vectors is read once."""
    by_file: dict[str | None, list[int]] = {}
    for index, vector in enumerate(files.vectors):
        if vector is None:
            continue
        try:
            by_file.setdefault(file_name(vector, files.store.url), []).append(index)
        except TahoeError as error:
            yield Unreadable(error, "A deletion vector", files.shown(index))
    done, total = 0, sum(map(len, by_file.values()))
    work = [(name, indices[at : at + 4096]) for name, indices in by_file.items() for at in range(0, len(indices), 4096)]
    for count, breaches in side_by_side(lambda item: (len(item[1]), list(_vectors_of_file(files, *item))), work):
        done += count
        files.progress("deletion vectors checked", done, total)
        yield from breaches


def _vectors_of_file(files: LiveFiles, name: str | None, indices: Sequence[int]) -> Breaches:
    try:
        content = b"" if name is None else files.store.get(name)
    except TahoeError as error:
        yield from (Unreadable(error, f"Deletion vector file {name}", files.shown(index)) for index in indices)
        return
    for index in indices:
        try:
            yield from _vector(files, index, content)
        except Exception as error:  # noqa: BLE001 - any error of a corrupt vector is the finding
            yield Unreadable(error, f"The deletion vector of {files.shown(index)}", files.shown(index))


def _vector(files: LiveFiles, index: int, content: bytes) -> Breaches:
    name, rows, vector = files.shown(index), files.num_records[index], files.vectors[index]
    if vector is None:
        return
    if rows is not None and vector.cardinality > rows:
        yield Broken(f"the deletion vector of {name} marks {vector.cardinality} of {rows} rows", name)
    bitmap = decode(vector, lambda _: content, files.store.url)
    if rows is not None and len(bitmap) and bitmap.max() >= rows:
        yield Broken(f"the deletion vector of {name} removes row {bitmap.max()} of {rows}", name)


# -- row ids ---------------------------------------------------------------------------------------------------------------


@RULES.rule("Row IDs", quick="row-ids", strict=False)
def row_ids_are_unique(files: LiveFiles) -> Breaches:
    """Check, where rows are tracked, that each file has ids, that none is assigned twice, and that none exceeds the high-water mark."""
    if not has_row_tracking(files.snapshot.config):
        return
    bases, versions = files.column("baseRowId"), files.column("defaultRowCommitVersion")
    for index, (base, version) in enumerate(zip(bases, versions, strict=True)):
        if base is None or version is None:
            name = files.shown(index)
            yield Broken(f"the table tracks rows, and file {name} has no row ids or no row version", name)
    order = sorted((base, index) for index, base in enumerate(bases) if base is not None)
    highest, last = -1, None
    for base, index in order:
        if last is not None and base <= highest:
            name = files.shown(index)
            yield Broken(f"files {files.shown(last)} and {name} have row ids in common", name)
        end = base + (files.num_records[index] or 0) - 1
        if last is None or end > highest:
            highest, last = end, index
    mark = high_water_mark(files.snapshot.state.domains)
    if order and (mark is None or highest > mark):
        yield f"the highest row id given is {highest}, but the table's high-water mark says {mark}"


# -- footers ---------------------------------------------------------------------------------------------------------------


@RULES.rule("Per-file Statistics", quick="data", strict=False)
def footers_agree_with_the_log(files: LiveFiles) -> Breaches:
    """Footers of the newest `MOST_FOOTERS` files that reads refuse before the first row: corrupt, or contradicting the statistics."""
    newest = (
        [index for index, name in enumerate(files.names) if isinstance(name, str)][-MOST_FOOTERS:] if not files.reads_rows else []
    )
    texts, sizes = files.column("stats"), files.column("size")
    schema, mode, store = files.snapshot.config.data_schema, files.snapshot.config.column_mapping_mode, files.store

    def check(index: int) -> Unreadable | None:
        try:
            # A checkpoint may contain statistics only as a struct column.
            stats = texts[index] or add_files(files.table.slice(index, 1))[0].stats
            task = ReadTask(files.shown(index), sizes[index], {}, files.vectors[index], stats=stats)
            check_footer(task, schema, mode, store.open_input)
        except Exception as error:  # noqa: BLE001 - any error of a corrupt footer is the finding
            if not isinstance(error, NotFound | CorruptTable) or error.code not in _REPORTED_BY_STORAGE:
                return Unreadable(error, f"Data file {files.shown(index)}", files.shown(index))
        return None

    # For local files, threads cost more than reading the footer.
    results = map(check, newest) if store.url.startswith(("file:", "memory:")) else side_by_side(check, newest)
    for done, unreadable in enumerate(results, start=1):
        files.progress("footers checked", done, len(newest))
        if unreadable is not None:
            yield unreadable


def _name(path: str, root: str) -> str | CorruptTable:
    try:
        return decode_path(path, root, outside=True)
    except CorruptTable as error:
        return error
