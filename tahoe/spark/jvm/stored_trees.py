"""Parses the text of a stored expression to a Spark tree, and checks it against lists of the expressions that a table may use.

    text ─► Spark's parser ─► every node is in the syntax list, every function is built in ─► bound to the table's columns ─► every
    bound node is Spark's own, deterministic, and neither an aggregate nor a query

The text comes from the table, so nothing is bound, and no function is looked up, before the parser's tree has passed. Exactly the checked
tree is evaluated; its text is not parsed again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.expr.tree.common_types import BOOLEAN
from tahoe.expr.tree.expression import EngineText
from tahoe.schema.types import DataType, StructType
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.local_rows import local_frame
from tahoe.spark.jvm.translate import from_spark_schema, to_spark_schema

Use = Literal["GENERATED_COLUMN", "CHECK_CONSTRAINT", "DEFAULT"]
_EXPRESSIONS, _ANALYSIS = "org.apache.spark.sql.catalyst.expressions.", "org.apache.spark.sql.catalyst.analysis."


def _classes(package: str, names: str) -> frozenset[str]:
    return frozenset(f"{package}{name}" for name in names.split())


_SYNTAX = _classes(
    _EXPRESSIONS,
    """
    Literal Alias Cast CaseWhen If CreateNamedStruct CreateStruct LambdaFunction UnresolvedNamedLambdaVariable NamedArgumentExpression
    Collate UnresolvedCollation And Or Not EqualTo EqualNullSafe GreaterThan GreaterThanOrEqual LessThan LessThanOrEqual In IsNull IsNotNull
    Like ILike RLike LikeAll LikeAny NotLikeAll NotLikeAny Concat
    Add Subtract Multiply Divide IntegralDivide Remainder UnaryMinus UnaryPositive
    BitwiseAnd BitwiseOr BitwiseXor BitwiseNot ShiftLeft ShiftRight ShiftRightUnsigned
    TimestampAdd TimestampDiff Overlay StringLocate StringTrim StringTrimLeft StringTrimRight StringTrimBoth Substring
    CurrentDate CurrentTime CurrentTimestamp CurrentUser
    """,
) | _classes(_ANALYSIS, "UnresolvedAttribute UnresolvedFunction UnresolvedExtractValue")
"""The nodes that Spark's parser creates for columns, constants, calls, lambdas and operators."""
_XPATH = "xpath xpath_boolean xpath_double xpath_float xpath_int xpath_long xpath_number xpath_short xpath_string"
_NEVER = {
    **dict.fromkeys(("java_method", "reflect", "try_reflect"), "it runs any code by its name"),
    **dict.fromkeys(("from_protobuf", "from_xml", "schema_of_xml", "to_protobuf"), "it reads any file by its path"),
    **dict.fromkeys(_XPATH.split(), "its XML may refer to other documents"),
    "aes_encrypt": "it gives another value each time",
}
"""Spark functions that no table may call, with the reasons."""
_OF_THE_MOMENT = _classes(
    _EXPRESSIONS,
    """
    CurrentBatchTimestamp CurrentCatalog CurrentDatabase CurrentDate CurrentPath CurrentTime CurrentTimeZone CurrentTimestamp
    CurrentTimestampNanos CurrentTimestampPrecision CurrentUser LocalTimestamp Now SparkVersion
    """,
)
"""Functions with one value within a query and another one in the next query."""
_USER_DEFINED = _classes(_EXPRESSIONS, "PythonUDF PythonUDAF ScalaUDF VariableReference")
_QUERIES = _classes(_EXPRESSIONS, "Exists InSubquery ListQuery ScalarSubquery")
_AGGREGATE = f"{_EXPRESSIONS}aggregate.AggregateExpression"
_CODES = {
    "UDF": "DELTA_UDF_IN_{use}",
    "NON_DETERMINISTIC": "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_{use}",
    "AGGREGATE": "DELTA_AGGREGATE_IN_{use}",
    "QUERY": "DELTA_UNSUPPORTED_EXPRESSION_{use}",
    "UNSUPPORTED": "DELTA_UNSUPPORTED_EXPRESSION_{use}",
}
_CODES_OF_CREATE = dict.fromkeys(("UDF", "NON_DETERMINISTIC", "QUERY"), "UNSUPPORTED_EXPRESSION_GENERATED_COLUMN")
_CODES_OF_DEFAULTS = {
    "UDF": "INVALID_DEFAULT_VALUE.UNRESOLVED_EXPRESSION",
    "NON_DETERMINISTIC": "INVALID_DEFAULT_VALUE.NON_DETERMINISTIC",
    "AGGREGATE": "INVALID_DEFAULT_VALUE.NOT_CONSTANT",
    "QUERY": "INVALID_DEFAULT_VALUE.SUBQUERY_EXPRESSION",
    "UNSUPPORTED": "INVALID_DEFAULT_VALUE.NOT_CONSTANT",
}


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored expression and its context.

    Args:
        table: the table's URL, for messages.
        subject: the element that it defines, for messages.
        reads: the columns that it may read.
        by_statement: whether a Spark statement defines it now. Errors then have Spark's codes if Spark checks the expression before
            delta-spark.
    """

    engine: EngineText
    use: Use
    table: str
    subject: str
    reads: StructType
    by_statement: bool = False

    def refused(self, kind: str, why: str) -> Unsupported:
        """Return the error for a rejected tree."""
        codes = _CODES_OF_DEFAULTS if self.use == "DEFAULT" else _CODES
        if self.use == "GENERATED_COLUMN" and self.by_statement:
            codes = _CODES | _CODES_OF_CREATE
        return Unsupported(
            f"Table {self.table}: {self.subject} ({self.engine.text[:200]}) cannot be evaluated: {why}. Nothing was written. Use Spark's "
            "deterministic built-in functions over the row's own columns.",
            code=codes[kind].format(use=self.use),
            table=self.table,
            expression=self.engine.text[:1000],
        )

    def unknown_function(self, name: str) -> InvalidRequest:
        """Return the error for an unknown function."""
        is_default = self.use == "DEFAULT"
        return InvalidRequest(
            f"Table {self.table}: {self.subject} ({self.engine.text[:200]}) calls {name}, which is no function of Spark. Correct the name.",
            code="INVALID_DEFAULT_VALUE.UNRESOLVED_EXPRESSION" if is_default else "UNRESOLVED_ROUTINE",
            table=self.table,
            function=name,
        )

    def not_accepted(self, error: AnalysisException) -> InvalidRequest:
        """Return the error for an expression that Spark's parser or analyzer rejects."""
        return InvalidRequest(
            f"Table {self.table}: Spark does not accept {self.subject} ({self.engine.text[:200]}). {error}",
            code=self._code_of(error),
            table=self.table,
            expression=self.engine.text[:1000],
        )

    def _code_of(self, error: AnalysisException) -> str | None:
        if self.use == "DEFAULT":
            return "INVALID_DEFAULT_VALUE.UNRESOLVED_EXPRESSION"
        code = error.getCondition()
        if code == "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN":
            return "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT"
        if self.by_statement or code is None or not code.startswith("UNRESOLVED_COLUMN"):
            return code
        return f"DELTA_INVALID_{self.use}_REFERENCES"


