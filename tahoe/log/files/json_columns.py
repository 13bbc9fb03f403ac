"""Reads many commits at once, as columns: the actions of files never become Python objects.

The commits' bytes are joined, some megabytes at a time, and read by Arrow's JSON reader with a schema of the actions' members. That
reader has no maps, so partition values and tags are read as structs, whose members are discovered while reading, and converted to maps
afterwards.

This is a fast path for usual commits. If a commit is unusual (an error, a member of another kind, a blank line, two actions in one line,
…) the result is None, and `tahoe.log.files.commits` parses the same bytes exactly, or raises the exact error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import accumulate, groupby
from operator import itemgetter

import pyarrow as pa
import pyarrow.json as pj

from tahoe.base.exceptions import CorruptTable
from tahoe.base.lazy import pc
from tahoe.log.files.commits import check_no_duplicates, parse_actions
from tahoe.log.files.live_files import DELETION_VECTOR_TYPE, FILES_SCHEMA, STRING_MAP, TOMBSTONES_SCHEMA
from tahoe.protocol.action_members import fault_of_files, is_misspelt
from tahoe.protocol.actions import Action, AddFile, Metadata
from tahoe.schema.arrow_values import array, empty_table, scalar
from tahoe.schema.types import schema_from_json


@dataclass(frozen=True, slots=True)
class ActionColumns:
    """The actions of some commits, oldest first.

    Args:
        adds, removes: `FILES_SCHEMA` and `TOMBSTONES_SCHEMA`, in the order of the log.
        add_rows, remove_rows: the line of each, counted over all commits; ascending.
        add_files, remove_files: the number of the commit of each.
        others: all other known actions except `commitInfo` and `cdc`.
    """

    adds: pa.Table
    removes: pa.Table
    add_rows: pa.Array
    remove_rows: pa.Array
    add_files: pa.Array
    remove_files: pa.Array
    others: tuple[Action, ...]


def read_columns(names: Sequence[str], bodies: Sequence[bytes], url: str) -> ActionColumns | None:
    """Read the actions of the commits; None if they must be read one by one.

    Args:
        names: of the files, for messages.
        url: the table's URL, for messages.
    """
    if not all(bodies) or any(map(_may_be_deep, bodies)):
        return None
    pieces: list[_Piece] = []
    try:
        for lines in _pieces(names, bodies):
            piece = _read_piece(lines, pieces[-1].keys if pieces else None, url)
            if piece is None:
                return None
            pieces.append(piece)
        return _one_of(pieces, names, url)
    except (CorruptTable, pa.ArrowException):
        return None


_BLOCK_BYTES = 8 << 20
_PIECE_BYTES = 2 * _BLOCK_BYTES
_LINE_BREAK = ord("\n")
_MOST_BRACKETS = 2_000

_SINGLE_TYPES: dict[str, pa.DataType] = {
    "protocol": pa.struct([("minReaderVersion", pa.int64())]),
    "metaData": pa.struct([("id", pa.string())]),
    "txn": pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]),
    "domainMetadata": pa.struct([("domain", pa.string())]),
}
_FILE_ACTIONS = {"add": FILES_SCHEMA, "remove": TOMBSTONES_SCHEMA}
_MAPS = ("partitionValues", "tags")

_Keys = Mapping[str, Mapping[str, Sequence[str]]]


@dataclass(frozen=True, slots=True)
class _Lines:
    """A part of a commit that is passed to Arrow: `count` lines, the bytes from `start` to `stop`.

    Args:
        commit: the commit's number.
    """

    commit: int
    name: str
    body: bytes
    start: int
    stop: int
    count: int

    @property
    def is_complete(self) -> bool:
        """Whether the last line has a line break."""
        return self.body[self.stop - 1 : self.stop] == b"\n"

    def parts(self) -> Sequence[bytes | memoryview]:
        """Return the bytes to join, which end with a line break, without a copy."""
        lines = memoryview(self.body)[self.start : self.stop]
        return [lines] if self.is_complete else [lines, b"\n"]


@dataclass(frozen=True, slots=True)
class _Piece:
    """The actions of some megabytes of commits.

    Args:
        columns: with rows counted from the first line of the piece.
        commits_of_others: the number of the commit of each of the other actions.
        keys: those of this piece and of earlier ones.
        lines: their number.
    """

    columns: ActionColumns
    commits_of_others: Sequence[int]
    keys: _Keys
    lines: int


def _pieces(names: Sequence[str], bodies: Sequence[bytes]) -> Iterator[list[_Lines]]:
    """Yield the lines of the commits, some megabytes at a time, because Arrow's columns of them have several times their size."""
    piece: list[_Lines] = []
    size = 0
    for number, (name, body) in enumerate(zip(names, bodies, strict=True)):
        start = _after_commit_info(body)
        while True:
            stop = len(body) if len(body) - start <= _PIECE_BYTES else body.find(b"\n", start + _PIECE_BYTES) + 1 or len(body)
            count = body.count(b"\n", start, stop) + (start < stop and body[stop - 1] != _LINE_BREAK)
            if piece and size + stop - start > _PIECE_BYTES:
                yield piece
                piece, size = [], 0
            piece.append(_Lines(number, name, body, start, stop, count))
            start, size = stop, size + stop - start
            if stop == len(body):
                break
    yield piece


