"""Parsing the statistics of many files at once: a column of JSON texts to a column of structs with only the requested members.

Arrow's JSON reader gets the texts' own buffer, without a copy: consecutive objects need no line breaks between
them. It refuses a whole block for one odd value (``"NaN"`` where a number should be, one text that is not JSON), so a block that
fails is read again in smaller blocks, and finally text by text; unreadable statistics are unknown.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.json as pj

from tahoe.base.lazy import pc
from tahoe.schema.arrow_values import array, scalar


def parse_statistics(texts: pa.Array | pa.ChunkedArray, shape: pa.StructType) -> pa.ChunkedArray:
    """Return one struct for each text; null if the text is null; members are null if they are missing, malformed or of another type.

    Args:
        texts: `AddFile.stats` of the files.
        shape: from `tahoe.protocol.statistics.collect.stats_arrow_type`, or any part of it.
    """
    slices = list(_slices(texts))
    if len(slices) > 1 and texts.nbytes >= _WORTH_THREADS:
        with ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1)) as pool:
            parsed = list(pool.map(lambda part: _parse(part, shape), slices))
    else:
        parsed = [_parse(part, shape) for part in slices]
    return pa.chunked_array(parsed, shape)


_THREADS = 2
_SLICE_ROWS = 32_768
_RETRY_ROWS = 512
# Arrow's reader uses another thread; on a busy processor that takes longer than parsing so few texts here.
_FEW = 24
_WORTH_THREADS = 1 << 20
_NOT_FINITE = r'":"(?:NaN|[+-]?Inf(?:inity)?|[+-]?INF)"'


def _slices(texts: pa.Array | pa.ChunkedArray) -> Iterator[pa.Array]:
    if isinstance(texts, pa.ChunkedArray) and texts.num_chunks > 1 and len(texts) <= _SLICE_ROWS:
        # One call of Arrow's reader costs as much as hundreds of texts.
        texts = texts.combine_chunks()
    for chunk in texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]:
        if not (pa.types.is_string(chunk.type) or pa.types.is_large_string(chunk.type)):
            chunk = chunk.cast(pa.large_string())
        for start in range(0, len(chunk), _SLICE_ROWS):
            yield chunk.slice(start, _SLICE_ROWS)


def _parse(texts: pa.Array, shape: pa.StructType) -> pa.StructArray:
    if not shape.num_fields:
        return array([None if text is None else {} for text in texts.to_pylist()], shape)
    valid = texts.drop_null() if texts.null_count else texts
    parsed = _parse_valid(valid, shape)
    if not texts.null_count:
        return parsed
    # Texts that are null were left out: restore the gaps.
    present = texts.is_valid()
    ranks = pc.subtract(pc.cumulative_sum(present.cast(pa.int64())), scalar(1))
    return parsed.take(pc.if_else(present, ranks, scalar(None, pa.int64())))


def _parse_valid(texts: pa.Array, shape: pa.StructType) -> pa.StructArray:
    if len(texts) <= _FEW:
        return array([_read_one(text, shape) for text in texts.to_pylist()], shape)
    parsed = _read_block(texts, shape)
    if parsed is None:
        # Spark writes such bounds; a bound that is not finite is no more useful than an unknown one.
        texts = pc.replace_substring_regex(texts, pattern=_NOT_FINITE, replacement='":null')
        parsed = _read_block(texts, shape)
    if parsed is not None:
        return parsed
    if len(texts) > _RETRY_ROWS:
        parts = [_parse_valid(texts.slice(start, _RETRY_ROWS), shape) for start in range(0, len(texts), _RETRY_ROWS)]
        return pa.concat_arrays(parts)
    return array([_read_one(text, shape) for text in texts.to_pylist()], shape)


def _read_block(texts: pa.Array, shape: pa.StructType) -> pa.StructArray | None:
    """Parse all texts at once; None if that fails or the rows would not line up."""
    if not len(texts):
        return array([], shape)
    if not (pc.all(pc.starts_with(texts, "{")).as_py() and pc.all(pc.ends_with(texts, "}")).as_py()):
        return None
    content = _content(texts)
    try:
        table = pj.read_json(
            pa.BufferReader(content),
            read_options=pj.ReadOptions(use_threads=False, block_size=content.size + 1),
            parse_options=pj.ParseOptions(
                explicit_schema=pa.schema(_json_type(shape).fields), newlines_in_values=True, unexpected_field_behavior="ignore"
            ),
        )
        if table.num_rows != len(texts):
            return None
        columns = [_typed(table.column(i).combine_chunks(), shape.field(i).type) for i in range(shape.num_fields)]
        return pa.StructArray.from_arrays(columns, fields=shape.fields)
    except pa.ArrowInvalid:
        return None


def _content(texts: pa.Array) -> pa.Buffer:
    """Return the bytes of all texts, one after the other, without a copy."""
    offset_type = pa.int32() if pa.types.is_string(texts.type) else pa.int64()
    _, offsets, data = texts.buffers()
    ends = pa.Array.from_buffers(offset_type, len(texts) + 1, [None, offsets], offset=texts.offset)
    start = ends[0].as_py()
    return data.slice(start, ends[len(texts)].as_py() - start)


def _json_type(kind: pa.DataType) -> pa.DataType:
    """Return the type to request from the JSON reader: it has no dates, so they come as texts."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(member.name, _json_type(member.type)) for member in kind.fields])
    return pa.string() if pa.types.is_date(kind) else kind


def _typed(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_struct(kind):
        members = [_typed(values.field(i), kind.field(i).type) for i in range(kind.num_fields)]
        return pa.StructArray.from_arrays(members, fields=kind.fields, mask=values.is_null() if values.null_count else None)
    return values if values.type == kind else values.cast(kind)


def _read_one(text: str, shape: pa.StructType) -> dict[str, Any] | None:
    try:
        value = json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError):
        return None
    return _member(value, shape) if isinstance(value, dict) else None


def _member(value: object, kind: pa.DataType) -> Any:
    """Convert a value to the type; None if it does not fit."""
    if pa.types.is_struct(kind):
        if not isinstance(value, dict):
            return None
        return {member.name: _member(value.get(member.name), member.type) for member in kind.fields}
    try:
        plain = _plain(value, kind)
        return None if plain is None else scalar(plain, kind).as_py()
    except (pa.ArrowException, ValueError, TypeError, OverflowError, InvalidOperation):
        return None


def _plain(value: Any, kind: pa.DataType) -> Any:
    number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    if pa.types.is_integer(kind):
        return int(value) if number and value == int(value) else None
    if pa.types.is_floating(kind):
        return float(value) if number else None
    if pa.types.is_decimal(kind):
        return Decimal(value) if number or isinstance(value, str) else None
    if pa.types.is_boolean(kind):
        return value if isinstance(value, bool) else None
    if not isinstance(value, str):
        return None
    if pa.types.is_date(kind):
        return date.fromisoformat(value)
    if pa.types.is_timestamp(kind):
        moment = datetime.fromisoformat(value)
        if kind.tz is None:
            return moment.replace(tzinfo=None)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    value.encode("utf-8")  # half a surrogate pair is invalid
    return value
