package tahoe;

import org.apache.spark.sql.execution.streaming.Source;

public class StreamedTable extends org.apache.spark.sql.execution.datasources.DataSource {
  private final scala.Function3 create;

  public StreamedTable(org.apache.spark.sql.SparkSession session, scala.collection.immutable.Map options, scala.Option name,
      scala.Function3 create) {
    super({{session}}, "delta", none(), scala.Option.empty(), none(), scala.Option.empty(), options, scala.Option.empty(){{name_argument}});
    this.create = create;
  }

  private static scala.collection.immutable.Seq none() {
    return (scala.collection.immutable.Seq) org.apache.spark.api.python.PythonUtils.toSeq(new java.util.ArrayList());
  }

  public Source createSource(String metadataPath) {
    Object source = null;
    try {
      // Only this method, on the query's own thread, knows the query of the source.
      String query = org.apache.spark.SparkContext.getOrCreate().getLocalProperty("sql.streaming.queryId");
      source = create.apply(metadataPath, query, this);
    } catch (java.lang.reflect.UndeclaredThrowableException error) {
      org.apache.spark.unsafe.Platform.throwException(error.getCause());
    }
    if (source instanceof Throwable) org.apache.spark.unsafe.Platform.throwException((Throwable) source);
    return (Source) source;
  }

  // Spark checks whether the source is a file source, which has metadata columns: it must not look for a class with that name.
  public Class providingClass() { return getClass(); }
  public Object providingInstance() { return this; }
}
