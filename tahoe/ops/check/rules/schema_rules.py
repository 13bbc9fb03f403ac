"""Rules of the metadata action: the schema and its columns' metadata, partition columns, column mapping."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tahoe.ops.check.subjects.rule import Breaches, RuleList
from tahoe.ops.check.subjects.table_settings import Field, Settings
from tahoe.protocol.properties import CONSTRAINT_PREFIX
from tahoe.schema.geospatial import is_geospatial_name
from tahoe.schema.types import PRIMITIVES

RULES: RuleList[Settings] = RuleList()

_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")
_GEOSPATIAL = re.compile(
    r"geometry(\(\s*(?!SRID:ANY\b)\w+:-?\w+\s*\))?|"
    r"geography(\(\s*(?!SRID:ANY\b)(\w+:-?\w+|\w+|\w+:-?\w+\s*,\s*(?i:spherical|vincenty|thomas|andoyer|karney))\s*\))?"
)
"""Not yet in the specification: the forms that delta-spark and both kernels read (docs/design/036)."""
_MAPPING_ID, _PHYSICAL_NAME = "delta.columnMapping.id", "delta.columnMapping.physicalName"


@RULES.rule("Format Specification")
def files_are_parquet(settings: Settings) -> Breaches:
    """The format's provider is ``parquet``."""
    file_format = settings.metadata.get("format")
    if not isinstance(file_format, dict) or file_format.get("provider") != "parquet":
        yield f"the format of the table's files is {file_format!r:.60}, expected the provider parquet"


@RULES.rule("Schema Serialization Format")
def the_schema_is_a_struct(settings: Settings) -> Breaches:
    """The schema is the JSON of a struct."""
    try:
        schema = json.loads(settings.metadata.get("schemaString") or "")
    except (ValueError, TypeError, RecursionError) as error:
        yield f"schemaString is no JSON: {error}"
        return
    if not isinstance(schema, dict) or schema.get("type") != "struct" or not isinstance(schema.get("fields"), list):
        yield f"schemaString is no struct: {str(schema)[:60]}"


@RULES.rule("Struct Field")
def fields_have_their_members(settings: Settings) -> Breaches:
    """Each field has a name, a type, nullability, and metadata."""
    for field in settings.fields:
        for name, kind in (("name", str), ("nullable", bool), ("metadata", dict)):
            if not isinstance(field.raw.get(name), kind):
                yield f"column {field.name} has {name} {field.raw.get(name)!r:.40}, expected {kind.__name__}"


@RULES.rule("Primitive Types")
def types_are_known(settings: Settings) -> Breaches:
    """Types are primitive types, decimals of at most 38 digits, and structs, arrays and maps of such types."""
    for field in settings.fields:
        for wrong in _unknown(field.type):
            yield f"column {field.name} has the type {wrong!r:.60}, which there is not"


def _unknown(kind: object) -> Iterator[Any]:
    if isinstance(kind, str):
        decimal = _DECIMAL.fullmatch(kind)
        fits = decimal is not None and 1 <= int(decimal[1]) <= 38 and 0 <= int(decimal[2]) <= int(decimal[1])
        if kind not in PRIMITIVES and not fits and not _GEOSPATIAL.fullmatch(kind):
            yield kind
    elif not isinstance(kind, dict) or kind.get("type") not in ("struct", "array", "map"):
        yield kind
    elif kind["type"] == "array":
        yield from _unknown(kind.get("elementType"))
    elif kind["type"] == "map":
        yield from _unknown(kind.get("keyType"))
        yield from _unknown(kind.get("valueType"))


@RULES.rule("Schema Serialization Format")
def column_names_are_unique(settings: Settings) -> Breaches:
    """Names are unique regardless of case."""
    for path, count in Counter(tuple(part.lower() for part in field.path) for field in settings.fields).items():
        if count > 1:
            yield f"{count} columns are called {'.'.join(path)}"


