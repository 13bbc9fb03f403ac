"""`DataFiles`: the data files of a table, read file by file; `VectorReader`: its deletion vectors.

Both are plain values that can be sent to another process; their caches are not sent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING

import pyarrow as pa

from tahoe.base.lazy import cached_property
from tahoe.expr.tree.predicate import Predicate
from tahoe.protocol.actions import DeletionVectorDescriptor
from tahoe.protocol.config import TableConfig
from tahoe.protocol.dv import decode
from tahoe.schema.types import StructType
from tahoe.snapshot.arrow_reader import NO_EXTRA_COLUMNS, USUAL, ExtraColumns, FileReader, FileReadOptions, ReadTask
from tahoe.snapshot.small_files import TinyFiles
from tahoe.store.log_store import LogStore

if TYPE_CHECKING:
    from pyroaring import BitMap64


_FILES_KEPT = 16


class VectorReader:
    """The deletion vectors of one table. A file contains many vectors; it is fetched once for all threads."""

    def __init__(self, store: LogStore) -> None:
        self.store = store
        self._kept = lru_cache(maxsize=_FILES_KEPT)(store.get)
        self._locks: defaultdict[str, Lock] = defaultdict(Lock)

    def __reduce__(self) -> tuple[type[VectorReader], tuple[LogStore]]:
        return VectorReader, (self.store,)

    def bitmap(self, descriptor: DeletionVectorDescriptor) -> BitMap64:
        """Return the positions of the rows that a vector marks as deleted.

        Raises:
            NotFound: the vector's file is not in storage.
            CorruptTable: its contents do not match the descriptor.
        """
        return decode(descriptor, self.fetch, self.store.url)

    def fetch(self, name: str) -> bytes:
        """Return the whole content of a vector file, by its store name."""
        with self._locks[name]:
            return self._kept(name)


@dataclass(frozen=True)
class DataFiles:
    """The data files of one version of a table.

    Args:
        config: of the version whose schema the rows shall have.
        use_threads: decode the columns of a large file in parallel; useless if several files are read in parallel.
    """

    store: LogStore
    config: TableConfig
    use_threads: bool = True

    @cached_property
    def vectors(self) -> VectorReader:
        """The table's deletion vectors, for callers that also read them directly."""
        return VectorReader(self.store)

    @cached_property
    def tiny(self) -> TinyFiles:
        """The reader of many tiny files together, with all of their columns."""
        config = self.config
        return TinyFiles(
            lambda task: FileReader(task, config.schema, config.column_mapping_mode, config.partition_columns),
            self.store.open_input,
        )

    def read(
        self,
        task: ReadTask,
        schema: StructType | None = None,
        predicate: Predicate | None = None,
        extra: ExtraColumns = NO_EXTRA_COLUMNS,
        options: FileReadOptions = USUAL,
    ) -> Iterator[pa.RecordBatch]:
        """Read the live rows of one file for which `predicate` is true, in file order.

        Args:
            schema: the logical columns of the result; None for all columns of the table.

        For the other arguments and the errors, see `FileReader.live_rows`.
        """
        config = self.config
        columns = config.schema if schema is None else schema
        reader = FileReader(task, columns, config.column_mapping_mode, config.partition_columns, extra)
        threaded = replace(options, use_threads=options.use_threads and self.use_threads)
        return reader.live_rows(self.store.open_input, self.vectors.bitmap, predicate, threaded)
