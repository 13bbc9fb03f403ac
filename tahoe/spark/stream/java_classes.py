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

_STREAM = """
package tahoe;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.connector.read.streaming.*;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.Platform;

public class TableStream implements org.apache.spark.sql.execution.streaming.Source, SupportsTriggerAvailableNow, ReportsSourceMetrics {
  private final String text;
  private final StructType schema;
  private final ReadLimit limit;
  private final scala.Function3 answers;

  public TableStream(String text, StructType schema, ReadLimit limit, scala.Function3 answers) {
    this.text = text;
    this.schema = schema;
    this.limit = limit;
    this.answers = answers;
  }

  private Object answer(String question, String start, String end) {
    Object found = null;
    try {
      found = answers.apply(question, start, end);
    } catch (java.lang.reflect.UndeclaredThrowableException error) {
      Platform.throwException(error.getCause());
    }
    if (found instanceof Throwable) Platform.throwException((Throwable) found);
    return found;
  }

  private static org.apache.spark.sql.execution.streaming.Offset offset(Object json) {
    return json == null ? null : new {offsets}.SerializedOffset((String) json);
  }

  public org.apache.spark.sql.connector.read.streaming.Offset latestOffset(
      org.apache.spark.sql.connector.read.streaming.Offset start, ReadLimit limit) {
    String all = limit instanceof ReadAllAvailable ? "all" : "some";
    return offset(answer("latest_offset", start == null ? null : start.json(), all));
  }

  public org.apache.spark.sql.connector.read.streaming.Offset reportLatestOffset() { return offset(answer("newest", null, null)); }

  public org.apache.spark.sql.Dataset getBatch(scala.Option start, org.apache.spark.sql.execution.streaming.Offset end) {
    if (isThrownAway()) {
      answer("resume", null, end.json());
      return null;
    }
    String from = start.isEmpty() ? null : ((org.apache.spark.sql.execution.streaming.Offset) start.get()).json();
    return (org.apache.spark.sql.Dataset) answer("batch", from, end.json());
  }

  // A query that is started again asks once more for the last batch that is done, for sources that learn something by it, and looks at
  // nothing of the answer. The commits of that batch may be gone by now, and it may be a whole table.
  private static boolean isThrownAway() {
    StackTraceElement[] callers = new Throwable().getStackTrace();
    for (int i = 0; i < callers.length; i++) if (callers[i].getMethodName().contains("populateStartOffsets")) return true;
    return false;
  }

  public Map metrics(Optional consumed) {
    String json = consumed.isPresent() ? ((org.apache.spark.sql.connector.read.streaming.Offset) consumed.get()).json() : null;
    Map found = new LinkedHashMap();
    String[] lines = ((String) answer("metrics", json, null)).split("\\n");
    for (int i = 0; i + 1 < lines.length; i += 2) found.put(lines[i], lines[i + 1]);
    return found;
  }

  public void prepareForTriggerAvailableNow() { answer("prepare_for_available_now", null, null); }
  public void commit(org.apache.spark.sql.execution.streaming.Offset end) { answer("commit", null, end.json()); }
  public void commit(org.apache.spark.sql.connector.read.streaming.Offset end) { answer("commit", null, end.json()); }
  public void stop() {}
  public StructType schema() { return schema; }
  public ReadLimit getDefaultReadLimit() { return limit; }
  public org.apache.spark.sql.connector.read.streaming.Offset deserializeOffset(String json) { return offset(json); }
  public String toString() { return text; }

  // Spark asks these of sources without admission control.
  public scala.Option getOffset() { throw new UnsupportedOperationException("latestOffset is asked in the place of getOffset"); }
  public org.apache.spark.sql.connector.read.streaming.Offset initialOffset() {
    throw new UnsupportedOperationException("a stream that begins is told by a start that is missing");
  }
}
"""

_TABLE = """
package tahoe;

import org.apache.spark.sql.execution.streaming.Source;

public class StreamedTable extends org.apache.spark.sql.execution.datasources.DataSource {
  private final scala.Function2 create;

  public StreamedTable(org.apache.spark.sql.SparkSession session, scala.collection.immutable.Map options, scala.Option name,
      scala.Function2 create) {
    super({session}, "delta", none(), scala.Option.empty(), none(), scala.Option.empty(), options, scala.Option.empty(){name});
    this.create = create;
  }

  private static scala.collection.immutable.Seq none() {
    return (scala.collection.immutable.Seq) org.apache.spark.api.python.PythonUtils.toSeq(new java.util.ArrayList());
  }

  public Source createSource(String metadataPath) {
    Object found = null;
    try {
      // Spark tells nobody else whose source it is, and only on the query's own thread.
      String query = org.apache.spark.SparkContext.getOrCreate().getLocalProperty("sql.streaming.queryId");
      found = create.apply(metadataPath, query);
    } catch (java.lang.reflect.UndeclaredThrowableException error) {
      org.apache.spark.unsafe.Platform.throwException(error.getCause());
    }
    if (found instanceof Throwable) org.apache.spark.unsafe.Platform.throwException((Throwable) found);
    return (Source) found;
  }

  // Spark asks whether the source is one of files, which have columns of metadata: no class of that name is to be looked for.
  public Class providingClass() { return getClass(); }
  public Object providingInstance() { return this; }
}
"""

_STREAMING = "org.apache.spark.sql.execution.streaming"
_DATA_SOURCE = "org.apache.spark.sql.execution.datasources.DataSource"


def table_stream(jvm: Jvm, text: str, schema: JavaObject, limit: JavaObject, answers: Any) -> JavaObject:
    """What one query reads a table by.

    Args:
        text: by which the query's progress names the source.
        limit: the ``ReadLimit`` of a trigger that names none.
        answers: a ``scala.Function3`` that is called with a question, and the JSON of a start and an end or null.
    """
    source = _STREAM.replace("{offsets}", _home_of_offsets(jvm))
    return compiled_object(jvm, "TableStream", lambda: ("TableStream", source), text, schema, limit, answers)


def streamed_table(jvm: Jvm, session: JavaObject, options: Mapping[str, str], name: JavaObject, create: Any) -> JavaObject:
    """What a plan has of a table that is read as a stream.

    Args:
        name: an ``Option`` of what the user called the source, which Spark knows from 4.3 on.
        create: a ``scala.Function2`` that makes a `table_stream` for a query; it is given the query's folder for the source, and its id.
    """
    parameters = jvm.reflected(_DATA_SOURCE).getConstructors()[0].getParameterTypes()
    source = _TABLE.replace("{name}", ", name" if len(parameters) > _PARAMETERS_BEFORE_NAMES else "")
    source = source.replace("{session}", f"({parameters[0].getName()}) session")
    return compiled_object(jvm, "StreamedTable", lambda: ("StreamedTable", source), session, jvm.map(options), name, create)


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