@RULES.rule("Change Metadata")
def partition_columns_are_columns(settings: Settings) -> Breaches:
    """Each is a primitive column of the schema, and listed once."""
    for name, count in Counter(settings.partition_columns).items():
        field = settings.columns.get(name)
        if field is None:
            yield f"the partition column {name} is no column of the schema"
        elif not isinstance(field.type, str):
            yield f"the partition column {name} is of a nested type"
        elif is_geospatial_name(field.type):
            yield f"the partition column {name} is of the type {field.type}, which has no partition values"
        if count > 1:
            yield f"the partition column {name} is listed {count} times"


@RULES.rule("Column Mapping")
def the_mapping_mode_is_known(settings: Settings) -> Breaches:
    """The mode is ``none``, ``id`` or ``name``."""
    if settings.mapping_mode not in ("none", "id", "name"):
        yield f"delta.columnMapping.mode is {settings.mapping_mode}"


@RULES.rule("Writer Requirements for Column Mapping")
def mapped_columns_have_ids(settings: Settings) -> Breaches:
    """Each field has a 32-bit id."""
    for field in _mapped(settings):
        number = field.metadata.get(_MAPPING_ID)
        if not isinstance(number, int) or not 0 < number < 2**31:
            yield f"column {field.name} has the id {number!r:.40}"


@RULES.rule("Writer Requirements for Column Mapping")
def column_ids_are_unique(settings: Settings) -> Breaches:
    """No two fields have one id; those of elements, keys and values count too."""
    ids: Counter[int] = Counter()
    for field in _mapped(settings):
        ids.update(each for each in (field.metadata.get(_MAPPING_ID), *_nested_ids(field).values()) if isinstance(each, int))
    for number, count in ids.items():
        if count > 1:
            yield f"the id {number} is that of {count} columns"


def _nested_ids(field: Field) -> dict[str, Any]:
    ids = field.metadata.get("delta.columnMapping.nested.ids")
    return ids if isinstance(ids, dict) else {}


@RULES.rule("Writer Requirements for Column Mapping")
def mapped_columns_have_physical_names(settings: Settings) -> Breaches:
    """Each field has a physical name, a text."""
    for field in _mapped(settings):
        name = field.metadata.get(_PHYSICAL_NAME)
        if not isinstance(name, str) or not name:
            yield f"column {field.name} has the physical name {name!r:.40}"


@RULES.rule("Field Path")
def physical_field_paths_are_unique(settings: Settings) -> Breaches:
    """No two fields have the same physical path."""
    for path, count in Counter(field.physical for field in _mapped(settings)).items():
        if count > 1:
            yield f"{count} columns have the physical name {'.'.join(path)}"


@RULES.rule("Writer Requirements for Column Mapping")
def the_highest_id_is_tracked(settings: Settings) -> Breaches:
    """`delta.columnMapping.maxColumnId` is at least every id."""
    if settings.mapping_mode == "none":
        return
    text = settings.property("delta.columnMapping.maxColumnId")
    ids = [each for field in settings.fields for each in (field.metadata.get(_MAPPING_ID), *_nested_ids(field).values())]
    highest = max((each for each in ids if isinstance(each, int)), default=0)
    if not text.isdigit() or int(text) < highest:
        yield f"delta.columnMapping.maxColumnId is {text or 'not there'}, and a column has the id {highest}"


def _mapped(settings: Settings) -> tuple[Field, ...]:
    return settings.fields if settings.mapping_mode != "none" else ()


@RULES.rule("Column Invariants")
def invariants_are_expressions(settings: Settings) -> Breaches:
    """An invariant is JSON with an SQL text at ``expression.expression``."""
    for field in settings.fields:
        stored = field.metadata.get("delta.invariants")
        try:
            text = None if stored is None else json.loads(stored)["expression"]["expression"]
        except (ValueError, TypeError, KeyError):
            text = 0
        if text is not None and not isinstance(text, str):
            yield f"delta.invariants of column {field.name} is {stored!r:.60}"


@RULES.rule("Generated Columns")
def generation_expressions_are_texts(settings: Settings) -> Breaches:
    """A generation expression is SQL text."""
    for field in settings.fields:
        stored = field.metadata.get("delta.generationExpression", "")
        if not isinstance(stored, str):
            yield f"delta.generationExpression of column {field.name} is {stored!r:.60}"


