"""Access to the JVM: classes by name, and Scala collections. Classes that moved between Spark versions are in `tahoe.spark.versions`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaClass, JavaGateway, JavaMember, JavaObject
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import Column, DataFrame, SparkSession

from tahoe.base.exceptions import Unsupported
from tahoe.schema.types import DataType, StructField, StructType

__all__ = ["JavaObject", "Jvm", "active_session", "handle_of", "is_classic"]

_CATALYST = "org.apache.spark.sql.catalyst"
_DATASOURCES = "org.apache.spark.sql.execution.datasources"


def is_classic(spark: SparkSession) -> bool:
    """Return whether the session has its own JVM; a Spark Connect session has none."""
    return hasattr(spark, "_jsparkSession")


def handle_of(spark: SparkSession, session: JavaObject) -> SparkSession:
    """Return PySpark's object for another JVM session of the same context, without enabling Delta in it.

    `tahoe_startup` wraps the constructor and reads the settings of each session. This one may be a copy whose settings Spark is creating
    now, and which waits for the caller.
    """
    handle = SparkSession.__new__(SparkSession)
    inspect.unwrap(SparkSession.__init__)(handle, spark.sparkContext, session)
    return handle


def active_session(spark: SparkSession) -> SparkSession:
    """Return this thread's active JVM session, or `spark` if there is none: a stream has its own session with the settings at its start.

    PySpark's `getActiveSession` returns the same session for all threads of a process.
    """
    active = Jvm.of(spark).java_class("org.apache.spark.sql.classic.SparkSession").getActiveSession()
    if not active.isDefined() or active.get().equals(spark._jsparkSession):
        return spark
    return handle_of(spark, active.get())


class Jvm:
    """Access to the JVM of one Spark application.

    Args:
        spark: a classic session.
    """

    def __init__(self, spark: SparkSession) -> None:
        if not is_classic(spark):
            raise Unsupported(
                "A Spark Connect session has no JVM of its own; use the portable data source: format('delta') alone.",
                code="TAHOE_SPARK_CONNECT",
            )
        self.gateway: JavaObject = spark.sparkContext._gateway
        self._classes: dict[str, JavaObject] = {}
        self._cached: dict[str, JavaObject] = {}
        ensure_callback_server_started(self.gateway)  # type: ignore[no-untyped-call]

    @classmethod
    def of(cls, spark: SparkSession) -> Jvm:
        """Return the access to this session's JVM; there is one for each Spark application."""
        gateway = spark.sparkContext._gateway
        if gateway not in _BRIDGES:
            _BRIDGES[gateway] = cls(spark)
        return _BRIDGES[gateway]

    def java_class(self, name: str) -> JavaObject:
        """Return the class with this full name: call it to construct an object, use its attributes for static methods."""
        if name not in self._classes:
            self._classes[name] = _JavaClass(name, self.gateway._gateway_client)
        return self._classes[name]

    def catalyst(self, name: str) -> JavaObject:
        """Return the class with this name in Spark's package of expressions, plans and rules."""
        return self.java_class(f"{_CATALYST}.{name}")

    def datasources(self, name: str) -> JavaObject:
        """Return the class with this name in Spark's package of file scans."""
        return self.java_class(f"{_DATASOURCES}.{name}")

    def reflected(self, name: str) -> JavaObject:
        """Return the `java.lang.Class` with this full name, loaded as Spark loads its own classes."""
        # `java_class` returns a py4j object; a method with a `Class` parameter needs an object of the JVM.
        return self.java_class("org.apache.spark.util.Utils").classForName(name, True, False)

    # -- Scala -------------------------------------------------------------------------------------------------------------

    @cached_property
    def _python_utils(self) -> JavaObject:
        return self.java_class("org.apache.spark.api.python.PythonUtils")

    def seq(self, *items: object) -> JavaObject:
        """Return a Scala `Seq`."""
        java_list = self.java_class("java.util.ArrayList")()
        for item in items:
            java_list.add(item)
        return self._python_utils.toSeq(java_list)

    def seq_of(self, array: JavaObject) -> JavaObject:
        """Return a Scala `Seq` over a Java array of objects, without one call per element."""
        return self._python_utils.toSeq(self.java_class("java.util.Arrays").asList(array))

    def map(self, values: Mapping[str, str]) -> JavaObject:
        """Return an immutable Scala `Map`."""
        java_map = self.java_class("java.util.HashMap")()
        for key, value in values.items():
            java_map.put(key, value)
        return self._python_utils.toScalaMap(java_map)

    def dictionary(self, scala_map: JavaObject) -> dict[str, str]:
        """Convert a Scala `Map` of strings in two calls, whatever its size; py4j's own iteration takes a call per entry and ends with an
        exception.
        """
        if scala_map.isEmpty():
            return {}
        keys, values = (str(part.mkString("\0")).split("\0") for part in (scala_map.keys(), scala_map.values()))
        if len(keys) == len(values) == scala_map.size():
            return dict(zip(keys, values, strict=True))
        converted = self.java_class("scala.jdk.javaapi.CollectionConverters").asJava(scala_map)
        return {str(key): str(value) for key, value in converted.items()}

    def options(self, options: JavaObject) -> dict[str, str]:
        """Return the entries of a ``CaseInsensitiveStringMap`` in their original spelling."""
        return self.dictionary(self._python_utils.toScalaMap(options.asCaseSensitiveMap()))

    def option(self, value: object) -> JavaObject:
        """Return a Scala `Option`: ``Some`` of the value, or ``None`` for None."""
        return self.java_class("scala.Option").apply(value)

    def array(self, element_class: str, items: Sequence[object]) -> JavaObject:
        """Return a Java array; only for a few items."""
        java_array = self.gateway.new_array(self.java_class(element_class), len(items))
        for position, item in enumerate(items):
            java_array[position] = item
        return java_array

    # -- Spark SQL ---------------------------------------------------------------------------------------------------------

    def data_type(self, json: str) -> JavaObject:
        """Return the Spark type for a type's JSON text."""
        return self.java_class("org.apache.spark.sql.types.DataType").fromJson(json)

    def column(self, expression: JavaObject) -> Column:
        """Return a Catalyst expression as a PySpark column."""
        from pyspark.sql.classic.column import Column as ClassicColumn

        return ClassicColumn(self.java_class("org.apache.spark.sql.classic.ExpressionUtils").column(expression))

    def expression(self, column: Column) -> JavaObject:
        """Return a PySpark column as a Catalyst expression."""
        return self.java_class("org.apache.spark.sql.classic.ExpressionUtils").expression(column._jc)

    def frame(self, session: JavaObject, plan: JavaObject, spark: SparkSession) -> DataFrame:
        """Return a DataFrame of a logical plan that runs in the given JVM session."""
        from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

        return ClassicDataFrame(self.java_class("org.apache.spark.sql.classic.Dataset").ofRows(session, plan), spark)

    def parsed_expression(self, session: JavaObject, text: str) -> JavaObject:
        """Parse a text to a Catalyst expression with the parser and the settings of a JVM session.

        A parser reads the settings of the thread's active session, whichever session it belongs to.
        """
        sessions = self.java_class("org.apache.spark.sql.classic.SparkSession")
        before = sessions.getActiveSession()
        sessions.setActiveSession(session)
        try:
            return session.sessionState().sqlParser().parseExpression(text)
        finally:
            if before.isDefined():
                sessions.setActiveSession(before.get())
            else:
                sessions.clearActiveSession()

    def can_cast(self, rule: str, source: DataType, target: DataType) -> bool:
        """Return whether Spark casts values between two types by a rule of its class ``Cast``, such as ``canUpCast`` or
        ``canANSIStoreAssign``.
        """
        types = (StructType((StructField("value", data_type),)).to_json() for data_type in (source, target))
        before, after = (self.data_type(text).apply("value").dataType() for text in types)
        return bool(getattr(self.catalyst("expressions.Cast"), rule)(before, after))

    def cached(self, name: str, make: Callable[[], JavaObject]) -> JavaObject:
        """Return a JVM object that is created once per JVM."""
        return self._cached.get(name) or self._cached.setdefault(name, make())


_BRIDGES: WeakKeyDictionary[JavaGateway, Jvm] = WeakKeyDictionary()


class _JavaClass(JavaClass):  # type: ignore[misc]
    """A class that queries the JVM once, not at each call, whether a name is one of its static methods."""

    def __getattr__(self, name: str) -> Any:
        member = super().__getattr__(name)
        if isinstance(member, JavaMember):
            setattr(self, name, member)
        return member
