"""Reads the evidence that resolves a conflict by rows, and stores merged vectors: the input and output for `tahoe.txn.row_level`."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from tahoe.base.clock import Clock
from tahoe.base.exceptions import NotFound
from tahoe.expr.tree.predicate import any_of, references
from tahoe.log.files.live_files import canonical_path
from tahoe.protocol.actions import Action, AddFile, DeletionVectorDescriptor
from tahoe.protocol.dv import descriptor_in_file, new_file_name, pack
from tahoe.snapshot.arrow_reader import ReadTask
from tahoe.snapshot.data_reader import DataFiles, VectorReader
from tahoe.snapshot.read_errors import located_batches
from tahoe.store.location import decode_path
from tahoe.store.log_store import LogStore
from tahoe.txn.prepare import PreparedCommit
from tahoe.txn.row_level import Evidence, Questions

if TYPE_CHECKING:
    from pyroaring import BitMap64


logger = logging.getLogger(__name__)

# More of the concurrent commits' data is not read: running the operation again would cost about as much.
MOST_BYTES_READ = 256 << 20
# Larger merged vectors, in bytes, go to a file, so that the log stays small.
LARGEST_INLINE_VECTOR = 1024


def gather(store: LogStore, mine: PreparedCommit, questions: Questions) -> Evidence:
    """Read the requested evidence; if a file is missing, its conflict remains."""
    files = DataFiles(store, mine.config)
    vectors: dict[str, BitMap64] = {}
    matches: dict[str, BitMap64] = {}
    for descriptor in questions.vectors:
        try:
            vectors[descriptor.unique_id] = files.vectors.bitmap(descriptor)
        except NotFound as error:
            logger.warning("a conflict on %s cannot be resolved: %s", store.url, error)
    if sum(add.size for add in questions.files) <= MOST_BYTES_READ:
        for add in questions.files:
            try:
                matches[canonical_path(add.path, store.url)] = _matches(files, mine, add)
            except NotFound as error:
                logger.warning("a conflict on %s cannot be resolved: %s", store.url, error)
    return Evidence(vectors, matches)


def store_large_vectors(store: LogStore, prepared: PreparedCommit, clock: Clock) -> PreparedCommit:
    """Move the commit's larger inline vectors to one vector file. If the commit fails, VACUUM deletes the file."""
    large = {add.path: vector for add in prepared.actions if isinstance(add, AddFile) and (vector := _large_vector(add))}
    if not large:
        return prepared
    uuid = clock.uuid()
    data, places = pack(map(VectorReader(store).bitmap, large.values()))
    store.put(new_file_name(uuid), data)
    placed = {path: descriptor_in_file(uuid, place) for path, place in zip(large, places, strict=True)}
    return replace(prepared, actions=tuple(_with_vector(action, placed) for action in prepared.actions))


def _large_vector(add: AddFile) -> DeletionVectorDescriptor | None:
    vector = add.deletion_vector
    is_large = vector is not None and vector.storage_type == "i" and vector.size_in_bytes > LARGEST_INLINE_VECTOR
    return vector if is_large else None


def _with_vector(action: Action, placed: Mapping[str, DeletionVectorDescriptor]) -> Action:
    if isinstance(action, AddFile) and action.path in placed:
        return replace(action, deletion_vector=placed[action.path])
    return action


def _matches(files: DataFiles, mine: PreparedCommit, add: AddFile) -> BitMap64:
    """Return the physical positions of all rows of a file, including deleted ones, for which one of the predicates is true."""
    from pyroaring import BitMap64

    config, store, predicate = mine.config, files.store, any_of(mine.reads.predicates)
    columns = sorted({config.schema.field(path[0]).name for path in references(predicate)})
    index = next(name for name in map("_position{}".format, count()) if config.schema.find(name) is None)
    task = ReadTask(decode_path(add.path, store.url, outside=True), add.size, dict(add.partition_values))
    batches = files.read(task, config.schema.select(columns), predicate, row_index_column=index)
    positions = BitMap64()
    for batch in located_batches(batches, store.url, None, add.path):
        positions.update(batch.column(index).to_pylist())
    return positions
