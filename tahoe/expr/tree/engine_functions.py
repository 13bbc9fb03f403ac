"""Functions that Spark evaluates and Tahoe's own evaluator may not: Delta permits them in CHECK constraints and generated columns.

A call that only Spark can evaluate has the type `ENGINE_TYPE`: Catalyst decides on types and implicit casts when a row is written. Every
function is deterministic, depends on its arguments alone, and runs no code that a table names (`reflect` and `java_method` do). The list
holds the SQL names of the expressions that delta-spark 4.4 permits, without lambdas, generators, intervals and the current time.
"""

from __future__ import annotations

from tahoe.expr.tree.expression import Call, Expression, walk
from tahoe.schema.types import DataType, PrimitiveType

__all__ = ["ENGINE_FUNCTIONS", "ENGINE_TYPE", "engine_functions_in", "type_of_all"]

ENGINE_TYPE = PrimitiveType("decided by Spark")
"""The type of a call that only Spark evaluates; no column has it."""

_NAMES = """
abs acos acosh add_months array array_contains array_distinct array_except array_intersect array_join array_max array_min
array_position array_remove array_repeat array_union arrays_overlap arrays_zip ascii asin asinh atan atan2 atanh base64 bigint
bin binary bit_count bit_length boolean bround cardinality cbrt ceil ceiling char char_length character_length chr coalesce
concat concat_ws conv cos cosh cot crc32 date date_add date_diff date_format date_sub date_trunc dateadd datediff day
dayofmonth dayofweek dayofyear decimal decode degrees double e element_at elt encode exp expm1 factorial find_in_set flatten
float floor format_number format_string from_csv from_json from_unixtime from_utc_timestamp get_json_object greatest hash hex
hour hypot if ifnull initcap instr int isnan isnotnull isnull last_day lcase least left len length levenshtein ln locate log
log10 log1p log2 lower lpad ltrim make_date make_timestamp map map_concat map_entries map_from_arrays map_from_entries
map_keys map_values md5 minute mod month months_between named_struct nanvl next_day nullif nvl nvl2 octet_length
overlay parse_url pi pmod pow power printf quarter radians regexp_extract regexp_like regexp_replace repeat replace
reverse right rint round rpad rtrim schema_of_csv schema_of_json second sentences sequence sha sha1 sha2 shiftleft shiftright
shiftrightunsigned sign signum sin sinh size slice smallint sort_array soundex space split sqrt str_to_map string struct
substr substring substring_index tan tanh timestamp tinyint to_csv to_date to_json to_timestamp to_unix_timestamp
to_utc_timestamp translate trim trunc typeof ucase unbase64 unhex unix_timestamp upper weekday weekofyear
xxhash64 year
"""
ENGINE_FUNCTIONS = frozenset(_NAMES.split())


def engine_functions_in(expression: Expression) -> tuple[str, ...]:
    """The functions of an expression that only Spark can evaluate, sorted; those of `ENGINE_FUNCTIONS` that Tahoe evaluates are not in it."""
    calls = (node for node in walk(expression) if isinstance(node, Call) and node.data_type == ENGINE_TYPE)
    return tuple(sorted({call.function for call in calls if call.function in ENGINE_FUNCTIONS}))


def type_of_all(common: DataType, *expressions: Expression) -> DataType:
    """The common type of expressions, or `ENGINE_TYPE` if Spark decides on the type of one of them."""
    return ENGINE_TYPE if any(expression.data_type == ENGINE_TYPE for expression in expressions) else common
