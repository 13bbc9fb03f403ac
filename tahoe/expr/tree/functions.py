"""The allow-list of operators and functions in expressions, with the types of their arguments and results.

Each row converts typed arguments to a typed call, with the casts that Spark inserts in ANSI mode. `tahoe.expr.compute.compute` has one
kernel for each name; a test compares the two lists. All are deterministic and depend only on their arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.tree.common_types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    VOID,
    arithmetic_type,
    common_type,
    decimal_of,
    decimal_type_of,
    is_integral,
    is_numeric,
)
from tahoe.expr.tree.expression import PLUS_INTERVAL, Call, Case, Cast, Expression, Literal
from tahoe.expr.tree.signatures import Arguments, Rule, cast_to, condition, counted, fixed, meet, mismatch, taken
from tahoe.schema.types import ArrayType, DataType, DecimalType, MapType, PrimitiveType, StructField, StructType, is_opaque


def call(name: str, arguments: Arguments, time_zone: str = "UTC") -> Expression:
    """The typed call of a function of the list.

    Raises:
        InvalidRequest: the name is not on the list, or the arguments do not fit it.
    """
    rule = FUNCTIONS.get(name)
    if rule is None:
        raise InvalidRequest(
            f"The function '{name}' is not on the list of functions that expressions may call.",
            code="TAHOE_EXPRESSION_NOT_ALLOWED",
            function=name,
        )
    return rule(name, arguments, time_zone)


def _alias(other: str) -> Rule:
    return lambda name, arguments, time_zone: FUNCTIONS[other](other, arguments, time_zone)


# ---- logic and comparison


def _logic(name: str, arguments: Arguments, time_zone: str) -> Expression:
    counted(name, arguments, 1 if name == "not" else 2, 1 if name == "not" else None)
    return Call(name, tuple(condition(argument, time_zone) for argument in arguments), BOOLEAN)


def _comparison(name: str, arguments: Arguments, time_zone: str) -> Expression:
    counted(name, arguments, 2, 2)
    return Call(name, _compared(name, arguments, time_zone), BOOLEAN)


def _membership(name: str, arguments: Arguments, time_zone: str) -> Expression:
    counted(name, arguments, 2, None)
    return Call(name, _compared(name, arguments, time_zone), BOOLEAN)


def _compared(name: str, arguments: Arguments, time_zone: str) -> Arguments:
    """The arguments in their common type, which has an order."""
    operands = meet(name, arguments, time_zone)
    if _has_no_order(operands[0].data_type):
        raise mismatch(name, arguments, "maps, variants and geometries cannot be compared")
    return operands


def _null_test(name: str, arguments: Arguments, time_zone: str) -> Expression:
    counted(name, arguments, 1, 1)
    return Call({"isnull": "is null", "isnotnull": "is not null"}.get(name, name), arguments, BOOLEAN)


def _has_no_order(data_type: DataType) -> bool:
    match data_type:
        case StructType(fields):
            return any(_has_no_order(part.data_type) for part in fields)
        case ArrayType(element):
            return _has_no_order(element)
    return isinstance(data_type, MapType) or is_opaque(data_type)


# ---- choice


def _if(name: str, arguments: Arguments, time_zone: str) -> Expression:
    counted(name, arguments, 3, 3)
    chosen = meet(name, arguments[1:], time_zone)
    return Case(((condition(arguments[0], time_zone), chosen[0]),), chosen[1], chosen[0].data_type)


def _coalesce(name: str, arguments: Arguments, time_zone: str) -> Expression:
    counted(name, arguments, 1, None)
    operands = meet(name, arguments, time_zone)
    return Call("coalesce", operands, operands[0].data_type)


def _nvl2(name: str, arguments: Arguments, time_zone: str) -> Expression:
    counted(name, arguments, 3, 3)
    return _if(name, (_null_test("is not null", arguments[:1], time_zone), *arguments[1:]), time_zone)


def _nullif(name: str, arguments: Arguments, time_zone: str) -> Expression:
    counted(name, arguments, 2, 2)
    equal = _comparison("=", arguments, time_zone)
    return Case(((equal, Literal(None, arguments[0].data_type)),), arguments[0], arguments[0].data_type)


def _extreme(name: str, arguments: Arguments, time_zone: str) -> Expression:
    counted(name, arguments, 2, None)
    operands = _compared(name, arguments, time_zone)
    return Call(name, operands, operands[0].data_type)


def _nanvl(name: str, arguments: Arguments, time_zone: str) -> Expression:
    counted(name, arguments, 2, 2)
    number = taken(name, arguments, 0, DOUBLE, time_zone)
    other = taken(name, arguments, 1, DOUBLE, time_zone)
    return Case(((Call("isnan", (number,), BOOLEAN), other),), number, DOUBLE)


# ---- numbers


def _arithmetic(name: str, arguments: Arguments, time_zone: str) -> Expression:
    counted(name, arguments, 2, 2)
    left, right = arguments
    if name in ("+", "-") and left.data_type == DATE and is_integral(right.data_type):
        return FUNCTIONS["date_add" if name == "+" else "date_sub"](
            "date_add" if name == "+" else "date_sub", arguments, time_zone
        )
    left, right = _numbers(name, left, right, time_zone)
    if isinstance(left.data_type, DecimalType) or isinstance(right.data_type, DecimalType):
        left, right = _decimals(left, right, time_zone)
    common = arithmetic_type("%" if name == "pmod" else name, left.data_type, right.data_type)
    if common is None:
        raise mismatch(name, arguments, "numbers are needed")
    if not isinstance(left.data_type, DecimalType):
        left, right = (cast_to(part, common, time_zone) for part in (left, right))
    return Call(name, (left, right), common)


def _numbers(name: str, left: Expression, right: Expression, time_zone: str) -> tuple[Expression, Expression]:
    """Texts next to numbers, and NULL next to anything, become numbers."""
    for first, second in ((left, right), (right, left)):
        if first.data_type == STRING and is_numeric(second.data_type):
            met: DataType = LONG if is_integral(second.data_type) else DOUBLE
            return cast_to(left, met, time_zone), cast_to(right, met, time_zone)
        if first.data_type == VOID and (is_numeric(second.data_type) or second.data_type == VOID):
            met = second.data_type if is_numeric(second.data_type) else DOUBLE
            return cast_to(left, met, time_zone), cast_to(right, met, time_zone)
    if not (is_numeric(left.data_type) and is_numeric(right.data_type)):
        raise mismatch(name, (left, right), "numbers are needed")
    return left, right


def _decimals(left: Expression, right: Expression, time_zone: str) -> tuple[Expression, Expression]:
    """Both as decimals, a whole constant with as many digits as it has; as doubles where one is a floating-point number."""
    sides = []
    for first, second in ((left, right), (right, left)):
        if isinstance(first.data_type, DecimalType):
            target: DataType = (
                first.data_type if isinstance(second.data_type, DecimalType) or is_integral(second.data_type) else DOUBLE
            )
        elif is_integral(first.data_type):
            fits = isinstance(first, Literal) and first.value is not None
            target = decimal_type_of(Decimal(first.value)) if fits and isinstance(first, Literal) else decimal_of(first.data_type)
        else:
            target = DOUBLE
        sides.append(cast_to(first, target, time_zone))
    return sides[0], sides[1]


def _same_number(name: str, arguments: Arguments, time_zone: str) -> Expression:
    """A function of one number that gives one of the same type."""
    counted(name, arguments, 1, 1)
    operand = cast_to(arguments[0], DOUBLE, time_zone) if arguments[0].data_type in (STRING, VOID) else arguments[0]
    if not is_numeric(operand.data_type):
        raise mismatch(name, arguments, "a number is needed")
    return operand if name == "positive" else Call(name, (operand,), operand.data_type)


def _whole(name: str, arguments: Arguments, time_zone: str) -> Expression:
    """floor and ceil of one argument: a LONG, of a decimal a decimal without places."""
    counted(name, arguments, 1, 1)
    data_type = arguments[0].data_type
    if isinstance(data_type, DecimalType):
        result = DecimalType(min(data_type.precision - data_type.scale + 1, 38) if data_type.scale else data_type.precision, 0)
        return Call(name, arguments, result)
    return Call(name, arguments if is_integral(data_type) else (taken(name, arguments, 0, DOUBLE, time_zone),), LONG)


def _round(name: str, arguments: Arguments, time_zone: str) -> Expression:
    counted(name, arguments, 1, 2)
    places = arguments[1] if len(arguments) == 2 else Literal(0, INTEGER)
    if not isinstance(places, Literal) or not isinstance(places.value, int):
        raise mismatch(name, arguments, "the number of places must be a constant")
    operand = arguments[0] if is_numeric(arguments[0].data_type) else taken(name, arguments, 0, DOUBLE, time_zone)
    result = operand.data_type
    if isinstance(result, DecimalType):
        whole = result.precision - result.scale + 1
        if places.value < 0:
            result = DecimalType(min(max(whole, -places.value + 1), 38), 0)
        else:
            scale = min(result.scale, places.value)
            result = DecimalType(min(whole + scale, 38), scale)
    return Call(name, (operand, places), result)


def _bits(name: str, arguments: Arguments, time_zone: str) -> Expression:
    counted(name, arguments, 1 if name == "~" else 2, 1 if name == "~" else 2)
    operands = meet(name, arguments, time_zone)
    if not is_integral(operands[0].data_type):
        raise mismatch(name, arguments, "whole numbers are needed")
    return Call(name, operands, operands[0].data_type)


# ---- texts, lists and structs


def _concat(name: str, arguments: Arguments, time_zone: str) -> Expression:
    counted(name, arguments, 1, None)
    if any(
        isinstance(argument.data_type, ArrayType | MapType | StructType) or is_opaque(argument.data_type)
        for argument in arguments
    ):
        raise mismatch(name, arguments, "only texts can be joined")
    if all(argument.data_type == PrimitiveType("binary") for argument in arguments):
        return Call("concat", arguments, PrimitiveType("binary"))
    return Call("concat", tuple(cast_to(argument, STRING, time_zone) for argument in arguments), STRING)


def _concat_ws(name: str, arguments: Arguments, time_zone: str) -> Expression:
    counted(name, arguments, 1, None)
    return fixed(STRING, *(STRING for _ in arguments))(name, arguments, time_zone)


def _pattern(name: str, arguments: Arguments, time_zone: str) -> Expression:
    """like and rlike: the pattern is a constant."""
    counted(name, arguments, 2, 2)
    if not isinstance(arguments[1], Literal) or not isinstance(arguments[1].value, str | None):
        raise mismatch(name, arguments, "the pattern must be a constant text")
    return Call(name, (taken(name, arguments, 0, STRING, time_zone), cast_to(arguments[1], STRING)), BOOLEAN)


def _length(name: str, arguments: Arguments, time_zone: str) -> Expression:
    counted(name, arguments, 1, 1)
    if arguments[0].data_type == PrimitiveType("binary"):
        return Call("length", arguments, INTEGER)
    return Call("length", (taken(name, arguments, 0, STRING, time_zone),), INTEGER)


def _size(name: str, arguments: Arguments, time_zone: str) -> Expression:
    counted(name, arguments, 1, 1)
    if not isinstance(arguments[0].data_type, ArrayType | MapType):
        raise mismatch(name, arguments, "a list or a map is needed")
    return Call("size", arguments, INTEGER)


def _array_contains(name: str, arguments: Arguments, time_zone: str) -> Expression:
    counted(name, arguments, 2, 2)
    values = arguments[0].data_type
    if not isinstance(values, ArrayType) or common_type(values.element_type, arguments[1].data_type) != values.element_type:
        raise mismatch(name, arguments, "a list and a value of its element's type are needed")
    if _has_no_order(values.element_type):
        raise mismatch(name, arguments, "maps, variants and geometries cannot be compared")
    return Call(name, (arguments[0], cast_to(arguments[1], values.element_type, time_zone)), BOOLEAN)


def _element(name: str, arguments: Arguments, time_zone: str) -> Expression:
    counted(name, arguments, 2, 2)
    match arguments[0].data_type:
        case ArrayType(element) if is_integral(arguments[1].data_type):
            return Call(name, arguments, element)
        case MapType(key, value) if common_type(key, arguments[1].data_type) == key:
            return Call(name, (arguments[0], cast_to(arguments[1], key, time_zone)), value)
    raise mismatch(name, arguments, "a list and an index, or a map and a key, are needed")


def _field(name: str, arguments: Arguments, time_zone: str) -> Expression:
    counted(name, arguments, 2, 2)
    struct, field_name = arguments
    field = (
        struct.data_type.find(field_name.value)
        if isinstance(struct.data_type, StructType) and isinstance(field_name, Literal)
        else None
    )
    if field is None:
        raise mismatch(name, arguments, "there is no such field")
    return Call(name, (struct, Literal(field.name, STRING)), field.data_type)


def _named_struct(name: str, arguments: Arguments, time_zone: str) -> Expression:
    names, values = arguments[::2], arguments[1::2]
    if not values or len(names) != len(values) or not all(isinstance(n, Literal) and isinstance(n.value, str) for n in names):
        raise mismatch(name, arguments, "names (constant texts) and values must alternate")
    fields = tuple(StructField(n.value, v.data_type) for n, v in zip(names, values, strict=True) if isinstance(n, Literal))
    return Call(name, arguments, StructType(fields))


def _array(name: str, arguments: Arguments, time_zone: str) -> Expression:
    elements = meet(name, arguments, time_zone) if arguments else ()
    return Call(name, elements, ArrayType(elements[0].data_type if elements else VOID))


# ---- time


def _part_of_time(name: str, arguments: Arguments, time_zone: str) -> Expression:
    """hour, minute, second: of a timestamp with a zone by the session's wall clock."""
    counted(name, arguments, 1, 1)
    keep = arguments[0].data_type == PrimitiveType("timestamp_ntz")
    return Call(name, (arguments[0] if keep else taken(name, arguments, 0, TIMESTAMP, time_zone),), INTEGER, time_zone)


