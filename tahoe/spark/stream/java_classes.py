"""The two classes of the JVM that Spark meets of a stream: what a plan has of a table that is read as one, and what a query makes of it.

    readStream ──► StreamingRelation(StreamedTable) ──each query that starts──► TableStream ──each trigger──► latestOffset, getBatch

Both are thin: they hold what never changes and ask Python for the rest. Offsets cross the border as their JSON. An answer that is an
exception of the JVM is thrown, so that its message, and nothing of the way it came, is what the query says that it stopped with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.compiled import compiled_object

__all__ = ["streamed_table", "streaming_relation", "table_stream"]


_STREAMING = "org.apache.spark.sql.execution.streaming"
_DATA_SOURCE = "org.apache.spark.sql.execution.datasources.DataSource"


def table_stream(jvm: Jvm, text: str, schema: JavaObject, limit: JavaObject, answers: Any) -> JavaObject:
    """What one query reads a table by.

    Args:
        text: by which the query's progress names the source.
        limit: the ``ReadLimit`` of a trigger that names none.
        answers: a ``scala.Function3`` that is called with a question, and the JSON of a start and an end or null.
    """
    return compiled_object(jvm, "TableStream", text, schema, limit, answers, offsets=_home_of_offsets(jvm))


def streamed_table(jvm: Jvm, session: JavaObject, options: Mapping[str, str], name: JavaObject, create: Any) -> JavaObject:
    """What a plan has of a table that is read as a stream.

    Args:
        name: an ``Option`` of what the user called the source, which Spark knows from 4.3 on.
        create: a ``scala.Function2`` that makes a `table_stream` for a query; it is given the query's folder for the source, and its id.
    """
    parameters = jvm.reflected(_DATA_SOURCE).getConstructors()[0].getParameterTypes()
    named = ", name" if len(parameters) > _PARAMETERS_BEFORE_NAMES else ""
    java_session = f"({parameters[0].getName()}) session"
    return compiled_object(
        jvm, "StreamedTable", session, jvm.map(options), name, create, name_argument=named, session=java_session
    )


_PARAMETERS_BEFORE_NAMES = 8


def streaming_relation(jvm: Jvm, table: JavaObject, schema: JavaObject) -> JavaObject:
    """The leaf of a plan that stands for a `streamed_table`."""
    attributes = jvm.catalyst("types.DataTypeUtils").toAttributes(schema)
    relation = jvm.java_class(f"{_home_of_offsets(jvm)}.StreamingRelation")
    parameters = jvm.reflected(f"{_home_of_offsets(jvm)}.StreamingRelation").getConstructors()[0].getParameterTypes()
    if len(parameters) > _PARAMETERS_OF_UNNAMED:
        return relation(table, "delta", attributes, table.streamingSourceIdentifyingName())
    return relation(table, "delta", attributes)


_PARAMETERS_OF_UNNAMED = 3


def _home_of_offsets(jvm: Jvm) -> str:
    """The package that moved: ``…streaming`` in Spark 4.0, ``…streaming.runtime`` in 4.3."""
    moved = f"{_STREAMING}.runtime"
    return str(jvm.kept("the package of streaming", lambda: moved if _exists(jvm, f"{moved}.SerializedOffset") else _STREAMING))


def _exists(jvm: Jvm, name: str) -> bool:
    loader = jvm.java_class("org.apache.spark.util.Utils").getContextOrSparkClassLoader()
    return loader.getResource(f"{name.replace('.', '/')}.class") is not None
