"""CHECK constraints that only Spark can evaluate, in sessions of Spark Connect.

    text ─► all of its calls, words and signs are in lists ─► the server computes a column of the rows ─► the writer raises the error

A text comes from a table, and a client has no Catalyst to inspect its tree (`tahoe.spark.jvm.stored_trees`). So the text itself must pass:
it calls only functions of Spark that depend on nothing but their arguments and the session's time zone, and has no query.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from tahoe.base.exceptions import Unsupported
from tahoe.expr.parse.lexer import SYMBOL
from tahoe.expr.tree.expression import EngineText, engine_text_in
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.protocol.config import TableConfig
from tahoe.protocol.constraints import Check, cannot_enforce, constraints_of, is_filled_in
from tahoe.schema.collations import is_collated
from tahoe.schema.text_limits import has_char
from tahoe.schema.types import StructType
from tahoe.spark.executors.row_tasks import RowCheck
from tahoe.spark.jvm.translate import to_spark_schema
from tahoe.spark.names.settings import setting_of
from tahoe.spark.write.stored_expressions import BACKSLASHES, MEANING
from tahoe.sql.dialect import QUERY_WORDS, Token, tokenize

_COLUMN = "__tahoe_check_"
_CONSTRAINTS = "delta.constraints."
_TEXTS = """
    ascii base64 bit_length btrim char char_length character_length chr concat concat_ws contains crc32 decode elt encode endswith
    find_in_set format_number format_string get_json_object hash hex ilike initcap instr json_array_length json_object_keys lcase left len
    length levenshtein like locate lower lpad ltrim luhn_check mask md5 octet_length overlay parse_url position printf regexp_count
    regexp_extract regexp_extract_all regexp_instr regexp_like regexp_replace regexp_substr repeat replace reverse right rlike rpad rtrim
    sentences sha sha1 sha2 soundex space split split_part startswith substr substring substring_index to_binary to_char to_number
    to_varchar translate trim try_to_binary try_to_number ucase unbase64 unhex upper url_decode url_encode xxhash64
"""
_NUMBERS = """
    abs acos acosh asin asinh atan atan2 atanh bin bit_count bit_get bround cbrt ceil ceiling conv cos cosh cot csc degrees e exp expm1
    factorial floor getbit greatest hypot isnan least ln log log10 log1p log2 mod nanvl negative pi pmod positive pow power radians rint
    round sec shiftleft shiftright shiftrightunsigned sign signum sin sinh sqrt tan tanh try_add try_divide try_multiply try_subtract
    width_bucket
"""
_ANY_VALUES = """
    assert_true bigint binary boolean cast coalesce date decimal double equal_null float if ifnull int isnotnull isnull nullif nvl nvl2
    smallint string timestamp tinyint try_cast typeof
"""
_TIMES = """
    add_months date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc dateadd datediff datepart day dayname
    dayofmonth dayofweek dayofyear extract from_unixtime from_utc_timestamp hour last_day make_date make_timestamp minute month monthname
    months_between next_day quarter second timestamp_micros timestamp_millis timestamp_seconds timestampadd timestampdiff to_date
    to_timestamp to_utc_timestamp trunc try_to_timestamp unix_date unix_micros unix_millis unix_seconds weekday weekofyear year
"""
_COLLECTIONS = """
    aggregate array array_append array_compact array_contains array_distinct array_except array_insert array_intersect array_join
    array_max array_min array_position array_prepend array_remove array_repeat array_size array_sort array_union arrays_overlap arrays_zip
    cardinality element_at exists filter flatten forall get map map_concat map_contains_key map_entries map_filter map_from_arrays
    map_from_entries map_keys map_values named_struct reduce sequence size slice sort_array str_to_map struct transform transform_keys
    transform_values try_element_at zip_with
