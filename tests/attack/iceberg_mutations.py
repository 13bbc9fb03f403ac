"""Mutations of valid requests of Iceberg clients: each makes a request that must be refused, and a text that the refusal must contain."""

from __future__ import annotations

import copy
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tests.attack.broken_avro import BROKEN_FILES
from tests.attack.iceberg_requests import (
    LIST_SCHEMA,
    Attempt,
    Victim,
    appended,
    container,
    created,
    deleted,
    in_partition,
    long_bound,
    overwritten,
    parquet,
    rows,
)

__all__ = ["MUTATIONS", "Mutation"]

MANIFEST, LIST = "metadata/attack-m0.avro", "metadata/snap-attack.avro"
_MEBIBYTE = 1024 * 1024


@dataclass(frozen=True)
class Mutation:
    """One hostile request.

    Args:
        base: builds the valid request.
        mutate: makes it hostile.
        reason: a text of the error, in any case.
        status: of the answer.
    """

    name: str
    base: Callable[[Victim], Attempt]
    mutate: Callable[[Attempt], object]
    reason: str
    status: int = 400


def _set(*path: str | int, value: Any) -> Callable[[Attempt], object]:
    """Set a value in the body."""

    def mutate(attempt: Attempt) -> None:
        target: Any = attempt.body
        for part in path[:-1]:
            target = target[part]
        target[path[-1]] = copy.deepcopy(value)

    return mutate


def _without(*path: str | int) -> Callable[[Attempt], object]:
    def mutate(attempt: Attempt) -> None:
        target: Any = attempt.body
        for part in path[:-1]:
            target = target[part]
        del target[path[-1]]

    return mutate


def _file(key: str, value: Any, number: int = 0) -> Callable[[Attempt], object]:
    """Set a value of a data file in the manifest."""
    return lambda attempt: attempt.entries[number]["data_file"].__setitem__(key, value)


def _entry(key: str, value: Any) -> Callable[[Attempt], object]:
    return lambda attempt: attempt.entries[0].__setitem__(key, value)


def _listed(key: str, value: Any, number: int = 0) -> Callable[[Attempt], object]:
    return lambda attempt: attempt.listed[number].__setitem__(key, value)


# -- locations -------------------------------------------------------------------------------------------------------------

_LOCATIONS: dict[str, Callable[[Attempt], str]] = {
    "outside the warehouse": lambda attempt: f"file://{attempt.victim.outside}/rows.parquet",
    "outside without a scheme": lambda attempt: f"{attempt.victim.outside}/rows.parquet",
    "dots": lambda attempt: attempt.url("../../../outside/rows.parquet"),
    "dots without a scheme": lambda attempt: f"{attempt.folder}/../../../outside/rows.parquet",
    "dots in the middle": lambda attempt: attempt.url("x/../attack-0.parquet"),
    "one dot": lambda attempt: attempt.url("./attack-0.parquet"),
    "encoded dots": lambda attempt: attempt.url("%2e%2e/%2e%2e/%2e%2e/outside/rows.parquet"),
    "backslashes": lambda attempt: attempt.url("..\\..\\outside\\rows.parquet"),
    "another table": lambda attempt: f"file://{attempt.victim.root}/sales/other/{attempt.victim.data_file('other')}",
    "a sibling with the same prefix": lambda attempt: f"file://{attempt.folder}-more/rows.parquet",
    "the folder itself": lambda attempt: f"file://{attempt.folder}",
    "a folder": lambda attempt: attempt.url("metadata"),
    "a folder with a slash": lambda attempt: attempt.url("metadata/"),
    "http": lambda attempt: "http://127.0.0.1:1/rows.parquet",
    "s3": lambda attempt: f"s3://bucket{attempt.folder}/attack-0.parquet",
    "memory": lambda attempt: f"memory://x{attempt.folder}/attack-0.parquet",
    "hdfs": lambda attempt: f"hdfs://host{attempt.folder}/attack-0.parquet",
    "a host": lambda attempt: f"file://elsewhere{attempt.folder}/attack-0.parquet",
    "relative": lambda attempt: "attack-0.parquet",
    "empty": lambda attempt: "",
    "NUL": lambda attempt: attempt.url("attack\0-0.parquet"),
    "a line feed": lambda attempt: attempt.url("attack\n-0.parquet"),
    "a half of a pair": lambda attempt: attempt.url("attack\ud800-0.parquet"),
    "a long name": lambda attempt: attempt.url("a" * 300),
    "a long path": lambda attempt: attempt.url("a/" * 3000 + "b"),
    "doubled slashes": lambda attempt: attempt.url("/attack-0.parquet"),
    "no such file": lambda attempt: attempt.url("attack-9.parquet"),
    "a file as a folder": lambda attempt: attempt.url("attack-0.parquet/x"),
    "the log": lambda attempt: attempt.url("_delta_log/00000000000000000000.json"),
    "a device": lambda attempt: "file:///dev/zero",
    "the password file": lambda attempt: "file:///etc/passwd",
    "a query": lambda attempt: attempt.url("attack-0.parquet?x=1"),
}
_LINKS = {"a link to outside": "rows.parquet", "a link to a missing file": "nothing", "a link to a folder": ""}


