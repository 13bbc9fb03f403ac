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
    Object result = null;
    try {
      result = answers.apply(question, start, end);
    } catch (java.lang.reflect.UndeclaredThrowableException error) {
      Platform.throwException(error.getCause());
    }
    if (result instanceof Throwable) Platform.throwException((Throwable) result);
    return result;
  }

  private static org.apache.spark.sql.execution.streaming.Offset offset(Object json) {
    return json == null ? null : new {{offsets}}.SerializedOffset((String) json);
  }

  public org.apache.spark.sql.connector.read.streaming.Offset latestOffset(
      org.apache.spark.sql.connector.read.streaming.Offset start, ReadLimit limit) {
    String all = limit instanceof ReadAllAvailable ? "all" : "some";
    return offset(answer("latest_offset", start == null ? null : start.json(), all));
  }

  public org.apache.spark.sql.connector.read.streaming.Offset reportLatestOffset() { return offset(answer("newest", null, null)); }

  public org.apache.spark.sql.Dataset getBatch(scala.Option start, org.apache.spark.sql.execution.streaming.Offset end) {
    String from = start.isEmpty() ? null : ((org.apache.spark.sql.execution.streaming.Offset) start.get()).json();
    return (org.apache.spark.sql.Dataset) answer("batch", from, end.json());
  }

  public Map metrics(Optional consumed) {
    String json = consumed.isPresent() ? ((org.apache.spark.sql.connector.read.streaming.Offset) consumed.get()).json() : null;
    Map metrics = new LinkedHashMap();
    String[] lines = ((String) answer("metrics", json, null)).split("\n");
    for (int i = 0; i + 1 < lines.length; i += 2) metrics.put(lines[i], lines[i + 1]);
    return metrics;
  }

  public void prepareForTriggerAvailableNow() { answer("prepare_for_available_now", null, null); }
  public void commit(org.apache.spark.sql.execution.streaming.Offset end) { answer("commit", null, end.json()); }
  public void commit(org.apache.spark.sql.connector.read.streaming.Offset end) { answer("commit", null, end.json()); }
  public void stop() {}
  public StructType schema() { return schema; }
  public ReadLimit getDefaultReadLimit() { return limit; }
  public org.apache.spark.sql.connector.read.streaming.Offset deserializeOffset(String json) { return offset(json); }
  public String toString() { return text; }

  // Spark calls these methods for sources without admission control.
  public scala.Option getOffset() { throw new UnsupportedOperationException("latestOffset is called instead of getOffset"); }
  public org.apache.spark.sql.connector.read.streaming.Offset initialOffset() {
    throw new UnsupportedOperationException("a new stream has no start");
  }
}
