"""The specification's requirements on each action's members: presence, type, and bounds.

An action that lacks a required member is corrupt, never a default: an `add` without ``partitionValues`` read as NULL would lose rows
silently. So is a member, or an action, whose name differs from a known one only in case: readers would skip it as one of a later
version of the format, with its contents. Truly unknown members and actions are ignored, as the specification requires.

The departures from the specification's letter, and their reasons: docs/design/012-required-fields.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tahoe.base.exceptions import CorruptTable
from tahoe.base.lazy import pc
from tahoe.schema.arrow_values import array, scalar
from tahoe.schema.types import StructType


@dataclass(frozen=True, slots=True)
class _Member:
    """One member of an action.

    Args:
        kind: of its JSON value; ``dict`` is a map of texts unless `members` names another table.
        demanded: whether an action without it is corrupt.
        least, most: bounds of a number.
        members: the table of `_MEMBERS` for an object with members of its own.
    """

    kind: type
    demanded: bool = False
    least: int = -(2**63)
    most: int = 2**63 - 1
    members: str = ""


def check_action(name: str, value: object) -> None:
    """Raise `CorruptTable` if an action's value violates the specification; unknown actions are not checked.

    Args:
        name: of the action, as the log spells it.
        value: the object that follows the name.
    """
    if name in _ACTIONS:
        _check(name, value, f"the '{name}' action")
    elif is_misspelt(name):
        raise CorruptTable(
            f"the action '{name}' is spelled '{_ACTIONS_BY_CASE[name.lower()]}' by the specification",
            code="TAHOE_CORRUPT_ACTION",
            action=name,
        )


def is_misspelt(name: str, of: str = "") -> bool:
    """Whether the name differs only in case from a member of the action `of`, or from an action if `of` is empty."""
    names, by_case = (_MEMBERS[of], _BY_CASE[of]) if of else (_ACTIONS, _ACTIONS_BY_CASE)
    return name not in names and name.lower() in by_case


def check_names(paths: Iterable[tuple[str, ...]]) -> None:
    """Raise `CorruptTable` if the name of a checkpoint's column differs from an action or a member only in case.

    Args:
        paths: of the columns: action, member, and nested fields.
    """
    for path in paths:
        of = ""
        for part in path:
            if is_misspelt(part, of):
                meant = (_BY_CASE[of] if of else _ACTIONS_BY_CASE)[part.lower()]
                raise CorruptTable(
                    f"the column '{'.'.join(path)}' spells '{part}' what the specification spells '{meant}'",
                    code="TAHOE_CORRUPT_SCHEMA",
                )
            member = _MEMBERS[of].get(part) if of else None
            of = member.members if member is not None else part if not of and part in _ACTIONS else ""
            if not of:
                break


def fault_of_files(kind: str, files: pa.Table) -> str | None:
    """Return the fault of many actions at once, in columns named as their members; None for valid ones.

    Args:
        kind: ``add`` or ``remove``.
    """
    return _fault_of_columns(kind, {name: files.column(name) for name in files.column_names}, f"an '{kind}' action")


def check_partition_keys(files: pa.Table, schema: StructType, partition_columns: Sequence[str], url: str) -> None:
    """Raise `CorruptTable` for the first file whose partition values lack a partition column, or have it twice. NULL is a value.

    Args:
        files: with ``partitionValues`` and, for the message, ``path``.
        schema: the table's logical schema.
        partition_columns: logical names.
        url: the table's URL, for the message; empty if the caller adds it later.
    """
    if not partition_columns or not files.num_rows:
        return
    names = [schema.field(name).physical_name for name in partition_columns]
    row = 0
    for chunk in files.column("partitionValues").chunks:
        for name in names:
            wrong = _first_without(chunk, name)
            if wrong is not None:
                path = files.column("path")[row + wrong].as_py() if "path" in files.column_names else "?"
                values = chunk[wrong].as_py(maps_as_pydicts=None)
                raise _no_key(path, None if values is None else [key for key, _ in values], name, url)
        row += len(chunk)


def check_partition_values(
    path: str, values: Mapping[str, str | None] | None, schema: StructType, partition_columns: Sequence[str], url: str
) -> None:
    """Check one file as `check_partition_keys` does."""
    for name in partition_columns:
        physical_name = schema.field(name).physical_name
        if values is None or physical_name not in values:
            raise _no_key(path, None if values is None else list(values), physical_name, url)


_VERSION = _Member(int, True, 0)
_COUNT = _Member(int, False, 0)
_TEXT, _TIME, _FLAG, _MAP = _Member(str), _Member(int), _Member(bool), _Member(dict)
_TEXT_DEMANDED, _COUNT_DEMANDED, _TIME_DEMANDED = _Member(str, True), _Member(int, True, 0), _Member(int, True)
_FLAG_DEMANDED, _MAP_DEMANDED = _Member(bool, True), _Member(dict, True)
_FILE: dict[str, _Member] = {
    "path": _TEXT_DEMANDED,
    "partitionValues": _MAP_DEMANDED,
    "size": _COUNT_DEMANDED,
    "dataChange": _FLAG_DEMANDED,
    "tags": _MAP,
    "stats": _TEXT,
    "deletionVector": _Member(dict, members="deletionVector"),
    "baseRowId": _COUNT,
    "defaultRowCommitVersion": _COUNT,
}
_MEMBERS: dict[str, dict[str, _Member]] = {
    "add": {**_FILE, "modificationTime": _TIME_DEMANDED, "clusteringProvider": _TEXT},
    "remove": {**_FILE, "partitionValues": _MAP, "size": _COUNT, "deletionTimestamp": _TIME, "extendedFileMetadata": _FLAG},
    "cdc": {name: _FILE[name] for name in ("path", "partitionValues", "size", "dataChange", "tags")},
    "deletionVector": {
        "storageType": _TEXT_DEMANDED,
        "pathOrInlineDv": _TEXT_DEMANDED,
        "offset": _Member(int, False, 0, 2**31 - 1),
        "sizeInBytes": _Member(int, True, 0, 2**31 - 1),
        "cardinality": _COUNT_DEMANDED,
        "maxRowIndex": _COUNT,
    },
    "protocol": {
        "minReaderVersion": _VERSION,
        "minWriterVersion": _VERSION,
        "readerFeatures": _Member(list),
        "writerFeatures": _Member(list),
    },
    "metaData": {
        "id": _TEXT_DEMANDED,
        "name": _TEXT,
        "description": _TEXT,
        "format": _Member(dict, True, members="format"),
        "schemaString": _TEXT,
        "partitionColumns": _Member(list, True),
        "configuration": _MAP_DEMANDED,
        "createdTime": _TIME,
    },
    "format": {"provider": _TEXT_DEMANDED, "options": _MAP},
    "txn": {"appId": _TEXT_DEMANDED, "version": _TIME_DEMANDED, "lastUpdated": _TIME},
    "domainMetadata": {"domain": _TEXT_DEMANDED, "configuration": _TEXT_DEMANDED, "removed": _FLAG_DEMANDED},
    "checkpointMetadata": {"version": _VERSION, "tags": _MAP},
    "sidecar": {"path": _TEXT_DEMANDED, "sizeInBytes": _COUNT_DEMANDED, "modificationTime": _TIME_DEMANDED, "tags": _MAP},
    "commitInfo": {},
}
_ACTIONS = frozenset(_MEMBERS) - {"deletionVector", "format"}
_ACTIONS_BY_CASE = {name.lower(): name for name in _ACTIONS}
_BY_CASE = {of: {name.lower(): name for name in members} for of, members in _MEMBERS.items()}
_NAMES_OF_KINDS = {str: "a string", int: "a whole number", bool: "true or false", dict: "an object", list: "an array of strings"}


def _check(of: str, value: object, subject: str) -> None:
    if not isinstance(value, dict):
        raise CorruptTable(f"{subject} must be an object, found {_shown(value)}", code="TAHOE_CORRUPT_ACTION")
    table = _MEMBERS[of]
    for name, row in table.items():
        member = value.get(name)
        if member is not None:
            _check_member(row, member, f"the member '{name}' of {subject}")
        elif row.demanded:
            raise _missing(name, value, subject)
    by_case = _BY_CASE[of]
    for name in value:
        if name not in table and name.lower() in by_case:
            raise CorruptTable(
                f"{subject} has a member '{name}', which the specification spells '{by_case[name.lower()]}'",
                code="TAHOE_CORRUPT_ACTION",
            )
    if of == "remove" and value.get("extendedFileMetadata"):
        for name in ("partitionValues", "size"):
            if value.get(name) is None:
                raise CorruptTable(
                    f"{subject} says extendedFileMetadata, which promises '{name}', but has none", code="TAHOE_CORRUPT_ACTION"
                )
    if of == "deletionVector" and value["storageType"] == "i" and value.get("offset") is not None:
        raise CorruptTable(
            f"{subject} is inline (storageType 'i') and yet has an offset, {value['offset']}", code="TAHOE_CORRUPT_ACTION"
        )


def _check_member(row: _Member, member: Any, subject: str) -> None:
    fits = isinstance(member, row.kind) and (row.kind is bool or not isinstance(member, bool))
    if fits and row.kind is list:
        fits = all(isinstance(each, str) for each in member)
    if fits and row.members:
        _check(row.members, member, subject)
    elif fits and row.kind is dict:
        fits = all(value is None or isinstance(value, str) for value in member.values())
    if not fits:
        raise CorruptTable(
            f"{subject} must be {_NAMES_OF_KINDS[row.kind]}{' of strings' * (row.kind is dict)}, found {_shown(member)}",
            code="TAHOE_CORRUPT_ACTION",
        )
    if row.kind is int and not row.least <= member <= row.most:
        raise CorruptTable(
            f"{subject} must be a number from {row.least} to {row.most}, found {_shown(member)}", code="TAHOE_CORRUPT_ACTION"
        )


def _missing(name: str, value: Mapping[str, object], subject: str) -> CorruptTable:
    likely = next((each for each in value if each != name and each.lower() == name.lower()), None)
    but = f", but only '{likely}', which is spelled otherwise" if likely else ""
    return CorruptTable(
        f"{subject} has no member '{name}', which the specification demands{but}", code="TAHOE_CORRUPT_ACTION", member=name
    )


def _fault_of_columns(of: str, columns: Mapping[str, pa.ChunkedArray], subject: str) -> str | None:
    for name, row in _MEMBERS[of].items():
        values = columns.get(name)
        if row.demanded and (values is None or values.null_count):
            return f"{subject} has no member '{name}', which the specification demands"
        if values is None:
            continue
        if row.kind is int and len(values) and row.least >= 0 and (pc.min(values).as_py() or 0) < 0:
            return f"the member '{name}' of {subject} must be a number from {row.least} to {row.most}, found {pc.min(values).as_py()}"
        if row.members and values.null_count < len(values):
            inner = values.drop_null()
            members = {field.name: pc.struct_field(inner, field.name) for field in inner.type}
            fault = _fault_of_columns(row.members, members, f"the member '{name}' of {subject}")
            if fault is not None:
                return fault
    return None


def _first_without(maps: pa.MapArray, name: str) -> int | None:
    """Return the first row whose map does not have the key exactly once."""
    if maps.null_count:
        return int(pc.index(maps.is_null(), scalar(True)).as_py())
    offsets = maps.offsets
    start = offsets[0].as_py()
    keys = maps.keys.slice(start, offsets[len(maps)].as_py() - start)
    is_it = pc.equal(keys, scalar(name, keys.type)).cast(pa.int32())
    before = pa.concat_arrays([array([0], pa.int32()), pc.cumulative_sum(is_it)])
    at = before.take(pc.subtract(offsets, scalar(start, offsets.type)))
    wrong = pc.not_equal(pc.subtract(at.slice(1), at.slice(0, len(maps))), scalar(1, pa.int32()))
    position = int(pc.index(wrong, scalar(True)).as_py())
    return None if position < 0 else position


def _no_key(path: str, keys: Sequence[str] | None, name: str, url: str) -> CorruptTable:
    likely = next((key for key in keys or () if key != name and key.lower() == name.lower()), None)
    if keys is not None and keys.count(name) > 1:
        fault = f"name the partition column '{name}' twice"
    elif likely is not None:
        fault = f"have '{likely}' where the table's partition column is '{name}'; names are compared with regard to case"
    else:
        fault = f"lack the partition column '{name}', so to which partition the file belongs is not known"
    return CorruptTable(
        f"{f'Table {url}: the' if url else 'The'} partition values of file '{path}' in the log {fault}. A null is written as null, not "
        "left out. Restore the commit or checkpoint that adds the file from a backup, or read a version before it.",
        code="DELTA_TXN_LOG_FAILED_INTEGRITY",
        **({"table": url} if url else {}),
        file=path,
        column=name,
    )


def _shown(value: object) -> str:
    return json.dumps(value, default=str)[:80]
