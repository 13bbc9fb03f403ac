"""The two JVM classes that represent a stream in Spark: the table in a plan, and its source in a query.

    readStream ──► StreamingRelation(StreamedTable) ──each query that starts──► TableStream ──each trigger──► latestOffset, getBatch

Both are thin: they store only constants and call Python for the rest. Offsets are transferred as JSON. If a call returns a JVM exception,
the class throws it, so that the query reports exactly its message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.compiled import compiled_object
from tahoe.spark.versions.source_names import name_argument, name_of_table
from tahoe.spark.versions.streaming_package import streaming_package

__all__ = ["package_of_streams", "streamed_table", "streaming_relation", "table_stream"]


_DATA_SOURCE = "org.apache.spark.sql.execution.datasources.DataSource"


def table_stream(jvm: Jvm, text: str, schema: JavaObject, limit: JavaObject, answers: Any) -> JavaObject:
    """Return the source by which one query reads a table.

    Args:
        text: the name of the source in the query's progress.
        limit: the ``ReadLimit`` of a trigger without a limit.
        answers: a ``scala.Function3`` that is called with a method name, and the JSON of a start and an end or null.
    """
    return compiled_object(jvm, "TableStream", text, schema, limit, answers, offsets=package_of_streams(jvm))


def streamed_table(jvm: Jvm, session: JavaObject, options: Mapping[str, str], name: JavaObject, create: Any) -> JavaObject:
    """Return a streamed table for a plan.

    Args:
        name: an ``Option`` with the user's name for the source, if Spark supports names.
        create: a ``scala.Function2`` that creates a `table_stream` for a query, from the query's folder for the source, and its id.
    """
    parameters = jvm.reflected(_DATA_SOURCE).getConstructors()[0].getParameterTypes()
    java_session = f"({parameters[0].getName()}) session"
    return compiled_object(
        jvm,
        "StreamedTable",
        session,
        jvm.map(options),
        name,
        create,
        name_argument=name_argument(parameters),
        session=java_session,
    )


def streaming_relation(jvm: Jvm, table: JavaObject, schema: JavaObject) -> JavaObject:
    """Return the plan leaf for a `streamed_table`."""
    attributes = jvm.catalyst("types.DataTypeUtils").toAttributes(schema)
    relation = f"{package_of_streams(jvm)}.StreamingRelation"
    parameters = jvm.reflected(relation).getConstructors()[0].getParameterTypes()
    return jvm.java_class(relation)(table, "delta", attributes, *name_of_table(table, parameters))


def package_of_streams(jvm: Jvm) -> str:
    """Return `streaming_package` of this Spark."""
    loader = jvm.java_class("org.apache.spark.util.Utils").getContextOrSparkClassLoader
    return str(jvm.cached("the package of streaming", lambda: streaming_package(loader())))
