"""CHECK constraints and generated columns that only Spark can evaluate, in sessions of Spark Connect.

    text ─► all of its calls, words and signs are in lists ─► the server computes a column of the rows ─► the writer raises the error

A text comes from a table, and a client has no Catalyst to inspect its tree (`tahoe.spark.jvm.stored_trees`). So the text itself must pass:
it calls only functions of Spark that depend on nothing but their arguments and the session's time zone, and has no query.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from tahoe.base.exceptions import Unsupported
from tahoe.expr.parse.lexer import SYMBOL
from tahoe.expr.tree.expression import EngineText, Expression, engine_text_in, references_of
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.protocol.column_values.default_values import Default
from tahoe.protocol.config import TableConfig
from tahoe.protocol.constraints import (
    GENERATED,
    Check,
    Generated,
    base_columns,
    cannot_enforce,
    check_generated_type,
    check_new,
    constraints_of,
    is_filled_in,
    spark_text,
)
from tahoe.protocol.engine_rules import without_rules
from tahoe.protocol.properties import CONSTRAINT_PREFIX
from tahoe.schema.collations import is_collated
from tahoe.schema.text_limits import has_char
from tahoe.schema.types import StructType
from tahoe.spark.executors.data_source_tasks import RowCheck
from tahoe.spark.jvm.local_rows import local_frame
from tahoe.spark.jvm.translate import from_spark_schema, to_spark_schema
from tahoe.spark.write.enforce import session_time_zone
from tahoe.spark.write.fitting import nullable_schema
from tahoe.spark.write.stored_expressions import MEANING, other_settings
from tahoe.sql.dialect import QUERY_WORDS, Token, tokenize

_FLAG = "__tahoe_check_"
_CHECK_REFUSED = "DELTA_UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT"
_GENERATED_REFUSED = "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"
_DEFAULT_REFUSED = "INVALID_DEFAULT_VALUE.NOT_CONSTANT"
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
_OF_THE_MOMENT = """
    curdate current_catalog current_database current_date current_schema current_timestamp current_timezone current_user localtimestamp now
    session_user unix_timestamp user