def _at_manifest_list(attempt: Attempt, location: str) -> None:
    attempt.snapshot["manifest-list"] = location


def _at_manifest(attempt: Attempt, location: str) -> None:
    attempt.listed[0]["manifest_path"] = location


def _at_data_file(attempt: Attempt, location: str) -> None:
    attempt.entries[0]["data_file"]["file_path"] = location


_POSITIONS: dict[str, tuple[Callable[[Victim], Attempt], Callable[[Attempt, str], None]]] = {
    "manifest list": (appended, _at_manifest_list),
    "manifest": (appended, _at_manifest),
    "data file": (appended, _at_data_file),
    "delete file": (deleted, _at_data_file),
}


def _locations() -> Iterator[Mutation]:
    for position, (base, place) in _POSITIONS.items():
        for name, location in _LOCATIONS.items():
            yield Mutation(f"{position}: {name}", base, lambda attempt, at=place, to=location: at(attempt, to(attempt)), "")
        for name, target in _LINKS.items():
            yield Mutation(f"{position}: {name}", base, lambda attempt, at=place, to=target: _link(attempt, at, to), "")


def _link(attempt: Attempt, place: Callable[[Attempt, str], None], target: str) -> None:
    attempt.links["attack-link"] = attempt.victim.outside / target
    place(attempt, attempt.url("attack-link"))


# -- values of manifests -----------------------------------------------------------------------------------------------------


