package tahoe;

import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.datasources.*;

public class DeltaSink implements org.apache.spark.sql.execution.streaming.Sink {
  private final String text;
  private final scala.Function4 batches;

  public DeltaSink(String text, scala.Function4 batches) { this.text = text; this.batches = batches; }

  public void addBatch(long number, org.apache.spark.sql.Dataset rows) {
    Dataset data = (Dataset) rows;
    // Spark passes the id of the sink's query only in a local property of this thread.
    String query = data.sparkSession().sparkContext().getLocalProperty("sql.streaming.queryId");
    Object failure = batches.apply(query, Long.valueOf(number), data, scans(data.queryExecution().analyzed()));
    if (failure != null) org.apache.spark.unsafe.Platform.throwException((Throwable) failure);
  }

  private static String scans(org.apache.spark.sql.catalyst.plans.logical.LogicalPlan plan) {
    StringBuilder all = new StringBuilder();
    scala.collection.Iterator leaves = plan.collectLeaves().iterator();
    while (leaves.hasNext()) {
      Object leaf = leaves.next();
      if (!(leaf instanceof LogicalRelation)) continue;
      Object relation = ((LogicalRelation) leaf).relation();
      if (!(relation instanceof HadoopFsRelation)) continue;
      scala.collection.Iterator roots = ((HadoopFsRelation) relation).location().rootPaths().iterator();
      while (roots.hasNext()) all.append(all.length() == 0 ? "" : "\n").append(roots.next().toString());
    }
    return all.toString();
  }

  public String name() { return text; }
  public String toString() { return text; }
}