def _read_piece(lines: Sequence[_Lines], known: _Keys | None, url: str) -> _Piece | None:
    """Read the lines; None if they must be read one by one.

    Args:
        known: the keys of the pieces before.
    """
    joined = b"".join(part for each in lines for part in each.parts())
    counts = [each.count for each in lines]
    table = _read(joined, known or _first_keys(joined))
    if table is None or table.num_rows != sum(counts) or not _one_action_a_line(table) or _has_misspelt_names(table.schema):
        return None
    others = _others(table, lines, url)
    keys = _keys_of_maps(table)
    commits = array([each.commit for each in lines], pa.int64()).take(_part_of_each_line(counts))
    add_rows, adds = _rows(table.column("add"), FILES_SCHEMA, keys["add"])
    remove_rows, removes = _rows(table.column("remove"), TOMBSTONES_SCHEMA, keys["remove"])
    if fault_of_files("add", adds) or fault_of_files("remove", removes) or not _nulls_are_written(table, joined):
        return None
    actions = tuple(action for _, action in others)
    columns = ActionColumns(adds, removes, add_rows, remove_rows, commits.take(add_rows), commits.take(remove_rows), actions)
    return _Piece(columns, [commit for commit, _ in others], keys, table.num_rows)


def _one_of(pieces: Sequence[_Piece], names: Sequence[str], url: str) -> ActionColumns | None:
    """Return the actions of all pieces; None if they must be read one by one. Raises `CorruptTable` for duplicates."""
    others = tuple(action for piece in pieces for action in piece.columns.others)
    commits = [commit for piece in pieces for commit in piece.commits_of_others]
    for commit, same in groupby(zip(commits, others, strict=True), key=itemgetter(0)):
        check_no_duplicates([action for _, action in same], names[commit], url)
    if not _keys_are_those_of_now(pieces[-1].keys, others):
        return None
    if len(pieces) == 1:
        return pieces[0].columns
    each = [piece.columns for piece in pieces]
    before = [scalar(count, pa.uint64()) for count in accumulate([0, *(piece.lines for piece in pieces[:-1])])]
    return ActionColumns(
        pa.concat_tables([columns.adds for columns in each]),
        pa.concat_tables([columns.removes for columns in each]),
        pa.concat_arrays([pc.add(columns.add_rows, count) for columns, count in zip(each, before, strict=True)]),
        pa.concat_arrays([pc.add(columns.remove_rows, count) for columns, count in zip(each, before, strict=True)]),
        pa.concat_arrays([columns.add_files for columns in each]),
        pa.concat_arrays([columns.remove_files for columns in each]),
        others,
    )


def _after_commit_info(body: bytes) -> int:
    """Return the offset after `commitInfo`, usually the first line: it is free-form, so Arrow would have to guess its types."""
    if not body.startswith(b'{"commitInfo"'):
        return 0
    end = body.find(b"\n") + 1
    return end or len(body)


def _may_be_deep(body: bytes) -> bool:
    """Whether a line has so many brackets that its nesting may exceed Arrow's recursion over types."""

    def brackets(text: bytes) -> int:
        return text.count(b"{") + text.count(b"[")

    return brackets(body) > _MOST_BRACKETS and any(brackets(line) > _MOST_BRACKETS for line in BytesIO(body))