def _truncated(name: str, arguments: Arguments, time_zone: str) -> Expression:
    counted(name, arguments, 2, 2)
    unit_at = 0 if name == "date_trunc" else 1
    unit = arguments[unit_at]
    units = TIME_UNITS if name == "date_trunc" else DATE_UNITS
    unit_name = units.get(unit.value.lower()) if isinstance(unit, Literal) and isinstance(unit.value, str) else None
    if unit_name is None:
        raise mismatch(name, arguments, f"the unit must be one of the constants {', '.join(units)}")
    result = TIMESTAMP if name == "date_trunc" else DATE
    other = arguments[1 - unit_at]
    if name == "date_trunc" and other.data_type == PrimitiveType("timestamp_ntz"):
        raise mismatch(name, arguments, "a timestamp with time zone is needed")
    operand = taken(name, arguments, 1 - unit_at, result, time_zone)
    parts: Arguments = (Literal(unit_name, STRING), operand) if unit_at == 0 else (operand, Literal(unit_name, STRING))
    return Call(name, parts, result, time_zone)


def _date_format(name: str, arguments: Arguments, time_zone: str) -> Expression:
    counted(name, arguments, 2, 2)
    pattern = arguments[1].value if isinstance(arguments[1], Literal) else None
    if not isinstance(pattern, str) or not _readable_pattern(pattern):
        raise mismatch(name, arguments, "the pattern must be a constant of yyyy, MM, dd, HH, mm, ss and signs between them")
    return Call(name, (taken(name, arguments, 0, TIMESTAMP, time_zone), arguments[1]), STRING, time_zone)


