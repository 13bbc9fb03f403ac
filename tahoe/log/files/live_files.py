"""Live files and tombstones as Arrow tables, and the way between a table's rows and single actions.

One row is one logical file. Its key is its path, decoded, together with the unique id of its deletion vector (PROTOCOL.md, "Add
File and Remove File"), so that ``a%20b``, ``/table/a b`` and ``file:///table/a%20b`` are one file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import repeat
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from tahoe.base.exceptions import CorruptTable
from tahoe.base.lazy import pc
from tahoe.protocol.actions import AddFile, RemoveFile, vector_of
from tahoe.schema.arrow_values import array
from tahoe.store.location import decode_path

STRING_MAP = pa.map_(pa.string(), pa.string())

DELETION_VECTOR_TYPE = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
        ("maxRowIndex", pa.int64()),
    ]
)

FILES_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("partitionValues", STRING_MAP),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("stats", pa.string()),
        ("tags", STRING_MAP),
        ("deletionVector", DELETION_VECTOR_TYPE),
        ("baseRowId", pa.int64()),
        ("defaultRowCommitVersion", pa.int64()),
        ("clusteringProvider", pa.string()),
    ]
)
"""Live files: the members of an `add` action. A table may have two more columns from its checkpoint: ``stats_parsed`` and
``partitionValues_parsed``, structs by physical column names."""

TOMBSTONES_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("deletionTimestamp", pa.int64()),
        ("dataChange", pa.bool_()),
        ("extendedFileMetadata", pa.bool_()),
        ("partitionValues", STRING_MAP),
        ("size", pa.int64()),
        ("deletionVector", DELETION_VECTOR_TYPE),
        ("baseRowId", pa.int64()),
        ("defaultRowCommitVersion", pa.int64()),
    ]
)
"""Tombstones: the members of a `remove` action that a checkpoint keeps."""


def files_table(adds: Iterable[AddFile]) -> pa.Table:
    """Return the files as one table of `FILES_SCHEMA`, in the same order."""
    return table_of_rows([_add_row(add) for add in adds], FILES_SCHEMA)


def tombstones_table(removes: Iterable[RemoveFile]) -> pa.Table:
    """Return the tombstones as one table of `TOMBSTONES_SCHEMA`, in the same order."""
    return table_of_rows([_remove_row(remove) for remove in removes], TOMBSTONES_SCHEMA)


def table_of_rows(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Return rows, which are dictionaries by the names of the columns, as a table."""
    columns = [array([row.get(field.name) for row in rows], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def add_files(table: pa.Table) -> list[AddFile]:
    """Convert each row to an `AddFile`, for the few files that a command touches.

    Statistics that a checkpoint has only as a struct are converted to the equivalent JSON text.
    """
    return list(each_add_file(table))


def each_add_file(table: pa.Table) -> Iterator[AddFile]:
    """Yield the files of `add_files`, of which only some thousand are objects at a time. Files with equal partition values share them."""
    shared: dict[tuple[tuple[str, str | None], ...], Mapping[str, str | None]] = {}
    for batch in table.to_batches(max_chunksize=_ROWS_CONVERTED):
        columns = {name: _values(batch.column(name)) for name in FILES_SCHEMA.names}  # in the order of the fields of `AddFile`
        partitions = (values or {} for values in columns["partitionValues"])
        columns["partitionValues"] = (shared.setdefault(tuple(values.items()), values) for values in partitions)
        if batch.column("deletionVector").null_count < batch.num_rows:
            columns["deletionVector"] = map(vector_of, columns["deletionVector"])
        if batch.column("stats").null_count and "stats_parsed" in table.column_names:
            columns["stats"] = map(_stats_text, columns["stats"], _values(batch.column("stats_parsed")))
        yield from map(AddFile, *columns.values())


def remove_files(table: pa.Table) -> list[RemoveFile]:
    """Convert each row of a table of `TOMBSTONES_SCHEMA` to a `RemoveFile`."""
    return [_remove(row) for row in table.to_pylist(maps_as_pydicts="strict")]


def file_keys(files: pa.RecordBatch, root_url: str) -> pa.Array:
    """Return the key of each row as one string; equal strings are equal logical files.

    Args:
        files: with the columns ``path`` and ``deletionVector``.
        root_url: the table's URL, for absolute paths.
    """
    paths = _canonical_paths(files.column("path"), root_url)
    vectors = files.column("deletionVector") if "deletionVector" in files.schema.names else None
    if vectors is None or vectors.null_count == len(vectors):
        return paths
    return pc.coalesce(pc.binary_join_element_wise(paths, _unique_ids(vectors), _KEY_SEPARATOR), paths)


def files_at(files: pa.Table, paths: Sequence[str], root_url: str) -> pa.Table:
    """Return the live files whose `canonical_path` is one of `paths`."""
    if not paths or not files.num_rows:
        return files.slice(0, 0)
    requested, live = array(list(paths), pa.string()), files["path"]
    # A table written by many small commits has as many chunks, and each call for a chunk costs more than its rows.
    chunks = [live.combine_chunks()] if live.num_chunks > 1 and len(live) <= _FEW_PATHS else live.chunks
    chosen = [pc.is_in(_canonical_paths(chunk, root_url), value_set=requested) for chunk in chunks]
    return files.filter(pa.chunked_array(chosen, pa.bool_()))


def without_rows(table: pa.Table, gone: pa.ChunkedArray | pa.Array) -> pa.Table:
    """Return the table without the rows for which `gone` is true. If those are contiguous, the other rows are not copied.

    Args:
        gone: booleans without nulls, as long as the table.
    """
    count = gone.true_count if isinstance(gone, pa.Array) else sum(chunk.true_count for chunk in gone.chunks)
    if count == 0:
        return table
    pieces = _runs_between(pc.indices_nonzero(gone), table.num_rows) if count <= _MOST_GONE else None
    if pieces is None:
        return table.filter(pc.invert(gone))
    return pa.concat_tables([table.slice(start, stop - start) for start, stop in pieces]) if pieces else table.slice(0, 0)


def key_of(action: AddFile | RemoveFile, root_url: str) -> str:
    """Return the key of one action, equal to that of `file_keys`."""
    path = canonical_path(action.path, root_url)
    return path if action.deletion_vector is None else f"{path}{_KEY_SEPARATOR}{action.deletion_vector.unique_id}"


def are_plain(paths: pa.ChunkedArray) -> bool:
    """Whether each path is surely in the form of `canonical_path`, by its characters alone."""
    return not pc.any(pc.match_substring_regex(paths, _MAY_BE_SPELT_OTHERWISE), min_count=0).as_py()


def canonical_path(path: str, root_url: str) -> str:
    """Return one spelling for all paths of the same file: the store name below the table's root; outside of it, the URL.

    Never raises: opening the file decides whether the path is allowed. The result never contains NUL, which separates the parts of keys.
    """
    try:
        return decode_path(path, root_url, outside=True)
    except CorruptTable as refusal:
        # Only compared with other results: for a path outside, the slashes after 'file:' and doubled ones make no difference.
        decoded = unquote(path)
        if refusal.code != "TAHOE_PATH_OUTSIDE_TABLE" or "\0" in decoded:
            return f"/{path!r}"  # not a path: equal only to the same text, since no other result begins like this
        scheme, colon, rest = decoded.partition(":")
        if not colon or "/" in scheme:
            scheme, rest = "file" if root_url.startswith("file:") else "", decoded
        return f"{scheme}:/{'/'.join(part for part in rest.split('/') if part)}"


# Escapes, schemes, NUL, absolute paths, doubled slashes and dots that mean folders; all other paths are already canonical.
_MAY_BE_SPELT_OTHERWISE = r"[%:\\\x00]|//|^/|^\.|/\."

_KEY_SEPARATOR = "\0"  # in no result of `canonical_path`

_ROWS_CONVERTED = 4_096
_FEW_PATHS = 100_000

# Each cut creates another chunk, which makes all later operations slower.
_MOST_PIECES = 16
_MOST_GONE = 4_096


def _canonical_paths(paths: pa.Array, root_url: str) -> pa.Array:
    """Return `canonical_path` of each path; takes one pass over the text if all paths are canonical."""
    special = pc.match_substring_regex(paths, _MAY_BE_SPELT_OTHERWISE)
    if special.true_count == 0:
        return paths
    decoded = array([canonical_path(path, root_url) for path in paths.filter(special).to_pylist()], pa.string())
    return pc.replace_with_mask(paths, special, decoded)


def _values(column: pa.Array) -> Iterable[Any]:
    """Return the values of a column as Python objects. Most columns of a table are wholly null."""
    if column.null_count == len(column):
        return repeat(None, len(column))
    return _string_maps(column) if column.type == STRING_MAP else column.to_pylist(maps_as_pydicts="strict")


def _string_maps(column: pa.MapArray) -> Iterator[dict[str, str | None] | None]:
    """Like `to_pylist` with dictionaries, which takes five times as long. Raises `KeyError` for a name that occurs twice, too."""
    offsets, first = column.offsets.to_pylist(), column.offsets[0].as_py()
    count = offsets[-1] - first
    pairs = list(zip(column.keys.slice(first, count).to_pylist(), column.items.slice(first, count).to_pylist(), strict=True))
    valid = repeat(True) if not column.null_count else column.is_valid().to_pylist()
    for start, stop, is_valid in zip(offsets, offsets[1:], valid, strict=False):
        value = dict(pairs[start - first : stop - first])
        if len(value) != stop - start:
            raise KeyError(f"a map of the log has a name twice: {pairs[start - first : stop - first]}")
        yield value if is_valid else None


def _runs_between(gone: pa.Array, rows: int) -> list[tuple[int, int]] | None:
    """Return the ranges between the given rows; None if there are many."""
    pieces, start = [], 0
    for position in [*gone.to_pylist(), rows]:
        if position > start:
            pieces.append((start, position))
            if len(pieces) > _MOST_PIECES:
                return None
        start = position + 1
    return pieces


def _unique_ids(vectors: pa.Array) -> pa.Array:
    """``<storageType><pathOrInlineDv>[@offset]`` of each deletion vector, null where there is none."""
    field = pc.struct_field
    base = pc.binary_join_element_wise(field(vectors, "storageType"), field(vectors, "pathOrInlineDv"), "")
    offset = pc.cast(field(vectors, "offset"), pa.string())
    # Null where any part is null. (The option to skip nulls drops rows that are null throughout.)
    return pc.coalesce(pc.binary_join_element_wise(base, offset, "@"), base)


def _add_row(add: AddFile) -> dict[str, Any]:
    return {
        "path": add.path,
        "partitionValues": list(add.partition_values.items()),
        "size": add.size,
        "modificationTime": add.modification_time,
        "dataChange": add.data_change,
        "stats": add.stats,
        "tags": None if add.tags is None else list(add.tags.items()),
        "deletionVector": add.deletion_vector and add.deletion_vector.to_json_value(),
        "baseRowId": add.base_row_id,
        "defaultRowCommitVersion": add.default_row_commit_version,
        "clusteringProvider": add.clustering_provider,
    }


def _remove_row(remove: RemoveFile) -> dict[str, Any]:
    return {
        "path": remove.path,
        "deletionTimestamp": remove.deletion_timestamp,
        "dataChange": remove.data_change,
        "extendedFileMetadata": remove.extended_file_metadata,
        "partitionValues": None if remove.partition_values is None else list(remove.partition_values.items()),
        "size": remove.size,
        "deletionVector": remove.deletion_vector and remove.deletion_vector.to_json_value(),
        "baseRowId": remove.base_row_id,
        "defaultRowCommitVersion": remove.default_row_commit_version,
    }


def _stats_text(text: str | None, parsed: Mapping[str, Any] | None) -> str | None:
    return _json_text(parsed) if text is None and parsed is not None else text


def _remove(row: Mapping[str, Any]) -> RemoveFile:
    return RemoveFile(
        path=row["path"],
        deletion_timestamp=row["deletionTimestamp"],
        data_change=row["dataChange"],
        extended_file_metadata=row["extendedFileMetadata"],
        partition_values=row["partitionValues"],
        size=row["size"],
        deletion_vector=vector_of(row["deletionVector"]),
        base_row_id=row["baseRowId"],
        default_row_commit_version=row["defaultRowCommitVersion"],
    )


def _json_text(value: object) -> str:
    """A struct of statistics as the JSON of `add.stats`, without absent members."""
    if isinstance(value, Mapping):
        return (
            "{"
            + ",".join(f"{json.dumps(n, ensure_ascii=False)}:{_json_text(v)}" for n, v in value.items() if v is not None)
            + "}"
        )
    if isinstance(value, datetime):
        text = f"{value:%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03d}"
        return f'"{text}Z"' if value.tzinfo is not None else f'"{text}"'
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, float) and not math.isfinite(value):
        return f'"{"NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"}"'
    return json.dumps(value.isoformat() if isinstance(value, date) else value, ensure_ascii=False)