def _values() -> Iterator[Mutation]:
    for base, what in ((appended, "an append"), (overwritten, "an overwrite"), (deleted, "a delete")):
        size = 1 if base is not appended else 2
        for key, label, values in (
            ("record_count", "row", (0, size + 1, 2**62)),
            ("file_size_in_bytes", "byte", (0, -1, 7, 2**62)),
            ("content", "", (-1, 3, 2**40)),
        ):
            for value in values:
                yield Mutation(f"{what}: {key} {value}", base, _file(key, value), label or key)
        for value in (-1, -(2**63)):
            yield Mutation(f"{what}: record_count {value}", base, _file("record_count", value), "without a valid field")
        for value in (-1, 3, 99):
            yield Mutation(f"{what}: status {value}", base, _entry("status", value), "field 0")
        for key in ("sequence_number", "file_sequence_number"):
            for value in (-1, -(2**62)):
                yield Mutation(f"{what}: {key} {value}", base, _entry(key, value), key)
        for key, values in (
            ("manifest_length", (0, -1, 5, 2**60)),
            ("added_files_count", (0, -1, 7)),
            ("existing_files_count", (-1, 1)),
            ("added_rows_count", (0, -5, 2**40)),
            ("sequence_number", (-1,)),
            ("min_sequence_number", (-7,)),
            ("content", (-1, 2, 9, 1 if base is not deleted else 0)),
            ("partition_spec_id", (-1, 5)),
        ):
            for value in values:
                yield Mutation(f"{what}: {key} {value} in the list", base, _listed(key, value), "manifest")
        yield Mutation(f"{what}: encrypted file", base, _file("key_metadata", b"k"), "encrypted")
        yield Mutation(f"{what}: encrypted manifest", base, _listed("key_metadata", b"k"), "encrypted")
        for kind in ("ORC", "AVRO", "", "PARQUET2", "x" * 9999):
            yield Mutation(f"{what}: format {kind[:9]!r}", base, _file("file_format", kind), "format")
        yield Mutation(f"{what}: the same file twice", base, lambda attempt: attempt.entries.append(attempt.entries[0]), "twice")
        yield Mutation(
            f"{what}: the same manifest twice", base, lambda attempt: attempt.listed.append(attempt.listed[0]), "twice"
        )
    yield from _metrics()
    yield from _partitions()


def _metrics() -> Iterator[Mutation]:
    low, high = long_bound(10), long_bound(11)
    right: dict[str, Any] = {
        "value_counts": [{"key": 1, "value": 2}, {"key": 2, "value": 2}],
        "null_value_counts": [{"key": 1, "value": 0}, {"key": 2, "value": 0}],
        "lower_bounds": [{"key": 1, "value": low}, {"key": 2, "value": b"n10"}],
        "upper_bounds": [{"key": 1, "value": high}, {"key": 2, "value": b"n11"}],
    }
    wrong: tuple[tuple[str, int, Any], ...] = (
        ("value_counts", 1, 3),
        ("value_counts", 2, -1),
        ("value_counts", 1, 2**60),
        ("null_value_counts", 1, 1),
        ("null_value_counts", 2, -1),
        ("null_value_counts", 2, 2),
        ("lower_bounds", 1, long_bound(11)),
        ("lower_bounds", 1, long_bound(2**62)),
        ("lower_bounds", 1, b"abc"),
        ("lower_bounds", 2, b"z"),
        ("upper_bounds", 1, long_bound(10)),
        ("upper_bounds", 1, long_bound(-(2**62))),
        ("upper_bounds", 1, b""),
        ("upper_bounds", 2, b"a"),
    )
    for key, column, value in wrong:
        pairs = [pair if pair["key"] != column else {"key": column, "value": value} for pair in right[key]]
        changed = {**right, key: pairs}
        yield Mutation(
            f"metrics: {key} of column {column} {value!r}",
            appended,
            lambda attempt, metrics=changed: attempt.entries[0]["data_file"].update(metrics),
            "by its manifest",
        )


def _partitions() -> Iterator[Mutation]:
    for value in ("n5", None, "", "x" * 100_000):
        reason = "empty text" if value == "" else "partition"
        yield Mutation(f"partition value {str(value)[:9]!r}", in_partition, _file("partition", {"name": value}), reason)
    yield Mutation("partition of another spec", in_partition, lambda attempt: _partition_field(attempt, "field-id", 1001), "spec")
    yield Mutation(
        "partition value of another type",
        in_partition,
        lambda attempt: _partition_field(attempt, "type", ["null", "bytes"]),
        "partition",
    )
    yield Mutation("partition of a table without", appended, lambda attempt: _with_partition(attempt), "spec")


def _partition_field(attempt: Attempt, key: str, value: Any) -> None:
    (partition,) = (each for each in attempt.file_schema["fields"] if each["name"] == "partition")
    partition["type"]["fields"][0][key] = value
    if key == "type":
        attempt.entries[0]["data_file"]["partition"] = {"name": b"n4"}