@RULES.rule("CHECK Constraints")
def constraints_are_named_expressions(settings: Settings) -> Breaches:
    """A constraint has a name and a text."""
    for key, text in settings.configuration.items():
        if key.startswith(CONSTRAINT_PREFIX) and (key == CONSTRAINT_PREFIX or not text.strip()):
            yield f"{key} is {text!r:.60}"


@RULES.rule("Identity Columns")
def identity_columns_have_start_and_step(settings: Settings) -> Breaches:
    """Whole numbers; the step is not 0, the high-water mark is the start or a whole number of steps from it."""
    for field in settings.fields:
        identity = {key.rpartition(".")[2]: value for key, value in field.metadata.items() if key.startswith("delta.identity.")}
        if not identity:
            continue
        start, step, mark = identity.get("start"), identity.get("step"), identity.get("highWaterMark")
        if not isinstance(start, int) or not isinstance(step, int) or step == 0:
            yield f"identity column {field.name} starts at {start!r} and steps by {step!r}"
        elif (
            isinstance(mark, int)
            and ((mark - start) % step or (mark - start) // step < 0)
            and not identity.get("allowExplicitInsert")
        ):
            yield f"the high-water mark {mark} of identity column {field.name} is not {start} and steps of {step}"
        if not isinstance(identity.get("allowExplicitInsert"), bool):
            yield f"identity column {field.name} does not say whether values may be given"


@RULES.rule("Type Change Metadata")
def type_changes_are_told_right(settings: Settings) -> Breaches:
    """The changes are allowed, and the last of them led to the column's type."""
    for field in settings.fields:
        changes = field.metadata.get("delta.typeChanges")
        if changes is None:
            continue
        if not isinstance(changes, list) or not all(isinstance(each, dict) for each in changes):
            yield f"delta.typeChanges of column {field.name} is {changes!r:.60}"
            continue
        newest: dict[str, Any] = {}
        for change in changes:
            before, after = change.get("fromType"), change.get("toType")
            newest[str(change.get("fieldPath", ""))] = after
            if not is_widening(before, after):
                yield f"column {field.name} went from {before!r:.30} to {after!r:.30}, which is no widening"
        for path, after in newest.items():
            if _type_below(field.type, path) != after:
                yield f"the last type change of column {field.name} led to {after!r:.30}, and it is {_type_below(field.type, path)!r:.30}"


def _type_below(kind: object, path: str) -> Any:
    for part in path.split(".") if path else ():
        kind = (
            kind.get({"element": "elementType", "key": "keyType", "value": "valueType"}.get(part))
            if isinstance(kind, dict)
            else None
        )
    return kind


def is_widening(before: object, after: object) -> bool:
    """Whether "Type Widening" allows the change of a type; the preview's byte, short and int to decimal(10) included."""
    if not isinstance(before, str) or not isinstance(after, str):
        return False
    if after in _WIDER.get(before, ()):
        return True
    to = _DECIMAL.fullmatch(after)
    digits = {"byte": 10, "short": 10, "integer": 10, "long": 20}.get(before)
    came = _DECIMAL.fullmatch(before)
    if to is None or (digits is None and came is None):
        return False
    precision, scale = (digits, 0) if came is None else (int(came[1]), int(came[2]))
    more = int(to[2]) - scale
    return precision is not None and more >= 0 and int(to[1]) - precision >= more


_WIDER = {
    "byte": ("short", "integer", "long", "double"),
    "short": ("integer", "long", "double"),
    "integer": ("long", "double"),
    "float": ("double",),
    "date": ("timestamp_ntz",),
}


@RULES.rule("Void Type")
def void_stands_alone(settings: Settings) -> Breaches:
    """A void type is not in arrays or maps, and not the only type of the table."""
    for field in settings.fields:
        if isinstance(field.type, dict) and any(
            field.type.get(part) == "void" for part in ("elementType", "keyType", "valueType")
        ):
            yield f"column {field.name} is an array or a map of void"
