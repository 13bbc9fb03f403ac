"""Convert Iceberg's position deletes to deletion vectors.

Source: Iceberg's format/spec.md, "Position Delete Files" and "Scan Planning": a delete file applies to the data files that it names and that
are not newer than it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from tahoe.base.exceptions import CorruptTable
from tahoe.base.lazy import pc, pq
from tahoe.ops.rows.row_changes import files_with_vectors
from tahoe.protocol.actions import AddFile
from tahoe.protocol.config import TableConfig
from tahoe.protocol.dv import decode
from tahoe.store.log_store import LogStore
from tahoe.txn.transaction import Transaction

if TYPE_CHECKING:
    from pyroaring import BitMap64

    from tahoe.ops.copies.iceberg_snapshot import IcebergFile


_PATH, _POSITION = "file_path", "pos"


def dead_rows(store: LogStore, data: Sequence[IcebergFile], deletes: Sequence[IcebergFile]) -> dict[str, BitMap64]:
    """Return the positions of deleted rows, by the name of their data file. Each delete file is read once.

    Raises `CorruptTable`: a delete file cannot be read.
    """
    from pyroaring import BitMap64

    files = {file.location: file for file in data}
    dead: dict[str, BitMap64] = {}
    for delete in deletes:
        for location, positions in _positions(store, delete):
            file = files.get(location)
            if file is None or file.sequence > delete.sequence:
                continue
            dead[file.name] = dead.get(file.name, BitMap64()) | BitMap64(positions)
    return dead


def _positions(store: LogStore, delete: IcebergFile) -> list[tuple[str, list[int]]]:
    try:
        with store.open_input(delete.name) as source:
            rows = pq.read_table(source, columns=[_PATH, _POSITION])
        grouped = rows.group_by(_PATH).aggregate([(_POSITION, "list")])
        positions = grouped.column(f"{_POSITION}_list")
        if pc.any(pc.is_null(rows.column(_POSITION))).as_py():
            raise ValueError("a position is missing")
        return list(zip(grouped.column(_PATH).to_pylist(), positions.to_pylist(), strict=True))
    except (pa.ArrowException, ValueError, KeyError) as error:
        raise CorruptTable(
            f"{delete.location}, a file of position deletes, cannot be read: {error}. Restore it, or let an Iceberg engine rewrite "
            "the table's "
            "files (rewrite_data_files).",
            code="TAHOE_CORRUPT_ICEBERG_METADATA",
            table=store.url,
            file=delete.name,
        ) from error


def with_vector_files(transaction: Transaction, config: TableConfig, files: Sequence[AddFile]) -> list[AddFile]:
    """Write the inline deletion vectors of the files to a vector file of the new table and return the updated files; stage nothing.

    Args:
        config: the configuration of the new table.
    """
    marked = [add for add in files if add.deletion_vector is not None and add.deletion_vector.storage_type == "i"]
    dead = [decode(add.deletion_vector, transaction.store.get, "") for add in marked if add.deletion_vector is not None]
    placed = iter(files_with_vectors(transaction, config, marked, dead) if marked else ())
    inline = {id(add) for add in marked}
    return [next(placed) if id(add) in inline else add for add in files]