"""
_FUNCTIONS = frozenset(" ".join([_TEXTS, _NUMBERS, _ANY_VALUES, _TIMES, _COLLECTIONS]).split())
_OF_DEFAULTS = _FUNCTIONS | frozenset(f"{_OF_THE_MOMENT} parse_json to_json".split())
_BEFORE_BRACKETS = (
    *("AND", "OR", "NOT", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "BETWEEN", "IS", "DISTINCT", "FROM", "ANY", "SOME"),
    *("ALL", "DIV", "CASE", "WHEN", "THEN", "ELSE", "DECIMAL", "DEC", "NUMERIC", "CHAR", "VARCHAR"),
)
"""Words before brackets that are no calls."""
_WORDS_OF_QUERIES = ("SELECT", "USING")
"""Among them those of ``(MAP … USING 'script' FROM …)``."""
_WORDS_OF_THE_MOMENT = (
    *("CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP", "CURRENT_USER", "SESSION_USER", "USER"),
    *("CURRENT_CATALOG", "CURRENT_DATABASE"),
)
"""Words with a value of the moment, without brackets."""
_QUERY_WORDS = (*QUERY_WORDS, "MAP", "REDUCE")
_SIGNS = frozenset("()+-*/%=<>!&|^~[],.:")


@dataclass(frozen=True, slots=True)
class ServerText:
    """A condition or a value that the server evaluates.

    Args:
        subject: its name, for messages.
        text: as the table states it.
        code: of the error that refuses to evaluate it.
        columns: the columns that it needs, each once.
        is_default: whether it is the default of a column, which may be a value of the moment, such as the user's name.
    """

    subject: str
    text: str
    code: str
    expression: Expression
    columns: tuple[str, ...] = ()
    is_default: bool = False

    @classmethod
    def of_check(cls, check: Check) -> ServerText:
        """Return the condition of a CHECK constraint."""
        subject = f"CHECK constraint '{check.name}'"
        return cls(subject, check.text, _CHECK_REFUSED, check.condition, _read(check.condition))

    @classmethod
    def of_generated(cls, rule: Generated) -> ServerText:
        """Return the value of a generated column."""
        subject = f"the generated column '{rule.column.name}'"
        return cls(subject, rule.text, _GENERATED_REFUSED, rule.value, _read(rule.value))

    @classmethod
    def of_default(cls, default: Default) -> ServerText:
        """Return the default of a column."""
        subject = f"the default value of column '{default.column.name}'"
        return cls(subject, default.text, _DEFAULT_REFUSED, default.value, is_default=True)


def _read(expression: Expression) -> tuple[str, ...]:
    return tuple(dict.fromkeys(reference.path[0] for reference in references_of(expression)))


@dataclass(frozen=True, slots=True)
class CheckedRows:
    """Rows with the columns that say whether conditions are true.

    Args:
        config: of the table, with the rules that are left to the writer.
        checks: of these columns.
    """

    rows: DataFrame
    config: TableConfig
    checks: tuple[RowCheck, ...] = ()


@dataclass(frozen=True, slots=True)
class _Condition:
    """A condition on rows, and its name and text in errors.

    Args:
        is_true: never null.
    """

    source: ServerText
    is_true: Column
    name: str
    text: str


def checked_by_server(rows: DataFrame, config: TableConfig) -> CheckedRows:
    """Return the rows with the generated columns that only Spark can evaluate, and with a column for each such condition.

    A generated column that the rows have is compared with its expression, which is a condition too.

    Args:
        rows: columns are matched by name.

    Raises the errors of `server_column`; `Unsupported` for an expression over a column that the writer fills in.
    """
    spark = rows.sparkSession
    constraints = constraints_of(config, session_time_zone(spark))
    checks = [check for check in constraints.checks if engine_text_in(check.condition)]
    keys = {f"{CONSTRAINT_PREFIX}{check.name}" for check in checks} & config.metadata.configuration.keys()
    generated = [rule for rule in constraints.generated if engine_text_in(rule.value)]
    if len(keys) < len(checks) or not (checks or generated):  # an invariant is not a property
        return CheckedRows(rows, config)
    columns = rows.columns
    # A condition may also read a generated column that Tahoe would compute after it.
    read = {name for check in checks for name in _read(check.condition)}
    missing = _missing(columns, [rule for rule in constraints.generated if rule in generated or rule.column.name in read])
    written = [*columns, *missing]
    completed, at_hand = _completed(rows, columns, config, missing)
    conditions = [_check(spark, config, check) for check in checks]
    conditions += [_comparison(spark, config, rule) for rule in generated if rule.column.name not in missing]
    fitted = _selected(completed, _fitted(at_hand, config, [condition.source for condition in conditions]))
    flags = {f"{_FLAG}{number}": condition for number, condition in enumerate(conditions)}
    return CheckedRows(
        fitted.select(
            *(sf.col(quote_identifier(name)) for name in written), *(flags[name].is_true.alias(name) for name in flags)
        ),
        without_rules(config, keys, {*missing, *(rule.column.name for rule in generated)}),
        tuple(RowCheck(name, each.name, each.text, each.source.columns) for name, each in flags.items()),
    )


def with_generated(rows: DataFrame, config: TableConfig, names: Collection[str]) -> DataFrame:
    """Return the rows with these generated columns, as far as the rows lack them; raises the errors of `server_column`.

    Args:
        names: of any columns; only generated ones count.
    """
    columns, generated = rows.columns, constraints_of(config, session_time_zone(rows.sparkSession)).generated
    missing = _missing(columns, [rule for rule in generated if rule.column.name in names])
    return _completed(rows, columns, config, missing)[0]


def _missing(columns: Iterable[str], rules: Iterable[Generated]) -> dict[str, ServerText]:
    """Return the expressions of the generated columns that rows with these columns lack, by their names."""
    present = {name.lower() for name in columns}
    return {rule.column.name: ServerText.of_generated(rule) for rule in rules if rule.column.name.lower() not in present}


def _completed(
    rows: DataFrame, columns: Sequence[str], config: TableConfig, missing: Mapping[str, ServerText]
) -> tuple[DataFrame, list[str]]:
    """Return the rows with missing generated columns, and the names of all their columns.

    Args:
        columns: the names of the rows' columns, which are a request to the server.
    """
    if not missing:
        return rows, list(columns)
    fitted = _fitted(columns, config, missing.values())
    values = [_value(rows.sparkSession, config, name, text).alias(name) for name, text in missing.items()]
    return _selected(rows, fitted).select("*", *values), [*fitted, *missing]


def check_new_by_server(spark: SparkSession, config: TableConfig) -> None:
    """Check a new table like `check_new`; the server determines the types of generated columns that only Spark can evaluate.

    Raises the errors of `check_new` and of `server_column`.
    """
    check_new(config, columns_by_spark=True)
    for rule in constraints_of(config).generated:
        if engine_text_in(rule.value) is None:
            continue
        shape = local_frame(spark, (), to_spark_schema(nullable_schema(base_columns(config.schema))))
        text = ServerText.of_generated(rule)
        try:
            schema = shape.select(server_column(spark, config, text).alias(rule.column.name)).schema
        except AnalysisException as error:
            if not str(error.getCondition()).startswith("UNRESOLVED_COLUMN"):
                raise
            unknown = EngineText(rule.text, (), "DELTA_COLUMN_NOT_FOUND", str(error).partition(" SQLSTATE")[0])
            raise cannot_enforce(config.table, text.subject, unknown) from error
        check_generated_type(rule, from_spark_schema(schema).fields[0].data_type, config.table)


def _check(spark: SparkSession, config: TableConfig, check: Check) -> _Condition:
    source = ServerText.of_check(check)
    return _Condition(source, server_condition(spark, config, source), check.name, check.text)


def _comparison(spark: SparkSession, config: TableConfig, rule: Generated) -> _Condition:
    """Return the condition that the values of a generated column are those of its expression."""
    name, text = rule.column.name, ServerText.of_generated(rule)
    own = quote_identifier(name)
    is_equal = sf.col(own).eqNullSafe(_value(spark, config, name, text))
    return _Condition(replace(text, columns=(*text.columns, name)), is_equal, GENERATED, f"{own} <=> {rule.text}")


def _value(spark: SparkSession, config: TableConfig, name: str, text: ServerText) -> Column:
    """Return the value of a generated column as the table stores it."""
    return stored_value(server_column(spark, config, text), config, name)


def stored_value(values: Column, config: TableConfig, name: str) -> Column:
    """Return values of a column as the table stores them."""
    field = config.schema.field(name)
    stored = values.cast(to_spark_schema(StructType((field,)))[0].dataType)
    is_partition_text = field.name in config.partition_columns and str(field.data_type) == "string"
    return sf.nullif(stored, sf.lit("")) if is_partition_text else stored


def _fitted(names: Sequence[str], config: TableConfig, texts: Iterable[ServerText]) -> dict[str, Column]:
    """Return the columns of rows, those that expressions read as the table stores them; missing ones are null."""
    present = {name.lower(): name for name in names}
    columns = {name: sf.col(quote_identifier(name)) for name in names}
    for text in texts:
        for name in text.columns:
            own = present.get(name.lower())
            if own is None and is_filled_in(config.schema.field(name)):
                why = f"the rows lack the column {name}, which the writer fills in afterwards. Give the rows that column"
                raise _not_evaluated(config, text, why)
            columns[own or name] = stored_value(sf.lit(None) if own is None else sf.col(quote_identifier(own)), config, name)
    return columns


def _selected(rows: DataFrame, columns: Mapping[str, Column]) -> DataFrame:
    return rows.select(*(values.alias(name) for name, values in columns.items()))


def server_condition(spark: SparkSession, config: TableConfig, text: ServerText) -> Column:
    """Return the condition of a CHECK constraint as a column that is never null; raises the errors of `server_column`."""
    return sf.coalesce(server_column(spark, config, text), sf.lit(False))


def server_column(spark: SparkSession, config: TableConfig, text: ServerText) -> Column:
    """Return a condition or a value as a column.

    Raises:
        Unsupported: a text that does not pass the lists, or a setting under which it would have another meaning.
        InvalidRequest: another error of `cannot_enforce`.
    """
    engine = engine_text_in(text.expression)
    if engine is not None:
        if any(is_collated(column) or has_char(column) for column in map(config.schema.field, text.columns)):
            raise cannot_enforce(config.table, text.subject, engine)
        refused = next(refused_parts(engine.text, is_default=text.is_default), None)
        if refused is not None:
            raise _not_evaluated(
                config, text, f"'{refused}' is not in the list of what a table may use there. Use another function"
            )
    for name, value in other_settings(spark):
        raise _not_evaluated(config, text, f"it has another meaning with {name} = {value}. Set it to {MEANING[name]}")
    return sf.expr(spark_text(text.expression) if engine is None else str(engine))


def _not_evaluated(config: TableConfig, text: ServerText, why: str) -> Unsupported:
    """Return the error of an expression that the server does not evaluate; `why` ends with the remedy."""
    return Unsupported(
        f"Table {config.table}: {text.subject} ({text.text[:200]}) cannot be evaluated in a session of Spark Connect: {why}, or write in a "
        "classic session. Nothing was written.",
        code=text.code,
        table=config.table,
        expression=text.text[:1000],
    )


def refused_parts(text: str, *, is_default: bool = False) -> Iterator[str]:
    """Yield the parts of an expression that are not in the lists: calls, words, signs and comments.

    Args:
        is_default: whether it may be a value of the moment.
    """
    words = _WORDS_OF_QUERIES if is_default else (*_WORDS_OF_QUERIES, *_WORDS_OF_THE_MOMENT)
    functions = _OF_DEFAULTS if is_default else _FUNCTIONS
    yield from (mark for mark in ("--", "/*") if mark in text)
    tokens = tokenize(text)
    for place, token in enumerate(tokens):
        before, after = (tokens[place - 1] if place else None), (tokens[place + 1] if place + 1 < len(tokens) else None)
        is_word = token.is_word(*words)
        if (
            is_word
            or _is_refused(before, token, after)
            or (_is_call(token, after) and not _may_be_called(before, token, functions))
        ):
            yield token.text


def _is_refused(before: Token | None, token: Token, after: Token | None) -> bool:
    """Whether a token is a sign that is not in the list, or begins a query in brackets."""
    if token.kind == SYMBOL and not set(token.text) <= _SIGNS:
        return True
    begins_brackets = before is not None and before.is_symbol("(")
    is_function = _opens(after) and token.is_word("MAP", "REDUCE")
    return begins_brackets and token.is_word(*_QUERY_WORDS) and not is_function


def _is_call(token: Token, after: Token | None) -> bool:
    return _opens(after) and token.name is not None and not token.is_word(*_BEFORE_BRACKETS)


def _may_be_called(before: Token | None, token: Token, functions: Collection[str]) -> bool:
    return str(token.name).lower() in functions and not (before is not None and before.is_symbol("."))


def _opens(after: Token | None) -> bool:
    return after is not None and after.is_symbol("(")
