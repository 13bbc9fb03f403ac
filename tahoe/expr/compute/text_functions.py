"""Texts, lists and structs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from tahoe.base.exceptions import Unsupported
from tahoe.base.lazy import pc
from tahoe.expr.compute.comparison import compare_arrays
from tahoe.expr.compute.values import Array, Incomputable, by_value, row_by_row
from tahoe.expr.tree.expression import Call, Literal
from tahoe.schema.arrow import to_arrow_type
from tahoe.schema.types import MapType


def like_pattern(pattern: str) -> str:
    """The regular expression of a LIKE pattern: ``%`` any characters, ``_`` one, ``\\`` takes the next as it is."""
    expression, position = "", 0
    while position < len(pattern):
        sign = pattern[position]
        if sign == "\\":
            position += 1
            following = pattern[position : position + 1]
            if following not in ("%", "_", "\\"):
                raise Incomputable(
                    f"the pattern '{pattern[:60]}' has a backslash before neither %, _ nor a backslash", "INVALID_FORMAT"
                )
            expression += re.escape(following)
        else:
            expression += {"%": ".*", "_": "."}.get(sign) or re.escape(sign)
        position += 1
    return rf"(?s)\A{expression}\z"


def safe_regular_expression(pattern: str) -> str:
    """Return the pattern for RE2 if it has the same meaning as in Java; else raise `Unsupported`, naming the part.

    Allowed are plain characters, classes without nested ones, groups, alternatives, repetitions, ``^``, ``$`` at the end,
    and the escapes of punctuation and of d, D, w, W, s, S, t, n, r.
    """
    translated, position, in_class = "", 0, False
    while position < len(pattern):
        sign = pattern[position]
        rest = pattern[position:]
        if sign == "\\":
            translated += _escape(pattern, position, in_class)
            position += 2
            continue
        if in_class:
            if sign == "[" or rest.startswith("&&"):
                raise _unlike(pattern, rest)
            in_class = sign != "]"
            translated += sign
        elif sign == "[":
            in_class = True
            translated += sign
            # A bracket right after the opening one, or its ^, is read differently.
            if re.match(r"\[\^?\]", rest):
                raise _unlike(pattern, rest)
        elif (rest.startswith("(?") and not rest.startswith("(?:")) or (sign in "*+?}" and rest[1:2] == "+"):
            raise _unlike(pattern, rest)
        elif sign == ".":
            translated += r"[^\n\r\x{85}\x{2028}\x{2029}]"
        elif sign == "$":
            if rest.lstrip("$)") and not re.match(r"\$\)*\|", rest):
                raise _unlike(pattern, rest)
            translated += r"(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])?\z"
        else:
            translated += sign
        position += 1
    return translated


_BLANKS = r"\t\n\x0B\f\r "


def _escape(pattern: str, position: int, in_class: bool) -> str:
    sign = pattern[position + 1 : position + 2]
    if sign == "s":
        return _BLANKS if in_class else f"[{_BLANKS}]"
    if sign == "S" and not in_class:
        return f"[^{_BLANKS}]"
    if sign and (sign in "dDwWtnr" or (not sign.isalnum() and sign.isascii())):
        return "\\" + sign
    raise _unlike(pattern, pattern[position:])


def _unlike(pattern: str, rest: str) -> Unsupported:
    return Unsupported(
        f"The regular expression '{pattern[:100]}' contains '{rest[:10]}', which may mean something else to Spark. Write it with plain "
        "classes, groups and repetitions.",
        code="TAHOE_EXPRESSION_NOT_ALLOWED",
    )


def _constant(call: Call, index: int) -> Any:
    literal = call.arguments[index]
    return literal.value if isinstance(literal, Literal) else None


def _matches(call: Call, texts: Array, _: Array) -> Array:
    pattern = _constant(call, 1)
    if pattern is None:
        return pa.nulls(len(texts), pa.bool_())
    expression = like_pattern(pattern) if call.function == "like" else safe_regular_expression(pattern)
    try:
        return pc.match_substring_regex(texts, expression)
    except pa.ArrowInvalid as error:
        raise Incomputable(f"'{pattern[:60]}' is no regular expression", "INVALID_PARAMETER_VALUE.PATTERN") from error


def _case(function: Callable[[str], str]) -> Callable[..., Array]:
    return lambda call, texts: by_value(function, texts, pa.string())


def _trim(kernel: Callable[..., Array]) -> Callable[..., Array]:
    return lambda call, texts, *_: kernel(texts, characters=" ")


def _substring(text: str, start: int, length: int = 1 << 31) -> str:
    """SQL's substring: from 1, or from the end where it is negative; 0 is as 1."""
    if start > len(text):
        return ""
    begin = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    return text[max(begin, 0) : max(begin + length, 0)] if length > 0 else ""