def _readable_pattern(pattern: str) -> bool:
    """Whether a date pattern contains supported parts only."""
    for part in ("yyyy", "MM", "dd", "HH", "mm", "ss"):
        pattern = pattern.replace(part, "")
    return all(sign in "-/:. _" for sign in pattern)


def _conversion(data_type: DataType) -> Rule:
    """to_date and to_timestamp without a format: casts."""

    def rule(name: str, arguments: Arguments, time_zone: str) -> Expression:
        counted(name, arguments, 1, 1)
        operand = taken(name, arguments, 0, data_type, time_zone)
        return Cast(operand.child, data_type, time_zone) if isinstance(operand, Cast) else operand

    return rule


def _plus_interval(name: str, arguments: Arguments, time_zone: str) -> Expression:
    """A timestamp plus a constant number of units; the parser has checked the types."""
    return Call(name, arguments, arguments[0].data_type, time_zone)


DATE_UNITS: Mapping[str, str] = {
    **dict.fromkeys(("year", "yyyy", "yy"), "year"),
    "quarter": "quarter",
    **dict.fromkeys(("month", "mon", "mm"), "month"),
    "week": "week",
}
TIME_UNITS: Mapping[str, str] = {
    **DATE_UNITS,
    **dict.fromkeys(("day", "dd"), "day"),
    **{unit: unit for unit in ("hour", "minute", "second", "millisecond", "microsecond")},
}

