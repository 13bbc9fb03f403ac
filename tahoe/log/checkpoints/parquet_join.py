"""One Parquet file from several of the same schema, without decoding them: their column chunks one after the other, and one footer.

Arrow encodes a file on one thread. Encoding each row group as a file of its own, side by side, and joining them is as good as one
writer with many threads.
"""

from __future__ import annotations

from collections.abc import Sequence

from tahoe.protocol.statistics.thrift import LIST, STRUCT, Struct, footer_of, with_footer


def join_parquet(files: Sequence[bytes]) -> bytes:
    """The rows of the files in their order.

    Args:
        files: at least one; the same schema and writer, and no indexes outside of their footers.
    """
    parts: list[bytes | memoryview] = [_MAGIC]
    position = len(_MAGIC)
    joined: Struct = {}
    groups: list[Struct] = []
    rows = 0
    for file in files:
        start, footer = footer_of(file)
        joined = joined or footer
        rows += footer[_NUM_ROWS][1]
        for group in footer[_ROW_GROUPS][1][1]:
            groups.append(_moved(group, position - len(_MAGIC), len(groups)))
        parts.append(memoryview(file)[len(_MAGIC) : start])
        position += start - len(_MAGIC)
    kind_of_rows, _ = joined[_NUM_ROWS]
    return b"".join([*parts, with_footer(joined | {_NUM_ROWS: (kind_of_rows, rows), _ROW_GROUPS: (LIST, (STRUCT, groups))})])


_MAGIC = b"PAR1"
# Members by their numbers in parquet.thrift.
_NUM_ROWS, _ROW_GROUPS = 3, 4  # of FileMetaData
_COLUMNS, _FILE_OFFSET_OF_GROUP, _ORDINAL = 1, 5, 7  # of RowGroup
_FILE_OFFSET_OF_CHUNK, _META_DATA = 2, 3  # of ColumnChunk
_OFFSETS = (9, 10, 11)  # of ColumnMetaData: of the data, index and dictionary page


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
