"""Statements whose table or values are known only at execution: parameters, variables, and tables that a script creates first.

    DELETE FROM t WHERE id = :id          the table is known, Spark binds the value later
    ALTER TABLE IDENTIFIER(:t) …          the table depends on the value
    BEGIN CREATE TABLE t …; UPDATE t …    the previous statement creates the table

Such a statement is resolved at execution: on a Delta table it is the command of `tahoe.spark.statements`, otherwise Spark's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from py4j import java_gateway
from py4j.java_gateway import is_instance_of
from pyspark.sql import SparkSession

from tahoe.base.exceptions import Unsupported
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.records import copied, items
from tahoe.spark.names.entries import parts_of
from tahoe.spark.names.error_names import COMMANDS, with_classes
from tahoe.spark.statements.command import Command, Rows, as_plan
from tahoe.spark.statements.statement_types import SparkStatement
from tahoe.spark.statements.targets import UnresolvedName, analyzed, evaluated
from tahoe.spark.versions.members import field_names, has_field
from tahoe.sql.parameters import has_names

_NAMED_LATER = "PlanWithUnresolvedIdentifier"


def with_name(spark: SparkSession, plan: JavaObject, *parts: str) -> JavaObject:
    """Return the statement around a name from ``IDENTIFIER(…)`` (``PlanWithUnresolvedIdentifier``), with that name or another one.

    Args:
        parts: a name to use instead.

    Raises `UnresolvedName`.
    """
    name = parts or parts_of(spark, evaluated(spark, plan.identifierExpr()))
    return plan.planBuilder().apply(Jvm.of(spark).seq(*name), plan.children())


def planned(spark: SparkSession, plan: JavaObject, statement: SparkStatement, *, scripted: bool = False) -> JavaObject:
    """Return the plan that runs a statement; the original plan if the statement is not on a Delta table.

    Args:
        plan: from Spark's parser.
        scripted: whether earlier statements of a script may create its table.
    """
    parameters = _parameters(spark, plan)
    if scripted and _NAMED_LATER in str(plan.toString()):
        # Earlier statements may change the variables in its IDENTIFIER(…).
        return as_plan(spark, _deferred(spark, plan, statement, parameters))
    try:
        with with_classes(COMMANDS[""]):
            command = statement.command(spark, plan)
    except UnresolvedName as name:
        if name.is_absent and not scripted:
            return plan
        return as_plan(spark, _deferred(spark, plan, statement, parameters))
    if command is None:
        return plan
    return as_plan(spark, _deferred(spark, plan, statement, parameters, command) if parameters else command)


def with_late_name(statement: SparkStatement) -> SparkStatement:
    """Return the statement for plans that have the node ``PlanWithUnresolvedIdentifier`` around its name."""

    def resolve(renamed: SparkStatement, spark: SparkSession, plan: JavaObject) -> Command | None:
        return statement.resolve(renamed, spark, with_name(spark, plan))

    return replace(statement, resolve=resolve)


def in_script(jvm: Jvm, body: JavaObject, converted: Callable[[JavaObject], JavaObject]) -> JavaObject:
    """Return a SQL script with every statement in it replaced, at any depth of its blocks.

    Args:
        body: a ``CompoundBody``, or a part of one.
        converted: returns the plan for a statement; the same object if nothing changes.
    """
    if str(body.getClass().getSimpleName()) == "SingleStatement":
        plan = body.parsedPlan()
        new = converted(plan)
        return body if new is plan else _at_origin(jvm, body, parsedPlan=new)
    changed = {}
    for name, value in zip(field_names(body), items(body.productIterator().toSeq()), strict=True):
        new = _part(jvm, value, converted)
        if new is not value:
            changed[name] = new
    return _at_origin(jvm, body, **changed) if changed else body


# -- at execution ------------------------------------------------------------------------------------------------------------


def _deferred(
    spark: SparkSession,
    plan: JavaObject,
    statement: SparkStatement,
    parameters: Sequence[JavaObject],
    resolved: Command | None = None,
) -> Command:
    def run_with(values: Sequence[JavaObject]) -> Rows:
        bound = _bound(spark, plan, parameters, values) if parameters else plan
        try:
            command = statement.command(spark, bound)
        except UnresolvedName as name:
            if not name.is_absent:
                raise name.reason from None
            command = None
        if command is not None:
            return command.run()
        return Jvm.of(spark).frame(spark._jsparkSession, bound, spark).collect()

    if resolved is not None:
        return replace(resolved, parameters=tuple(parameters), run_with=run_with)
    # SHOW PARTITIONS has the columns of its table, which is not known yet: its rows cannot be returned, and must not fail a script.
    is_query = statement.is_query and bool(statement.columns)
    return Command(statement.node, lambda: None, statement.columns, tuple(parameters), run_with, is_query)


def _bound(spark: SparkSession, plan: JavaObject, parameters: Sequence[JavaObject], values: Sequence[JavaObject]) -> JavaObject:
    """Return the plan with its parameters replaced by values, by Spark's own rule."""
    jvm = Jvm.of(spark)
    names = [str(parameter.name()) for parameter in parameters] if _is_named(parameters[0]) else []
    query = _parameterized(jvm, plan, names, values)
    bound = jvm.catalyst("analysis.BindParameters").apply(query)
    if "ParameterizedQuery" in str(bound.nodeName()):
        raise Unsupported(
            "This version of Spark binds no parameters in WITH … MERGE. Write the values into the text, or name the source "
            "of WITH as a temporary view.",
            code="DELTA_OPERATION_NOT_ALLOWED",
        )
    return bound