def _with_partition(attempt: Attempt) -> None:
    (partition,) = (each for each in attempt.file_schema["fields"] if each["name"] == "partition")
    partition["type"]["fields"].append({"name": "name", "field-id": 1000, "type": ["null", "string"]})
    for entry in attempt.entries:
        entry["data_file"]["partition"] = {"name": "n4"}


# -- bytes of files ----------------------------------------------------------------------------------------------------------


def _content(name: str, change: Callable[[bytes], bytes]) -> Callable[[Attempt], object]:
    """Change the bytes of a file once it is encoded; the manifest list states its new length."""

    def finish(attempt: Attempt) -> None:
        attempt.files[name] = change(attempt.files[name])

    return lambda attempt: setattr(attempt, "finish", finish)


def _written(name: str, make: Callable[[], bytes]) -> Callable[[Attempt], object]:
    """Replace a file; the lengths in manifests are right, if they name it."""

    def mutate(attempt: Attempt) -> None:
        data = make()
        attempt.files[name] = data
        for entry in attempt.entries:
            if entry["data_file"]["file_path"] == attempt.url(name):
                entry["data_file"]["file_size_in_bytes"] = len(data)
        if name == MANIFEST:
            attempt.listed[0]["manifest_length"] = len(data)

    return mutate


def _part(of: int) -> Callable[[bytes], bytes]:
    return lambda data: data[: len(data) * of // 10]


def _bytes() -> Iterator[Mutation]:
    for name in (LIST, MANIFEST):
        for part in range(10):
            yield Mutation(f"{name}: {part} tenths", appended, _content(name, _part(part)), "avro")
        yield Mutation(f"{name}: one byte less", appended, _content(name, lambda data: data[:-1]), "avro")
        yield Mutation(f"{name}: bytes at the end", appended, _content(name, lambda data: data + b"more"), "avro")
        for label, make in BROKEN_FILES.items():
            yield Mutation(f"{name}: {label}", appended, _written(name, make), "avro")
        yield Mutation(f"{name}: a Parquet file", appended, _written(name, lambda: parquet(rows(1))), "avro")
    for part in range(0, 10, 2):
        yield Mutation(
            f"data file: {part} tenths",
            appended,
            _written("attack-0.parquet", lambda of=part: _part(of)(parquet(rows(10, 11)))),
            "parquet",
        )
    other = pa.table({"id": ["x", "y"], "name": ["a", "b"]})
    for label, make, reason in (
        ("text", lambda: b"PAR1 and more PAR1", "parquet"),
        ("Avro", lambda: container(LIST_SCHEMA, b"", 0), "parquet"),
        ("other rows", lambda: parquet(rows(1)), "rows"),
        ("another type", lambda: parquet(other), "attack-0.parquet"),
        ("a nested column", lambda: parquet(pa.table({"id": [{"a": 1}] * 2, "name": ["a", "b"]})), "attack-0.parquet"),
        ("the same id twice", lambda: parquet(rows(10, 11), (1, 1)), "attack-0.parquet"),
        ("a footer of 2 GiB", lambda: b"PAR1" + b"\0" * 50 + b"\xff\xff\xff\x7f" + b"PAR1", "parquet"),
        ("a footer of zeros", lambda: b"PAR1" + b"\0" * 5000 + b"\x88\x13\0\0" + b"PAR1", "parquet"),
    ):
        yield Mutation(f"data file: {label}", appended, _written("attack-0.parquet", make), reason)
    for label, table in (
        ("a negative position", _deletes([-1])),
        ("a position behind the end", _deletes([3])),
        ("a huge position", _deletes([2**62])),
        ("a NULL", _deletes([None])),
        ("other columns", pa.table({"a": [1]})),
        ("a text as position", pa.table({"file_path": ["x"], "pos": ["1"]})),
    ):
        yield Mutation(f"delete file: {label}", deleted, lambda attempt, made=table: _delete_file(attempt, made), "delete")
    yield Mutation("equality deletes", deleted, _file("content", 2), "equality")


def _deletes(positions: list[int | None]) -> pa.Table:
    return pa.table({"file_path": ["x"], "pos": pa.array(positions, pa.int64())})


def _delete_file(attempt: Attempt, table: pa.Table) -> None:
    if "file_path" in table.column_names:
        table = table.set_column(0, "file_path", [[attempt.url(attempt.victim.data_file("plain"))]])
    ids = (2147483546, 2147483545)[: table.num_columns]
    _written("attack-deletes.parquet", lambda: parquet(table, ids))(attempt)


# -- the body ----------------------------------------------------------------------------------------------------------------

_WRONG: tuple[Any, ...] = (None, [], {}, "x", -1, 2**64, 1.5, True)
_SNAPSHOT = ("updates", 0, "snapshot")


def _json() -> Iterator[Mutation]:
    for path, right in (
        ((*_SNAPSHOT, "snapshot-id"), ()),
        ((*_SNAPSHOT, "manifest-list"), ("x",)),
        ((*_SNAPSHOT, "sequence-number"), (None,)),
        ((*_SNAPSHOT, "timestamp-ms"), (None,)),
        ((*_SNAPSHOT, "schema-id"), (None,)),
        ((*_SNAPSHOT, "summary"), (None, {})),
        (_SNAPSHOT, ()),
        (("updates", 0, "action"), ()),
        (("updates", 0), ()),
        (("updates",), (None, [])),
        (("updates", 1, "ref-name"), ()),
        (("updates", 1, "type"), ()),
        (("updates", 1, "snapshot-id"), ()),
        (("requirements",), (None, [])),
        (("requirements", 0, "type"), ("x",)),
        (("requirements", 1, "ref"), ("x",)),
    ):
        for value in _WRONG:
            if not any(value is each or (value == each and type(value) is type(each)) for each in right):
                yield Mutation(f"{'.'.join(map(str, path))} is {value!r}", appended, _set(*path, value=value), "request")
    for action in ("add-snapshot", "set-snapshot-ref"):
        number = 0 if action == "add-snapshot" else 1
        yield Mutation(f"without {action}", appended, _without("updates", number), "main")
    for operation in ("", "merge", "APPEND", 5, None):
        yield Mutation(
            f"operation {operation!r}", appended, _set(*_SNAPSHOT, "summary", "operation", value=operation), "operation"
        )
    yield Mutation(
        "overwrite called append", overwritten, _set(*_SNAPSHOT, "summary", "operation", value="append"), "removes files"
    )
    yield Mutation("append called replace", appended, _set(*_SNAPSHOT, "summary", "operation", value="replace"), "replace")
    yield Mutation("encrypted list", appended, _set(*_SNAPSHOT, "key-id", value="k"), "encrypted")
    yield from _requirements()
    yield from _updates()


def _requirements() -> Iterator[Mutation]:
    for kind in ("assert-nothing", "assert-view-uuid", "ASSERT-TABLE-UUID", ""):
        yield Mutation(f"requirement {kind!r}", appended, _set("requirements", 0, "type", value=kind), f"requirement '{kind}'")
    for requirement, status in (
        ({"type": "assert-table-uuid", "uuid": "0" * 36}, 409),
        ({"type": "assert-create"}, 409),
        ({"type": "assert-ref-snapshot-id", "ref": "other", "snapshot-id": 5}, 409),
        ({"type": "assert-last-assigned-field-id", "last-assigned-field-id": 99}, 409),
        ({"type": "assert-current-schema-id", "current-schema-id": 99}, 409),
        ({"type": "assert-current-schema-id", "current-schema-id": -1}, 409),
        ({"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 5}, 409),
        ({"type": "assert-default-spec-id", "default-spec-id": 5}, 409),
        ({"type": "assert-default-sort-order-id", "default-sort-order-id": 5}, 409),
        ({"type": "assert-default-spec-id"}, 400),
        ({"type": "assert-table-uuid"}, 400),
        ({"type": "assert-ref-snapshot-id"}, 400),
    ):
        name = json.dumps(requirement)
        yield Mutation(name, appended, lambda attempt, new=requirement: attempt.body["requirements"].append(new), "", status)
    yield Mutation(
        "overwrite of another snapshot", overwritten, _set("requirements", 1, "snapshot-id", value=5), "requirement", 409
    )
    yield Mutation("overwrite without a parent", overwritten, _without(*_SNAPSHOT, "parent-snapshot-id"), "newest", 409)
    for base in (appended, overwritten):
        yield Mutation(
            f"{base.__name__}: unknown parent", base, _set(*_SNAPSHOT, "parent-snapshot-id", value=5), "not in the table", 409
        )


def _updates() -> Iterator[Mutation]:
    for update in (
        {"action": "add-spec", "spec": {"fields": [{"name": "own", "source-id": 1, "transform": "identity"}]}},
        {"action": "set-default-spec", "spec-id": 5},
        {"action": "remove-partition-specs", "spec-ids": [1]},
        {"action": "add-sort-order", "sort-order": {"order-id": 1, "fields": [{"source-id": 1}]}},
        {"action": "set-default-sort-order", "sort-order-id": 9},
        {"action": "remove-snapshot-ref", "ref-name": "main"},
        {"action": "set-snapshot-ref", "ref-name": "b", "type": "branch", "snapshot-id": 1},
        {"action": "set-snapshot-ref", "ref-name": "t", "type": "tag", "snapshot-id": 1},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "tag", "snapshot-id": 1},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 1},
        {"action": "add-view-version", "view-version": {}},
        {"action": "set-current-view-version", "view-version-id": 1},
        {"action": "add-encryption-key", "encryption-key": {}},
        {"action": "remove-encryption-key", "key-id": "k"},
        {"action": "assign-uuid", "uuid": "00000000-0000-0000-0000-000000000000"},
        {"action": "upgrade-format-version", "format-version": 9},
        {"action": "upgrade-format-version", "format-version": "2"},
        {"action": "set-location", "location": "file:///tmp/elsewhere"},
        {"action": "set-location", "location": "s3://bucket/elsewhere"},
        {"action": "set-properties", "updates": {"delta.appendOnly": "true"}},
        {"action": "set-properties", "updates": {"x": 5}},
        {"action": "set-properties", "updates": []},
        {"action": "remove-properties", "removals": [5]},
        {"action": "set-current-schema", "schema-id": 99},
        {
            "action": "add-schema",
            "schema": {"type": "struct", "fields": [{"id": 1, "name": "id", "required": True, "type": "string"}]},
        },
        {"action": "add-schema", "schema": {"type": "struct", "fields": 5}},
        {"action": "add-schema"},
        {"action": "drop-database"},
        {"action": ""},
        {},
    ):
        name = json.dumps(update)
        yield Mutation(name, appended, lambda attempt, new=update: attempt.body["updates"].append(new), "")


def _bodies() -> Iterator[Mutation]:
    deep = b'{"updates":' * 200_000
    for name, data, reason in (
        ("empty", b"", "JSON"),
        ("a list", b"[]", "object"),
        ("a number", b"5", "object"),
        ("no UTF-8", b"\xff\xfe{}", "JSON"),
        ("deep objects", deep, "JSON"),
        ("deep lists", b"[" * 1_000_000, "JSON"),
        ("deep and closed", b"[" * 50_000 + b"]" * 50_000, ""),
        ("a number of a million digits", b'{"updates": ' + b"1" * 1_000_000 + b"}", ""),
        ("gzip", zlib.compress(b'{"updates": []}'), "JSON"),
        ("a form", b"updates=%5B%5D", "JSON"),
        ("two objects", b"{}{}", "JSON"),
        ("NaN", b'{"updates": NaN}', ""),
        ("a NUL", b'{"updates": []}\0', "JSON"),
    ):
        yield Mutation(f"body: {name}", appended, lambda attempt, new=data: setattr(attempt, "raw", new), reason)
    for mebibytes in (9, 10, 64):
        large = b'{"requirements": [], "updates": [], "x": "' + b"x" * mebibytes * _MEBIBYTE + b'"}'
        yield Mutation(
            f"body of {mebibytes} MiB", appended, lambda attempt, new=large: setattr(attempt, "raw", new), "bytes", 413
        )
    many = {"requirements": [{"type": "assert-create"}] * 150_000, "updates": []}
    yield Mutation("150,000 requirements", appended, lambda attempt: setattr(attempt, "body", many), "", 409)
    for token in ("", "wrong", "writes ", "WRITES", "wrıtes", "writes\0", "a" * 1_000_000):
        status = 401
        yield Mutation(
            f"token {token[:9]!r}",
            appended,
            lambda attempt, new=token: attempt.headers.__setitem__("authorization", f"Bearer{new and ' x'}{new}"),
            "token",
            status,
        )
    for scheme in ("Basic writes", "Digest writes", "writes", "Bearer"):
        yield Mutation(
            f"authorization {scheme!r}",
            appended,
            lambda attempt, new=scheme: attempt.headers.update(authorization=new),
            "token",
            401,
        )
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/xml", "x"):
        yield Mutation(
            f"content type {kind}", appended, lambda attempt, new=kind: attempt.headers.update({"content-type": new}), "type", 415
        )
    for header in ({"origin": "https://elsewhere.example"}, {"sec-fetch-site": "cross-site"}, {"origin": "null"}):
        yield Mutation(f"from a page {header}", appended, lambda attempt, new=header: attempt.headers.update(new), "page", 403)
    for name in ("nothing", "..", "%2e%2e", "%00", "_delta_log", "a%2Fb", ".", "%ff", "metadata"):
        path = f"/v1/namespaces/sales/tables/{name}"
        yield Mutation(f"table {name}", appended, lambda attempt, new=path: setattr(attempt, "path", new), "", 404)
    for name in ("nowhere", "..", "%2e%2e", "sales%1Fplain", "sales%1F..", "%1F", "%00"):
        path = f"/v1/namespaces/{name}/tables/plain"
        yield Mutation(f"namespace {name}", appended, lambda attempt, new=path: setattr(attempt, "path", new), "", 404)
    for label, change in (("no table", []), ("two tables", [{}, {}]), ("a number", 5), ("no identifier", [{"updates": []}])):
        yield Mutation(f"transaction of {label}", appended, lambda attempt, new=change: _transaction(attempt, new), "")


def _transaction(attempt: Attempt, changes: Any) -> None:
    attempt.path, attempt.body = "/v1/transactions/commit", {"table-changes": changes}


# -- new tables --------------------------------------------------------------------------------------------------------------


def _column(number: Any = 1, name: Any = "id", kind: Any = "long", **more: Any) -> dict[str, Any]:
    return {"id": number, "name": name, "required": False, "type": kind, **more}


def _deep_type(depth: int) -> Any:
    kind: Any = "long"
    for number in range(depth):
        kind = {"type": "list", "element-id": number + 2, "element-required": False, "element": kind}
    return kind


_COLUMNS: dict[str, Any] = {
    "no list": 5,
    "a text": ["id"],
    "without a type": [{"id": 1, "name": "id", "required": False}],
    "without an id": [{"name": "id", "required": False, "type": "long"}],
    "without a name": [{"id": 1, "required": False, "type": "long"}],
    "without required": [{"id": 1, "name": "id", "type": "long"}],
    "the same id": [_column(), _column(1, "other")],
    "the same name": [_column(), _column(2)],
    "the same name in capitals": [_column(), _column(2, "ID")],
    "an empty name": [_column(name="")],
    "a name of another type": [_column(name=5)],
    "a half of a pair as name": [_column(name="\ud800")],
    "a negative id": [_column(-1)],
    "an id of 64 bits": [_column(2**40)],
    "an id as text": [_column("1")],
    "a fraction as id": [_column(1.5)],
    "true as id": [_column(True)],
    "an unknown type": [_column(kind="varchar")],
    "a time": [_column(kind="time")],
    "a uuid": [_column(kind="uuid")],
    "a fixed": [_column(kind="fixed[4]")],
    "decimal(39,2)": [_column(kind="decimal(39,2)")],
    "decimal(5,9)": [_column(kind="decimal(5,9)")],
    "decimal(0,0)": [_column(kind="decimal(0,0)")],
    "a decimal of a million digits": [_column(kind=f"decimal({'9' * 5000},2)")],
    "a number as type": [_column(kind=5)],
    "an unknown nested type": [_column(kind={"type": "tuple"})],
    "a list without element": [_column(kind={"type": "list"})],
    "a map without key": [_column(kind={"type": "map", "value-id": 3, "value": "long"})],
    "lists nested 90 times": [_column(kind=_deep_type(90))],
    "lists nested 400 times": [_column(kind=_deep_type(400))],
    "an initial default": [_column(**{"initial-default": 5})],
    "the same id inside": [_column(kind={"type": "list", "element-id": 1, "element-required": False, "element": "long"})],
}


def _tables() -> Iterator[Mutation]:
    for label, columns in _COLUMNS.items():
        yield Mutation(f"create: {label}", created, _set("schema", "fields", value=columns), "")
    for name in ("", ".", "..", "../x", "a/b", "_x", ".x", "a\0b", "a\nb", "x" * 300, "\ud800", 5, None, []):
        yield Mutation(f"create: name {str(name)[:9]!r}", created, _set("name", value=name), "")
    for location in ("file:///tmp/elsewhere", "s3://bucket/x", "../fresh", "", 5):
        yield Mutation(f"create: location {location!r}", created, _set("location", value=location), "location")
    for key, value in (
        ("delta.appendOnly", "true"),
        ("DELTA.appendOnly", "true"),
        ("format-version", "4"),
        ("format-version", "-1"),
        ("format-version", "x" * 1000),
        ("x", 5),
    ):
        yield Mutation(f"create: property {key} {str(value)[:9]}", created, _set("properties", value={key: value}), "")
    for spec in (
        {"fields": [{"name": "d", "source-id": 1, "transform": "bucket[4]"}]},
        {"fields": [{"name": "d", "source-id": 9, "transform": "identity"}]},
        {"fields": [{"name": "d", "source-id": "1", "transform": "identity"}]},
        {"fields": [{"name": "d", "transform": "identity"}]},
        {"fields": [{"name": "d", "source-id": 1}]},
        {
            "fields": [
                {"name": "a", "source-id": 1, "transform": "identity"},
                {"name": "b", "source-id": 1, "transform": "identity"},
            ]
        },
        {"fields": [{"name": "a", "source-id": n, "transform": "identity"} for n in (1, 2)]},
        {"fields": 5},
        5,
    ):
        yield Mutation(f"create: spec {json.dumps(spec)}", created, _set("partition-spec", value=spec), "")
    order = {
        "order-id": 1,
        "fields": [{"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}],
    }
    yield Mutation("create: a sort order", created, _set("write-order", value=order), "sort order")
    yield Mutation("create: no schema", created, _without("schema"), "schema")
    yield Mutation("create: stage-create 1", created, _set("stage-create", value=1), "stage-create")
    yield Mutation("create: an existing table", created, _set("name", value="plain"), "already", 409)


MUTATIONS = [*_locations(), *_values(), *_bytes(), *_json(), *_bodies(), *_tables()]
"""All hostile requests."""
