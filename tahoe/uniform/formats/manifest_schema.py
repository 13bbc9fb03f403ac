"""The Avro schemas of manifests and manifest lists, format versions 2 and 3 (format/spec.md, "Manifests" and "Manifest Lists")."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache

from tahoe.base.json_values import JsonMapping, JsonObject
from tahoe.uniform.formats.single_values import Codec

DATA, DELETES = 0, 1
"""The content of a manifest: data files, or delete files."""


@dataclass(frozen=True, slots=True)
class Spec:
    """A partition spec with the codecs of its fields. `fields` is the spec's JSON value."""

    spec_id: int
    fields: tuple[JsonMapping, ...]
    codecs: tuple[Codec, ...]


def optional_tail_fields(format_version: int, content: int) -> tuple[str, ...]:
    """Return the names of the optional fields at the end of a ``data_file`` record, which only some manifests have."""
    if format_version >= 3:
        return ("first_row_id", "referenced_data_file", "content_offset", "content_size_in_bytes")
    return ("referenced_data_file",) if content == DELETES else ()


def entry_schema_text(spec: Spec, format_version: int, content: int) -> str:
    """Return the schema of a manifest's entries as text; the partition tuple has the fields of the spec."""
    return _entry_schema_text(_json(_partition_avro(spec)), format_version, content)


# Cached by text and numbers, since Avro types may be dictionaries, which have no hash. Each manifest that is read is compared
# with the result.
@lru_cache(maxsize=100)
def _entry_schema_text(partition: str, format_version: int, content: int) -> str:
    return _json(_entry_schema(json.loads(partition), format_version, content))


def _entry_schema(partition: list[JsonObject], format_version: int, content: int) -> JsonObject:
    data_file = {
        "type": "record",
        "name": "r2",
        "fields": [
            _required("content", 134, "int"),
            _required("file_path", 100, "string"),
            _required("file_format", 101, "string"),
            _required("partition", 102, {"type": "record", "name": "r102", "fields": partition}),
            _required("record_count", 103, "long"),
            _required("file_size_in_bytes", 104, "long"),
            _map("column_sizes", 108, 117, 118, "long"),
            _map("value_counts", 109, 119, 120, "long"),
            _map("null_value_counts", 110, 121, 122, "long"),
            _map("nan_value_counts", 137, 138, 139, "long"),
            _map("lower_bounds", 125, 126, 127, "bytes"),
            _map("upper_bounds", 128, 129, 130, "bytes"),
            _optional("key_metadata", 131, "bytes"),
            _optional("split_offsets", 132, {"type": "array", "element-id": 133, "items": "long"}),
            _optional("equality_ids", 135, {"type": "array", "element-id": 136, "items": "int"}),
            _optional("sort_order_id", 140, "int"),
            *(_optional(name, *_TAIL_FIELDS[name]) for name in optional_tail_fields(format_version, content)),
        ],
    }
    return {
        "type": "record",
        "name": "manifest_entry",
        "fields": [
            _required("status", 0, "int"),
            _optional("snapshot_id", 1, "long"),
            _optional("sequence_number", 3, "long"),
            _optional("file_sequence_number", 4, "long"),
            _required("data_file", 2, data_file),
        ],
    }


@lru_cache(maxsize=2)
def list_schema_text(format_version: int) -> str:
    """Return the schema of a manifest list's entries as text."""
    fields = _LIST_SCHEMA["fields"]
    row_ids = [_optional("first_row_id", 520, "long")] if format_version >= 3 else []
    return _json({**_LIST_SCHEMA, "fields": [*fields, *row_ids]})


_TAIL_FIELDS = {
    "first_row_id": (142, "long"),
    "referenced_data_file": (143, "string"),
    "content_offset": (144, "long"),
    "content_size_in_bytes": (145, "long"),
}


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _optional(name: str, field_id: int, avro_type: object) -> JsonObject:
    return {"name": name, "field-id": field_id, "type": ["null", avro_type], "default": None}


def _required(name: str, field_id: int, avro_type: object) -> JsonObject:
    return {"name": name, "field-id": field_id, "type": avro_type}


def _map(name: str, field_id: int, key_id: int, value_id: int, value_type: str) -> JsonObject:
    """Avro's own maps have text keys; Iceberg writes maps with other keys as arrays of pairs."""
    pair = {
        "type": "record",
        "name": f"k{key_id}_v{value_id}",
        "fields": [_required("key", key_id, "int"), _required("value", value_id, value_type)],
    }
    return _optional(name, field_id, {"type": "array", "items": pair, "logicalType": "map"})


def _partition_avro(spec: Spec) -> list[JsonObject]:
    fields = []
    for field, codec in zip(spec.fields, spec.codecs, strict=True):
        avro_type = codec.avro_type
        if isinstance(avro_type, dict) and "name" in avro_type:  # a named type may be defined only once
            avro_type = {**avro_type, "name": f"{avro_type['name']}_{field['field-id']}"}
        name = _avro_name(field["name"])
        value = _optional(name, field["field-id"], avro_type)
        fields.append(value if name == field["name"] else {**value, "iceberg-field-name": field["name"]})
    return fields


def _avro_name(name: str) -> str:
    """Return the name with characters that are illegal in Avro written as ``_x<hexadecimal code>``, as Iceberg's own library does."""
    legal = re.sub(r"[^A-Za-z0-9_]", lambda matched: f"_x{ord(matched[0]):X}", name)
    return f"_{legal}" if legal[:1].isdigit() else legal


def _summary_fields() -> list[JsonObject]:
    return [
        _required("contains_null", 509, "boolean"),
        _optional("contains_nan", 518, "boolean"),
        _optional("lower_bound", 510, "bytes"),
        _optional("upper_bound", 511, "bytes"),
    ]


_LIST_SCHEMA: JsonObject = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        _required("manifest_path", 500, "string"),
        _required("manifest_length", 501, "long"),
        _required("partition_spec_id", 502, "int"),
        _required("content", 517, "int"),
        _required("sequence_number", 515, "long"),
        _required("min_sequence_number", 516, "long"),
        _required("added_snapshot_id", 503, "long"),
        _required("added_files_count", 504, "int"),
        _required("existing_files_count", 505, "int"),
        _required("deleted_files_count", 506, "int"),
        _required("added_rows_count", 512, "long"),
        _required("existing_rows_count", 513, "long"),
        _required("deleted_rows_count", 514, "long"),
        _optional(
            "partitions",
            507,
            {"type": "array", "element-id": 508, "items": {"type": "record", "name": "r508", "fields": _summary_fields()}},
        ),
        _optional("key_metadata", 519, "bytes"),
    ],
}