def _first_keys(joined: bytes) -> _Keys:
    """Guess the keys of partition values from the first line that has some."""
    start = joined.find(b'{"add"')
    line = joined[start : joined.find(b"\n", start)] if start >= 0 else b""
    try:
        for _, action in parse_actions("", line or b"{}", ""):
            if isinstance(action, AddFile):
                keys = {"partitionValues": list(action.partition_values)}
                return {"add": keys, "remove": keys}
    except CorruptTable:
        pass
    return {"add": {}, "remove": {}}


def _read(joined: bytes, keys: _Keys, again: bool = True) -> pa.Table | None:
    fields = [pa.field(name, kind) for name, kind in _SINGLE_TYPES.items()]
    fields += [pa.field(name, _struct_type(schema, keys[name])) for name, schema in _FILE_ACTIONS.items()]
    try:
        table = pj.read_json(
            pa.BufferReader(joined),
            read_options=pj.ReadOptions(block_size=_BLOCK_BYTES),
            parse_options=pj.ParseOptions(explicit_schema=pa.schema(fields), unexpected_field_behavior="infer"),
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
        return None
    keys_there = _keys_of_maps(table)
    if all(set(keys_there[name].get(each, ())) <= set(keys[name].get(each, ())) for name in _FILE_ACTIONS for each in _MAPS):
        return table
    # Unexpected keys were read with a guessed type (a string that looks like a time became one): read them again as strings.
    return _read(joined, keys_there, again=False) if again else None


def _struct_type(schema: pa.Schema, keys: Mapping[str, Sequence[str]]) -> pa.StructType:
    fields = []
    for field in schema:
        if field.type == STRING_MAP:
            fields.append(pa.field(field.name, pa.struct([(key, pa.string()) for key in keys.get(field.name, ())])))
        else:
            fields.append(field)
    return pa.struct(fields)


def _keys_of_maps(table: pa.Table) -> _Keys:
    keys: dict[str, dict[str, list[str]]] = {}
    for name in _FILE_ACTIONS:
        kind = table.schema.field(name).type
        keys[name] = {}
        for each in _MAPS:
            position = kind.get_field_index(each)
            if position >= 0 and pa.types.is_struct(kind.field(position).type):
                inner = kind.field(position).type
                keys[name][each] = [inner.field(i).name for i in range(inner.num_fields)]
    return keys


def _one_action_a_line(table: pa.Table) -> bool:
    present = pa.chunked_array([pa.repeat(scalar(0, pa.int8()), table.num_rows)])
    for name in (*_SINGLE_TYPES, *_FILE_ACTIONS):
        present = pc.add(present, table.column(name).is_valid().cast(pa.int8()))
    most = pc.max(present).as_py()
    return most is None or most <= 1


def _others(table: pa.Table, lines: Sequence[_Lines], url: str) -> list[tuple[int, Action]]:
    """Parse the few actions that are not files, each exactly from its own line; return each after the number of its commit."""
    valid_rows = None
    for name in _SINGLE_TYPES:
        valid = table.column(name).is_valid()
        valid_rows = valid if valid_rows is None else pc.or_(valid_rows, valid)
    actions: list[tuple[int, Action]] = []
    number, before = 0, 0
    split: list[bytes] = []
    for row in pc.indices_nonzero(valid_rows).to_pylist():
        while row >= before + lines[number].count:
            before += lines[number].count
            number += 1
            split = []
        part = lines[number]
        split = split or part.body[part.start : part.stop].split(b"\n")
        actions += [(part.commit, action) for _, action in parse_actions(part.name, split[row - before], url)]
    return actions


def _keys_are_those_of_now(keys: _Keys, others: Sequence[Action]) -> bool:
    """Whether a partition value that is null in the columns is null in its line too, not missing.

    It is, as long as the table's partition columns stay the same, which only a `metaData` action changes.
    """
    for metadata in (action for action in others if isinstance(action, Metadata)):
        schema = schema_from_json(metadata.schema_string)
        expected = {schema.field(name).physical_name for name in metadata.partition_columns}
        if any(set(keys[name].get("partitionValues", ())) - expected for name in _FILE_ACTIONS):
            return False
    return True


def _part_of_each_line(counts: Sequence[int]) -> pa.Array:
    offsets = pc.cumulative_sum(array([0, *counts], pa.int32()))
    return pc.list_parent_indices(pa.ListArray.from_arrays(offsets, pa.nulls(sum(counts))))


def _rows(column: pa.ChunkedArray, schema: pa.Schema, keys: Mapping[str, Sequence[str]]) -> tuple[pa.Array, pa.Table]:
    """Return the lines that have the action, and its members; nothing is copied if all lines of a block have it."""
    parts = []
    for chunk in column.chunks:
        struct = chunk.drop_null() if chunk.null_count else chunk
        members = dict(zip([field.name for field in struct.type], struct.flatten(), strict=True))
        parts.append(pa.Table.from_arrays([_member(members[field.name], field, keys) for field in schema], schema=schema))
    return pc.indices_nonzero(column.is_valid()), pa.concat_tables(parts) if parts else empty_table(schema)


def _member(values: pa.Array, field: pa.Field, keys: Mapping[str, Sequence[str]]) -> pa.Array:
    if field.type == STRING_MAP:
        return _map_of_struct(values, keys[field.name], keep_null=field.name == "partitionValues")
    return _exactly(values, DELETION_VECTOR_TYPE) if field.type == DELETION_VECTOR_TYPE else values


def _exactly(values: pa.StructArray, kind: pa.StructType) -> pa.StructArray:
    """Return the values without members that the reader discovered beyond those of `kind`."""
    if values.type == kind:
        return values
    children = [values.field(values.type.get_field_index(field.name)) for field in kind]
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=values.is_null())