@dataclass(frozen=True, slots=True)
class Bound:
    """A stored expression over the columns of its table.

    Args:
        tree: the checked tree of Spark's parser.
        data_type: the type of its values.
    """

    tree: JavaObject
    data_type: DataType


class StoredTrees:
    """Checks stored expressions for one session.

    Args:
        session: the JVM session that defines the meaning of a text (`tahoe.spark.write.stored_expressions`).
    """

    def __init__(self, spark: SparkSession, session: JavaObject) -> None:
        self._spark, self._session, self._jvm = spark, session, Jvm.of(spark)

    def bound(self, stored: Stored) -> Bound:
        """Return the checked expression.

        Raises:
            Unsupported: it contains nodes that are not in the lists; the code is delta-spark's.
            InvalidRequest: Spark rejects it; the code is Spark's.
        """
        tree = self._parsed(stored)
        nodes = _nodes(tree)
        for node in nodes:
            if node["class"] == _AGGREGATE:
                raise stored.refused("AGGREGATE", "it is an aggregate of rows")
            if node["class"] in _QUERIES:
                raise stored.refused("QUERY", "it is a query")
            if node["class"] not in _SYNTAX:
                raise stored.refused("UNSUPPORTED", f"{_short(node)} is no column, constant, function or operator")
        for name in sorted({str(node["nameParts"])[1:-1].lower() for node in nodes if _short(node) == "UnresolvedFunction"}):
            self._check_function(stored, name)
        return self._analyzed(stored, tree)

    def _parsed(self, stored: Stored) -> JavaObject:
        if "${" in stored.engine.text:
            raise stored.refused("UNSUPPORTED", "Spark would replace '${' by a variable of its own")
        try:
            return self._jvm.parsed_expression(self._session, stored.engine.text)
        except ParseException as error:
            raise stored.not_accepted(error) from error

    def _check_function(self, stored: Stored, name: str) -> None:
        if name in _NEVER:
            raise stored.refused("UNSUPPORTED", f"the function '{name}' is not on the list, because {_NEVER[name]}")
        identifier, functions = self._jvm.catalyst("FunctionIdentifier").apply(name), self._session.sessionState().catalog()
        builtin = self._builtin_functions.lookupFunction(identifier)
        if builtin.isEmpty():
            # Binding the function to identify it would load the code of a catalog function.
            if ", " not in name and not functions.functionExists(identifier):
                raise stored.unknown_function(name)
            raise stored.refused("UDF", f"{name.replace(', ', '.')} is a function of the user, which other writers do not have")
        info = functions.lookupFunctionInfo(identifier)
        if str(info.getSource()) != "built-in" or str(info.getClassName()) != str(builtin.get().getClassName()):
            raise stored.refused(
                "UDF",
                f"{name} is not Spark's built-in function in this session; drop the function {name} that the session registered",
            )

    @cached_property
    def _builtin_functions(self) -> JavaObject:
        return self._jvm.catalyst("analysis.FunctionRegistry").builtin()

    def _analyzed(self, stored: Stored, tree: JavaObject) -> Bound:
        rows = local_frame(self._spark, (), to_spark_schema(stored.reads))
        frame = self._jvm.frame(self._session, rows._jdf.queryExecution().analyzed(), self._spark)
        column = self._jvm.column(tree)
        try:
            analyzed = frame.where(column) if stored.use == "CHECK_CONSTRAINT" else frame.select(column.alias("value"))
        except AnalysisException as error:
            raise stored.not_accepted(error) from error
        self._check_bound(stored, analyzed)
        if stored.use == "CHECK_CONSTRAINT":
            return Bound(tree, BOOLEAN)
        return Bound(tree, from_spark_schema(analyzed.schema).field("value").data_type)

    def _check_bound(self, stored: Stored, analyzed: DataFrame) -> None:
        plan = analyzed._jdf.queryExecution().analyzed()
        if str(plan.nodeName()) == "Aggregate":
            raise stored.refused("AGGREGATE", "it is an aggregate of rows")
        if str(plan.nodeName()) not in ("Project", "Filter") or str(plan.child().nodeName()) != "LocalRelation":
            raise stored.refused("UNSUPPORTED", f"it does not give one value for each row ({plan.nodeName()})")
        bound = plan.expressions().head()
        nodes = _nodes(bound)
        if any(node["class"] in _USER_DEFINED or not node["class"].startswith(_EXPRESSIONS) for node in nodes):
            raise stored.refused("UDF", "it has a function or a variable of the user, which other writers do not have")
        if not bound.deterministic():
            raise stored.refused("NON_DETERMINISTIC", "it is not deterministic")
        if stored.use == "GENERATED_COLUMN":
            _refuse_moments(stored, nodes)


def _refuse_moments(stored: Stored, nodes: Iterable[Mapping[str, str]]) -> None:
    for node in nodes:
        if node["class"] in _OF_THE_MOMENT:
            raise stored.refused(
                "UNSUPPORTED", f"{_short(node)} is not a function of the row, and another value for the next writer"
            )


def _nodes(tree: JavaObject) -> list[dict[str, str]]:
    """Return every node of a tree, as its class and its fields."""
    nodes: list[dict[str, str]] = json.loads(str(tree.toJSON()))
    return nodes


def _short(node: Mapping[str, str]) -> str:
    return node["class"].rsplit(".", 1)[-1]
