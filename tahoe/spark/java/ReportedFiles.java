package tahoe;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.spark.internal.io.FileCommitProtocol;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.*;
import org.apache.spark.sql.execution.streaming.ManifestFileCommitProtocol;

// Spark's command that writes files. Tasks write under the final names, and the files of the job are those that successful tasks report to the
// driver: one line each, with URL, size and time. Executors get Spark's own protocol for file sinks, as they do not have this class.
public class ReportedFiles extends InsertIntoHadoopFsRelationCommand {
  private final java.util.List lines;

  public ReportedFiles(
      org.apache.hadoop.fs.Path path,
      scala.collection.immutable.Map staticPartitions,
      boolean ifPartitionNotExists,
      scala.collection.immutable.Seq partitionColumns,
      scala.Option buckets,
      FileFormat format,
      scala.collection.immutable.Map options,
      LogicalPlan query,
      org.apache.spark.sql.SaveMode mode,
      scala.Option table,
      scala.Option index,
      scala.collection.immutable.Seq names,
      java.util.List lines) {
    super(path, staticPartitions, ifPartitionNotExists, partitionColumns, buckets, format, options, query, mode, table, index, names);
    this.lines = lines;
  }

  public scala.collection.immutable.Seq run(
      org.apache.spark.sql.classic.SparkSession session, org.apache.spark.sql.execution.SparkPlan rows) {
    Configuration configuration = session.sessionState().newHadoopConfWithOptions(options());
    String path = outputPath().toString();
    FileFormatWriter.write(
        session, rows, fileFormat(), new Reports(path, lines),
        new FileFormatWriter.OutputSpec(path, staticPartitions(), outputColumns()), configuration, partitionColumns(), bucketSpec(),
        ((scala.collection.immutable.List) scala.collection.immutable.Nil$.MODULE$).$colon$colon(basicWriteJobStatsTracker(configuration)),
        options(), 0, FileFormatWriter.write$default$12());
    return (scala.collection.immutable.Seq) scala.collection.immutable.Nil$.MODULE$;
  }

  public InsertIntoHadoopFsRelationCommand withNewChildInternal(LogicalPlan query) {
    return new ReportedFiles(
        outputPath(), staticPartitions(), ifPartitionNotExists(), partitionColumns(), bucketSpec(), fileFormat(), options(), query, mode(),
        catalogTable(), fileIndex(), outputColumnNames(), lines);
  }

  public scala.collection.immutable.Seq otherCopyArgs() {
    return ((scala.collection.immutable.List) scala.collection.immutable.Nil$.MODULE$).$colon$colon(lines);
  }

  private static class Reports extends ManifestFileCommitProtocol {
    private final String path;
    private final java.util.List lines;

    Reports(String path, java.util.List lines) {
      super("0", path);
      this.path = path;
      this.lines = lines;
    }

    public Object writeReplace() { return new ManifestFileCommitProtocol("0", path); }

    public void setupJob(JobContext job) {}

    public void onTaskCommit(FileCommitProtocol.TaskCommitMessage message) {}

    public void abortJob(JobContext job) {}

    // Of each task exactly one attempt has a message here, whichever attempts wrote files.
    public void commitJob(JobContext job, scala.collection.immutable.Seq messages) {
      StringBuilder all = new StringBuilder();
      for (scala.collection.Iterator each = messages.iterator(); each.hasNext();) {
        Object reported = ((FileCommitProtocol.TaskCommitMessage) each.next()).obj();
        for (scala.collection.Iterator files = ((scala.collection.Iterable) reported).iterator(); files.hasNext();) {
          scala.Product file = (scala.Product) files.next();
          all.append(file.productElement(0)).append(' ').append(file.productElement(1)).append(' ').append(file.productElement(3));
          all.append('\n');
        }
      }
      lines.add(all.toString());
    }
  }
}
