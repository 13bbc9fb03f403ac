"""Joins Parquet files without decoding them: column chunks are copied, and only the offsets in the footer change."""

from __future__ import annotations

from collections.abc import Sequence

from tahoe.protocol.statistics.thrift import LIST, MAGIC, STRUCT, Struct, footer_of, with_footer


def join_parquet(files: Sequence[bytes]) -> bytes:
    """The rows of the files in their order.

    Args:
        files: at least one; the same schema and writer, and no page indexes.
    """
    parts: list[bytes | memoryview] = [MAGIC]
    position = len(MAGIC)
    joined: Struct = {}
    groups: list[Struct] = []
    rows = 0
    for file in files:
        start, footer = footer_of(file)
        joined = joined or footer
        rows += footer[_NUM_ROWS][1]
        for group in footer[_ROW_GROUPS][1][1]:
            groups.append(_moved(group, position - len(MAGIC), len(groups)))
        parts.append(memoryview(file)[len(MAGIC) : start])
        position += start - len(MAGIC)
    kind_of_rows, _ = joined[_NUM_ROWS]
    return b"".join([*parts, with_footer(joined | {_NUM_ROWS: (kind_of_rows, rows), _ROW_GROUPS: (LIST, (STRUCT, groups))})])


# Members by their numbers in parquet.thrift.
_NUM_ROWS, _ROW_GROUPS = 3, 4  # of FileMetaData
_COLUMNS, _FILE_OFFSET_OF_GROUP, _ORDINAL = 1, 5, 7  # of RowGroup
_FILE_OFFSET_OF_CHUNK, _META_DATA = 2, 3  # of ColumnChunk
_OFFSETS = (9, 10, 11, 14)  # of ColumnMetaData: of the data, index and dictionary page, and of the bloom filter


def _moved(group: Struct, by: int, ordinal: int) -> Struct:
    """The row group at a place that many bytes later in a file, as the one of that number."""
    columns = []
    for column in group[_COLUMNS][1][1]:
        kind, metadata = column[_META_DATA]
        metadata = metadata | {n: (metadata[n][0], metadata[n][1] + by) for n in _OFFSETS if n in metadata}
        # Deprecated, and 0 in the files of newer writers.
        offset_kind, offset = column[_FILE_OFFSET_OF_CHUNK]
        columns.append(column | {_META_DATA: (kind, metadata), _FILE_OFFSET_OF_CHUNK: (offset_kind, offset and offset + by)})
    moved = group | {_COLUMNS: (LIST, (STRUCT, columns))}
    if _FILE_OFFSET_OF_GROUP in group:
        moved[_FILE_OFFSET_OF_GROUP] = (group[_FILE_OFFSET_OF_GROUP][0], group[_FILE_OFFSET_OF_GROUP][1] + by)
    if _ORDINAL in group:
        moved[_ORDINAL] = (group[_ORDINAL][0], ordinal)
    return moved