"""
_FUNCTIONS = frozenset(" ".join([_TEXTS, _NUMBERS, _ANY_VALUES, _TIMES, _COLLECTIONS]).split())
_BEFORE_BRACKETS = (
    *("AND", "OR", "NOT", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "BETWEEN", "IS", "DISTINCT", "FROM", "ANY", "SOME"),
    *("ALL", "DIV", "CASE", "WHEN", "THEN", "ELSE", "DECIMAL", "DEC", "NUMERIC", "CHAR", "VARCHAR"),
)
"""Words before brackets that are no calls."""
_REFUSED_WORDS = (
    *("CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP", "CURRENT_USER", "SESSION_USER", "USER"),
    *("CURRENT_CATALOG", "CURRENT_DATABASE", "SELECT", "USING"),
)
"""Words with a value of the moment, without brackets; and those of queries, among them ``(MAP … USING 'script' FROM …)``."""
_QUERY_WORDS = (*QUERY_WORDS, "MAP", "REDUCE")
_SIGNS = frozenset("()+-*/%=<>!&|^~[],.:")


@dataclass(frozen=True, slots=True)
class CheckedRows:
    """Rows with the columns that say whether conditions are true.

    Args:
        config: of the table, with the constraints that are left to the writer.
        checks: of these columns.
    """

    rows: DataFrame
    config: TableConfig
    checks: tuple[RowCheck, ...] = ()


def checked_by_server(rows: DataFrame, config: TableConfig) -> CheckedRows:
    """Return the rows with a column for each CHECK constraint that only Spark can evaluate.

    Args:
        rows: columns are matched by name.

    Raises the errors of `server_condition`; `Unsupported` for a constraint on a column that the writer fills in.
    """
    texts = ((check, engine_text_in(check.condition)) for check in constraints_of(config).checks)
    engines = [(check, engine) for check, engine in texts if engine is not None]
    keys = {f"{_CONSTRAINTS}{check.name}" for check, _ in engines} & config.metadata.configuration.keys()
    if len(keys) < len(engines) or not engines:  # an invariant is not a property
        return CheckedRows(rows, config)
    conditions = [server_condition(rows.sparkSession, config, check, engine) for check, engine in engines]
    shaped, names = _fitted(rows, config, engines), rows.columns
    checks = tuple(
        RowCheck(f"{_COLUMN}{number}", check.name, check.text, _read(engine)) for number, (check, engine) in enumerate(engines)
    )
    flags = [condition.alias(check.column) for check, condition in zip(checks, conditions, strict=True)]
    left = {key: text for key, text in config.metadata.configuration.items() if key not in keys}
    rows = shaped.select(*map(sf.col, map(quote_identifier, names)), *flags)
    return CheckedRows(rows, replace(config, metadata=replace(config.metadata, configuration=left)), checks)


def _read(engine: EngineText) -> tuple[str, ...]:
    """Return the columns that an expression reads, each once."""
    return tuple(dict.fromkeys(reference.path[0] for reference in engine.reads))


def _fitted(rows: DataFrame, config: TableConfig, engines: Sequence[tuple[Check, EngineText]]) -> DataFrame:
    """Return the rows with the columns that conditions read as the table stores them; missing ones are null."""
    present = {name.lower(): name for name in rows.columns}
    columns = {name: sf.col(quote_identifier(name)) for name in rows.columns}
    for check, engine in engines:
        for name in _read(engine):
            field, own = config.schema.field(name), present.get(name.lower())
            if own is None and is_filled_in(field):
                why = f"the rows lack the column {name}, which the writer fills in after the check. Give the rows that column"
                raise _not_evaluated(config, check, why)
            values = (sf.lit(None) if own is None else sf.col(quote_identifier(own))).cast(
                to_spark_schema(StructType((field,)))[0].dataType
            )
            is_partition_text = field.name in config.partition_columns and str(field.data_type) == "string"
            columns[own or name] = sf.nullif(values, sf.lit("")) if is_partition_text else values
    return rows.select(*(values.alias(name) for name, values in columns.items()))


def server_condition(spark: SparkSession, config: TableConfig, check: Check, engine: EngineText) -> Column:
    """Return the condition of a CHECK constraint as a column that is never null.

    Raises:
        Unsupported: a text that does not pass the lists, or a setting under which it would have another meaning.
        InvalidRequest: another error of `cannot_enforce`.
    """
    subject = f"CHECK constraint '{check.name}'"
    columns = [config.schema.field(reference.path[0]) for reference in engine.reads]
    if any(is_collated(column) or has_char(column) for column in columns):
        raise cannot_enforce(config.table, subject, engine)
    refused = next(refused_parts(engine.text), None)
    if refused is not None:
        raise _not_evaluated(config, check, f"'{refused}' is not in the list of what a table may use there. Use another function")
    for name, value in (*MEANING.items(), (BACKSLASHES, "false")):
        actual = setting_of(spark, name)
        if actual is not None and actual.lower() != value.lower():
            raise _not_evaluated(config, check, f"it has another meaning with {name} = {actual}. Set it to {value}")
    return sf.coalesce(sf.expr(str(engine)), sf.lit(False))


def _not_evaluated(config: TableConfig, check: Check, why: str) -> Unsupported:
    """Return the error of a constraint that the server does not evaluate; `why` ends with the remedy."""
    return Unsupported(
        f"Table {config.table}: CHECK constraint '{check.name}' ({check.text[:200]}) cannot be evaluated in a session of Spark Connect: "
        f"{why}, or write in a classic session. Nothing was written.",
        code="DELTA_UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT",
        table=config.table,
        expression=check.text[:1000],
    )


def refused_parts(text: str) -> Iterator[str]:
    """Yield the parts of an expression that are not in the lists: calls, words, signs and comments."""
    yield from (mark for mark in ("--", "/*") if mark in text)
    tokens = tokenize(text)
    for place, token in enumerate(tokens):
        before, after = (tokens[place - 1] if place else None), (tokens[place + 1] if place + 1 < len(tokens) else None)
        if _is_refused(before, token, after):
            yield token.text


def _is_refused(before: Token | None, token: Token, after: Token | None) -> bool:
    if token.is_word(*_REFUSED_WORDS) or (token.kind == SYMBOL and not set(token.text) <= _SIGNS):
        return True
    opens = after is not None and after.is_symbol("(")
    if (
        before is not None
        and before.is_symbol("(")
        and token.is_word(*_QUERY_WORDS)
        and not (opens and token.is_word("MAP", "REDUCE"))
    ):
        return True
    is_call = opens and token.name is not None and not token.is_word(*_BEFORE_BRACKETS)
    return is_call and (str(token.name).lower() not in _FUNCTIONS or (before is not None and before.is_symbol(".")))