def _map_of_struct(values: pa.StructArray, keys: Sequence[str], *, keep_null: bool) -> pa.MapArray:
    """Convert the members of structs to entries of maps; a null struct becomes a null map.

    Args:
        keep_null: whether a null member is an entry with a null value, or none.
    """
    count, width = len(values), len(keys)
    valid = values.is_valid()
    members = [member.cast(pa.string()) for member in values.flatten()]
    if not width:
        offsets = pa.repeat(scalar(0, pa.int32()), count + 1)
        entries = [pa.nulls(0, pa.string()), pa.nulls(0, pa.string())]
        return pa.MapArray.from_arrays(offsets, *entries, mask=pc.invert(valid))
    # Row by row: the first member of the first row, the second, …
    order, wide = pa.arange(0, count * width), scalar(width)
    row = pc.divide(order, wide)
    member = pc.subtract(order, pc.multiply(row, wide))
    items = pa.concat_arrays(members).take(pc.add(pc.multiply(member, scalar(count)), row))
    names = array(keys, pa.string()).take(member)
    mask = valid.take(row) if keep_null else items.is_valid()
    lengths = pc.cumulative_sum(mask.cast(pa.int32()))
    ends = lengths.take(pa.arange(width - 1, count * width, width))
    offsets = pa.concat_arrays([array([0], pa.int32()), ends])
    return pa.MapArray.from_arrays(offsets, names.filter(mask), items.filter(mask), mask=pc.invert(valid))


# -- required members ------------------------------------------------------------------------------------------------------------


def _has_misspelt_names(lines: pa.Schema) -> bool:
    """Whether an action or a member of one differs in case only from one that the specification knows.

    Args:
        lines: of commits read as columns: a column an action, a struct.
    """
    for action in lines:
        if is_misspelt(action.name):
            return True
        if action.name in _FILE_ACTIONS and any(is_misspelt(member.name, action.name) for member in action.type):
            return True
        if action.name in _FILE_ACTIONS:
            vector = action.type.field("deletionVector").type
            if any(is_misspelt(member.name, "deletionVector") for member in vector):
                return True
    return False


def _nulls_are_written(lines: pa.Table, joined: bytes) -> bool:
    """Whether every partition value of an `add` that is null as a column is one that its line gives as null, and none that it lacks.

    Args:
        lines: as of `_has_misspelt_names`; one row a line.
        joined: the lines.
    """
    adds = lines.column("add")
    kind = adds.type.field("partitionValues").type
    split: list[bytes] = []
    for key in (field.name for field in kind):
        null = pc.and_(adds.is_valid(), pc.struct_field(adds, ["partitionValues", key]).is_null())
        rows = pc.indices_nonzero(null).to_pylist()
        split = split or (joined.split(b"\n") if rows else [])
        if any(not _is_written_as_null(split[row], key) for row in rows):
            return False
    return True


def _is_written_as_null(line: bytes, key: str) -> bool:
    """Whether the line says so in the one way that writers have; another way is left to the exact reader."""
    before, separator, values = line.partition(b'"partitionValues":{')
    return (
        bool(separator)
        and b'"partitionValues"' not in before + values
        and b'"%s":null' % key.encode() in values.partition(b"}")[0]
    )
