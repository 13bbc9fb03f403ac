"""Joins Parquet files without decoding them: column chunks are copied, and only the offsets in the footer change.

join_parquet      the row groups of several files, one after the other
replace_columns   the columns of one file, some of them from another file with the same row groups
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tahoe.protocol.statistics.thrift import BINARY, I32, I64, LIST, MAGIC, STRUCT, Struct, footer_of, with_footer

Bytes = bytes | memoryview


def join_parquet(files: Iterable[Bytes]) -> bytes:
    """The rows of the files in their order, as one file; see `joined_parts`."""
    return b"".join(joined_parts(files))


def joined_parts(files: Iterable[Bytes]) -> Iterator[Bytes]:
    """Yield the bytes of one file with the rows of these files in their order, part by part, as the files arrive.

    Args:
        files: at least one; the same schema and writer, and no page indexes.
    """
    yield MAGIC
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
        yield memoryview(file)[len(MAGIC) : start]
        position += start - len(MAGIC)
    kind_of_rows, _ = joined[_NUM_ROWS]
    yield with_footer(joined | {_NUM_ROWS: (kind_of_rows, rows), _ROW_GROUPS: (LIST, (STRUCT, groups))})


def replace_columns(file: bytes, columns: bytes) -> bytes | None:
    """Return the file with the top-level columns of another one in place of its own columns of the same names.

    The order of the columns, key-value metadata, and statistics and bloom filters of the other columns stay. Page indexes are left out, as
    their offsets would be wrong, and so is the sort order of rows.

    Args:
        columns: a file with some of the columns, and with as many rows in each row group.

    Returns:
        None if columns of `file` cannot be copied: it is encrypted, has other row groups or lacks one of the columns, or a writer made it
        that is not known to state the sizes of column chunks correctly.
    """
    (end, old), (_, new) = footer_of(file), footer_of(columns)
    elements, new_elements = _elements(old), _elements(new)
    groups, new_groups = old[_ROW_GROUPS][1][1], new[_ROW_GROUPS][1][1]
    can_be_copied = (
        _ENCRYPTION not in old
        and old.get(_CREATED_BY, (BINARY, b""))[1].startswith(_WRITERS)
        and [group[_ROWS_OF_GROUP] for group in groups] == [group[_ROWS_OF_GROUP] for group in new_groups]
        and all(name in elements and len(elements[name]) == len(its) for name, its in new_elements.items())
        and all(_is_known(chunk, end) for group in groups for chunk in _chunks(group))
    )
    if not can_be_copied:
        return None
    copied = _CopiedFile()
    for group, new_group in zip(groups, new_groups, strict=True):
        replaced = {_path(chunk): (columns, chunk) for chunk in _chunks(new_group)}
        copied.add_group(group, [replaced.get(_path(chunk), (file, chunk)) for chunk in _chunks(group)])
    schema = [old[_SCHEMA][1][1][0], *(element for name, its in elements.items() for element in new_elements.get(name, its))]
    return copied.finished(old | {_SCHEMA: (LIST, (STRUCT, schema))})


class _CopiedFile:
    """A new file of column chunks of other files."""

    def __init__(self) -> None:
        self._parts: list[bytes | memoryview] = [MAGIC]
        self._position = len(MAGIC)
        self._groups: list[Struct] = []

    def add_group(self, group: Struct, chunks: Sequence[tuple[bytes, Struct]]) -> None:
        """Add a row group.

        Args:
            group: the row group whose number of rows it has.
            chunks: its column chunks, each with the file that contains it.
        """
        begin, columns = self._position, [self._chunk(file, chunk) for file, chunk in chunks]
        sizes = [sum(column[_META_DATA][1][size][1] for column in columns) for size in (_UNCOMPRESSED, _COMPRESSED)]
        copied = {number: value for number, value in group.items() if number in (_ROWS_OF_GROUP, _ORDINAL)}
        copied |= {_COLUMNS: (LIST, (STRUCT, columns)), _TOTAL_BYTES: (I64, sizes[0]), _COMPRESSED_OF_GROUP: (I64, sizes[1])}
        self._groups.append(copied | {_FILE_OFFSET_OF_GROUP: (I64, begin)})

    def finished(self, footer: Struct) -> bytes:
        """Return the file."""
        return b"".join([*self._parts, with_footer(footer | {_ROW_GROUPS: (LIST, (STRUCT, self._groups))})])

    def _chunk(self, file: bytes, chunk: Struct) -> Struct:
        kind, metadata = chunk[_META_DATA]
        begin = _begin(metadata)
        moved = {
            number: (I64, metadata[number][1] - begin + self._position) for number in _PAGES if metadata.get(number, (I64, 0))[1]
        }
        self._add(file, begin, metadata[_COMPRESSED][1])
        if _BLOOM_FILTER in metadata:
            moved[_BLOOM_FILTER] = (I64, self._position)
            self._add(file, metadata[_BLOOM_FILTER][1], metadata[_BLOOM_FILTER_LENGTH][1])
        return {_META_DATA: (kind, metadata | moved), _FILE_OFFSET_OF_CHUNK: (I64, 0)}

    def _add(self, file: bytes, begin: int, size: int) -> None:
        self._parts.append(memoryview(file)[begin : begin + size])
        self._position += size


def _elements(footer: Struct) -> dict[bytes, list[Struct]]:
    """Return the elements of the schema by the name of their top-level column."""
    columns: dict[bytes, list[Struct]] = {}
    elements, waiting = footer[_SCHEMA][1][1][1:], 0
    for element in elements:
        if not waiting:
            columns[element[_NAME][1]] = its = []
            waiting = 1
        its.append(element)
        waiting += element.get(_NUM_CHILDREN, (I32, 0))[1] - 1
    return columns


def _chunks(group: Struct) -> list[Struct]:
    chunks: list[Struct] = group[_COLUMNS][1][1]
    return chunks


def _path(chunk: Struct) -> tuple[bytes, ...]:
    return tuple(chunk[_META_DATA][1][_PATH][1][1])


def _begin(metadata: Struct) -> int:
    """Return the offset of the first page; a missing dictionary page is at 0 in some files."""
    begin: int = min(metadata[number][1] for number in _PAGES if metadata.get(number, (I64, 0))[1])
    return begin


def _is_known(chunk: Struct, end: int) -> bool:
    """Whether a column chunk can be copied: it is in this file, before its footer, not encrypted, and its bloom filter has a known size."""
    metadata = chunk.get(_META_DATA, (STRUCT, {}))[1]
    if any(number in chunk for number in (_FILE_PATH, *_CRYPTO)) or not metadata:
        return False
    has_known_filter = _BLOOM_FILTER not in metadata or _BLOOM_FILTER_LENGTH in metadata
    return has_known_filter and _begin(metadata) + metadata[_COMPRESSED][1] <= end


_WRITERS = (b"parquet-cpp-arrow ", b"parquet-mr version 1.1", b"parquet-rs ")

# Members by their numbers in parquet.thrift.
_SCHEMA, _NUM_ROWS, _ROW_GROUPS, _CREATED_BY, _ENCRYPTION = 2, 3, 4, 6, 8  # of FileMetaData
_NAME, _NUM_CHILDREN = 4, 5  # of SchemaElement
_COLUMNS, _TOTAL_BYTES, _ROWS_OF_GROUP, _FILE_OFFSET_OF_GROUP, _COMPRESSED_OF_GROUP, _ORDINAL = 1, 2, 3, 5, 6, 7  # of RowGroup
_FILE_PATH, _FILE_OFFSET_OF_CHUNK, _META_DATA, _CRYPTO = 1, 2, 3, (8, 9)  # of ColumnChunk
_PATH, _UNCOMPRESSED, _COMPRESSED, _BLOOM_FILTER, _BLOOM_FILTER_LENGTH = 3, 6, 7, 14, 15  # of ColumnMetaData
_PAGES = (9, 10, 11)  # of ColumnMetaData: the offsets of the data, index and dictionary page
_OFFSETS = (*_PAGES, _BLOOM_FILTER)


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