def _parameterized(jvm: Jvm, plan: JavaObject, names: Sequence[str], values: Sequence[JavaObject]) -> JavaObject:
    """Return Spark's node for a plan with parameter values: by name, or by position if there are no names."""
    if names:
        return jvm.catalyst("analysis.NameParameterizedQuery")(plan, jvm.seq(*names), jvm.seq(*values))
    return jvm.catalyst("analysis.PosParameterizedQuery")(plan, jvm.seq(*values))


def _parameters(spark: SparkSession, plan: JavaObject) -> list[JavaObject]:
    """Return the parameters in a plan, each once: by name, or in their order. None if the parser has replaced them."""
    pattern = Jvm.of(spark).catalyst("trees.TreePattern").PARAMETER()
    by_key: dict[str | int, JavaObject] = {}
    parts = [plan]
    if str(plan.nodeName()) == "UnresolvedWith":  # the named queries of WITH are not in the tree
        parts = [plan.child(), *(relation._2() for relation in items(plan.cteRelations()))]
    for parameter in (parameter for part in parts for parameter in _in_plan(part, pattern)):
        by_key.setdefault(str(parameter.name()) if _is_named(parameter) else int(parameter.pos()), parameter)
    return [by_key[key] for key in sorted(by_key)]


def _in_plan(plan: JavaObject, pattern: JavaObject) -> Iterator[JavaObject]:
    if not plan.containsPattern(pattern):
        return
    for expression in items(plan.expressions()):
        yield from _in_expression(expression, pattern)
    for inner in (*items(plan.children()), *items(plan.innerChildren())):
        if _is_plan(inner):
            yield from _in_plan(inner, pattern)


def _in_expression(expression: JavaObject, pattern: JavaObject) -> Iterator[JavaObject]:
    if not expression.containsPattern(pattern):
        return
    if str(expression.getClass().getSimpleName()) in ("NamedParameter", "PosParameter"):
        yield expression
    for child in items(expression.children()):
        yield from _in_expression(child, pattern)
    if has_field(expression, "plan"):
        yield from _in_plan(expression.plan(), pattern)


def _is_plan(node: JavaObject) -> bool:
    return not str(node.getClass().getName()).startswith("org.apache.spark.sql.catalyst.expressions")


def _is_named(parameter: JavaObject) -> bool:
    return str(parameter.getClass().getSimpleName()) == "NamedParameter"


# -- scripts -----------------------------------------------------------------------------------------------------------------

_BLOCKS = ("SingleStatement", "CompoundBody", "ExceptionHandler")


def _part(jvm: Jvm, value: object, converted: Callable[[JavaObject], JavaObject]) -> Any:
    """Return a field of a block with its statements replaced; the same object if it contains none."""
    if not isinstance(value, java_gateway.JavaObject):
        return value
    name = str(value.getClass().getSimpleName())
    if name in _BLOCKS or name.endswith("Statement"):
        return in_script(jvm, value, converted)
    if is_instance_of(jvm.gateway, value, "scala.Option"):
        if value.isEmpty():
            return value
        old = value.get()
        new = _part(jvm, old, converted)
        return value if new is old else jvm.option(new)
    if is_instance_of(jvm.gateway, value, "scala.collection.immutable.Seq"):
        before = list(items(value))
        after = [_part(jvm, item, converted) for item in before]
        return value if all(old is new for old, new in zip(before, after, strict=True)) else jvm.seq(*after)
    return value


def _at_origin(jvm: Jvm, node: JavaObject, **changed: object) -> JavaObject:
    """Return a copy with the original's position in the text, which a new node gets from the creating thread."""
    current = jvm.catalyst("trees.CurrentOrigin")
    before = current.get()
    current.set(node.origin())
    try:
        return copied(node, **changed)
    finally:
        current.set(before)


# -- EXECUTE IMMEDIATE (`tahoe.spark.versions.execute_immediate`) --------------------------------------------------------------------------


def execute_immediate(
    spark: SparkSession, plan: JavaObject, delta_statement: Callable[[str], JavaObject | None], *, scripted: bool
) -> JavaObject:
    """Return the plan of the text's statement with bound parameters; `plan` itself for a text that is no statement on a Delta table.

    Args:
        plan: an `EXECUTE_IMMEDIATE`.
        delta_statement: returns the plan for a statement on a Delta table; None for other texts.
        scripted: whether earlier statements may change its variables. Spark then evaluates them, and a command that would change a Delta
            table without its log is rejected (`tahoe.spark.catalog.optimizer_rules`).
    """
    query = plan.query()
    if str(query.getClass().getSimpleName()) not in ("Left", "Right") or plan.targetVariables().nonEmpty():
        return plan
    if scripted and not query.isLeft():
        return plan
    try:
        text = str(query.value()) if query.isLeft() else evaluated(spark, query.value())
    except UnresolvedName:
        return plan
    statement = delta_statement(text)
    if statement is None:
        return plan
    arguments = list(items(plan.args()))
    names = [_name_of(argument) for argument in arguments] if has_names(text) else []
    if None in names:
        return plan  # Spark raises the error
    values = [analyzed(spark, argument.child() if _is_alias(argument) else argument) for argument in arguments]
    return _parameterized(Jvm.of(spark), statement, [str(name) for name in names], values) if values else statement


def _name_of(argument: JavaObject) -> str | None:
    """Return the name of a value behind USING, which a variable has without AS."""
    if _is_alias(argument):
        return str(argument.name())
    is_variable = str(argument.getClass().getSimpleName()) == "UnresolvedAttribute"
    return str(argument.nameParts().last()) if is_variable else None


def _is_alias(argument: JavaObject) -> bool:
    return str(argument.getClass().getSimpleName()) == "Alias"