_STRINGS = (STRING, STRING)

FUNCTIONS: Mapping[str, Rule] = {
    **dict.fromkeys(("and", "or", "not"), _logic),
    **dict.fromkeys(("=", "<=>", "<", "<=", ">", ">=", "!="), _comparison),
    "in": _membership,
    **dict.fromkeys(("is null", "is not null", "isnull", "isnotnull"), _null_test),
    **dict.fromkeys(("if", "iff"), _if),
    **dict.fromkeys(("coalesce", "nvl", "ifnull"), _coalesce),
    "nvl2": _nvl2,
    "nullif": _nullif,
    "nanvl": _nanvl,
    "isnan": fixed(BOOLEAN, DOUBLE),
    **dict.fromkeys(("greatest", "least"), _extreme),
    **dict.fromkeys(("+", "-", "*", "/", "%", "div", "pmod"), _arithmetic),
    "mod": lambda name, arguments, time_zone: _arithmetic("%", arguments, time_zone),
    **dict.fromkeys(("abs", "negative", "positive"), _same_number),
    **dict.fromkeys(("floor", "ceil"), _whole),
    "ceiling": _alias("ceil"),
    **dict.fromkeys(("round", "bround"), _round),
    **dict.fromkeys(("sqrt", "exp", "ln", "log10", "log2", "signum"), fixed(DOUBLE, DOUBLE)),
    "sign": _alias("signum"),
    "power": fixed(DOUBLE, DOUBLE, DOUBLE),
    "pow": _alias("power"),
    **dict.fromkeys(("&", "|", "^", "~"), _bits),
    **dict.fromkeys(("concat", "||"), _concat),
    "concat_ws": _concat_ws,
    **dict.fromkeys(("like", "rlike"), _pattern),
    **dict.fromkeys(("regexp_like", "regexp"), _alias("rlike")),
    **dict.fromkeys(("length", "char_length", "character_length", "len"), _length),
    "octet_length": fixed(INTEGER, STRING),
    **dict.fromkeys(("lower", "upper", "reverse"), fixed(STRING, STRING)),
    "lcase": _alias("lower"),
    "ucase": _alias("upper"),
    **dict.fromkeys(("trim", "ltrim", "rtrim"), fixed(STRING, STRING)),
    "substring": fixed(STRING, STRING, INTEGER, INTEGER, least=2),
    "substr": _alias("substring"),
    **dict.fromkeys(("left", "right", "repeat"), fixed(STRING, STRING, INTEGER)),
    **dict.fromkeys(("lpad", "rpad"), fixed(STRING, STRING, INTEGER, STRING, least=2)),
    **dict.fromkeys(("startswith", "endswith", "contains"), fixed(BOOLEAN, *_STRINGS)),
    "instr": fixed(INTEGER, *_STRINGS),
    "replace": fixed(STRING, *_STRINGS, STRING, least=2),
    **dict.fromkeys(("md5", "sha1"), fixed(STRING, PrimitiveType("binary"))),
    **dict.fromkeys(("size", "cardinality", "array_size"), _size),
    "array_contains": _array_contains,
    **dict.fromkeys(("[]", "element_at"), _element),
    "field": _field,
    "named_struct": _named_struct,
    "array": _array,
    **dict.fromkeys(("year", "quarter", "month", "day", "dayofweek", "weekday", "dayofyear", "weekofyear"), fixed(INTEGER, DATE)),
    "dayofmonth": _alias("day"),
    **dict.fromkeys(("hour", "minute", "second"), _part_of_time),
    **dict.fromkeys(("date_add", "date_sub", "add_months"), fixed(DATE, DATE, INTEGER)),
    "datediff": fixed(INTEGER, DATE, DATE),
    "date_diff": _alias("datediff"),
    "last_day": fixed(DATE, DATE),
    "make_date": fixed(DATE, INTEGER, INTEGER, INTEGER),
    **dict.fromkeys(("date_trunc", "trunc"), _truncated),
    "date_format": _date_format,
    "to_date": _conversion(DATE),
    "to_timestamp": _conversion(TIMESTAMP),
    **dict.fromkeys(PLUS_INTERVAL, _plus_interval),
}
"""Name, in lower case, to its rule."""