def _padded(text: str, length: int, pad: str, *, left: bool) -> str:
    missing = length - len(text)
    if missing <= 0 or not pad:
        return text[: max(length, 0)]
    filled = (pad * (missing // len(pad) + 1))[:missing]
    return filled + text if left else text + filled


def _sliced(call: Call, texts: Array, *numbers: Array) -> Array:
    """substring, left and right, by whole columns where the place is constant and does not lie before the text."""
    places: list[Any] = [number.value if isinstance(number, Literal) else None for number in call.arguments[1:]]
    if None not in places:
        start, length = (places[0], *places[1:], _TO_THE_END)[:2] if call.function == "substring" else (1, places[0])
        if length <= 0:
            return pc.if_else(texts.is_valid(), "", texts)
        if call.function == "right":
            return pc.utf8_slice_codeunits(texts, -length)
        if start >= 0 or length >= _TO_THE_END:
            begin = max(start - 1, 0) if start >= 0 else start
            return pc.utf8_slice_codeunits(texts, begin, None if length >= _TO_THE_END else begin + length)
    function = {"left": lambda text, n: _substring(text, 1, n), "right": lambda text, n: text[-n:] if n > 0 else ""}
    return row_by_row(function.get(call.function, _substring), pa.string(), texts, *numbers)


_TO_THE_END = (1 << 31) - 1


def _tested(kernel: Callable[..., Array], function: Callable[[str, str], bool]) -> Callable[..., Array]:
    def tested(call: Call, texts: Array, parts: Array) -> Array:
        part = _constant(call, 1)
        return row_by_row(function, pa.bool_(), texts, parts) if part is None else kernel(texts, pattern=part)

    return tested


def _texts(function: Callable[..., object], result: pa.DataType) -> Callable[..., Array]:
    return lambda call, *arrays: row_by_row(function, result, *arrays)


def _length(call: Call, values: Array) -> Array:
    kernel = pc.binary_length if pa.types.is_binary(values.type) else pc.utf8_length
    return kernel(values).cast(pa.int32())


def _joined(call: Call, *parts: Array) -> Array:
    return pc.binary_join_element_wise(*parts, b"" if pa.types.is_binary(parts[0].type) else "", null_handling="emit_null")


def _joined_with(call: Call, separator: Array, *parts: Array) -> Array:
    rows = zip(separator.to_pylist(), *(part.to_pylist() for part in parts), strict=True)
    joined = [None if sign is None else sign.join(text for text in texts if text is not None) for sign, *texts in rows]
    return pa.array(joined, pa.string())


def _replaced(text: str, search: str, other: str = "") -> str:
    return text.replace(search, other) if search else text


def _element(call: Call, values: Array, keys: Array) -> Array:
    """`[]` counts from 0, element_at from 1 and from the end; a key that a map does not have gives NULL."""
    by_key = isinstance(call.arguments[0].data_type, MapType)
    from_zero = call.function == "[]"

    def chosen(elements: list[Any], key: Any) -> Any:
        if by_key:
            return next((value for name, value in elements if name == key), None)
        if not from_zero and key == 0:
            raise Incomputable("there is no element 0; element_at counts from 1", "INVALID_INDEX_OF_ZERO")
        index = key if from_zero else key - 1 if key > 0 else len(elements) + key
        if not 0 <= index < len(elements):
            code = "INVALID_ARRAY_INDEX" if from_zero else "INVALID_ARRAY_INDEX_IN_ELEMENT_AT"
            raise Incomputable(f"there is no element {key} in a list of {len(elements)}", code)
        return elements[index]

    return row_by_row(chosen, to_arrow_type(call.data_type), values, keys)


def _contains(call: Call, lists: Array, searched: Array) -> Array:
    """array_contains: NULL where the value is not there but a NULL is."""

    def contains(elements: list[object], value: object) -> bool | None:
        column = pa.array(elements, lists.type.value_type)
        mask = compare_arrays("=", column, pa.repeat(pa.scalar(value, column.type), len(column)))
        return True if pc.any(mask).as_py() else None if column.null_count else False

    return row_by_row(contains, pa.bool_(), lists, searched)


def _struct(call: Call, *arrays: Array) -> Array:
    arrow_type = to_arrow_type(call.data_type)
    return pa.StructArray.from_arrays(list(arrays[1::2]), fields=[arrow_type.field(i) for i in range(arrow_type.num_fields)])


def _array(call: Call, *arrays: Array) -> Array:
    arrow_type = to_arrow_type(call.data_type)
    rows = zip(*(array.to_pylist() for array in arrays), strict=True)
    return pa.array([list(row) for row in rows], arrow_type)


def _field(call: Call, structs: Array, _: Array) -> Array:
    return pc.struct_field(structs, [_constant(call, 1)])


def _size(call: Call, values: Array) -> Array:
    return row_by_row(len, pa.int32(), values) if pa.types.is_map(values.type) else pc.list_value_length(values).cast(pa.int32())


TEXTS: Mapping[str, Callable[..., Array]] = {
    "concat": _joined,
    "concat_ws": _joined_with,
    **dict.fromkeys(("like", "rlike"), _matches),
    "length": _length,
    "octet_length": lambda call, texts: pc.binary_length(texts).cast(pa.int32()),
    "lower": _case(str.lower),
    "upper": _case(str.upper),
    "reverse": _case(lambda text: text[::-1]),
    "trim": _trim(pc.utf8_trim),
    "ltrim": _trim(pc.utf8_ltrim),
    "rtrim": _trim(pc.utf8_rtrim),
    **dict.fromkeys(("substring", "left", "right"), _sliced),
    "repeat": _texts(lambda text, times: text * times, pa.string()),
    "lpad": _texts(lambda text, length, pad=" ": _padded(text, length, pad, left=True), pa.string()),
    "rpad": _texts(lambda text, length, pad=" ": _padded(text, length, pad, left=False), pa.string()),
    "startswith": _tested(pc.starts_with, str.startswith),
    "endswith": _tested(pc.ends_with, str.endswith),
    "contains": _tested(pc.match_substring, str.__contains__),
    "instr": _texts(lambda text, part: text.find(part) + 1, pa.int32()),
    "replace": _texts(_replaced, pa.string()),
    "md5": lambda call, values: by_value(
        lambda value: hashlib.md5(value, usedforsecurity=False).hexdigest(), values, pa.string()
    ),
    "sha1": lambda call, values: by_value(
        lambda value: hashlib.sha1(value, usedforsecurity=False).hexdigest(), values, pa.string()
    ),
    "size": _size,
    "array_contains": _contains,
    **dict.fromkeys(("[]", "element_at"), _element),
    "field": _field,
    "named_struct": _struct,
    "array": _array,
}
