package tahoe;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.spark.JobExecutionStatus;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkJobInfo;
import org.apache.spark.SparkStageInfo;
import org.apache.spark.SparkStatusTracker;
import org.apache.spark.internal.io.FileCommitProtocol;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.*;
import org.apache.spark.sql.execution.streaming.ManifestFileCommitProtocol;

// Spark's command that writes files. Tasks write under the final names, and the files of the job are those that successful tasks report to the
// driver: one line each, with URL, size and time. Executors get Spark's own protocol for file sinks, as they do not have this class.
public class ReportedFiles extends InsertIntoHadoopFsRelationCommand {
  private static final long LONGEST_WAIT_MS = 10000;
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
    SparkContext context = session.sparkContext();
    String tag = "tahoe-write-" + java.util.UUID.randomUUID();
    boolean done = false;
    context.addJobTag(tag);
    try {
      write(session, rows);
      done = true;
    } finally {
      context.removeJobTag(tag);
      if (!done) awaitTasks(context.statusTracker(), tag);
    }
    return (scala.collection.immutable.Seq) scala.collection.immutable.Nil$.MODULE$;
  }

  private void write(org.apache.spark.sql.classic.SparkSession session, org.apache.spark.sql.execution.SparkPlan rows) {
    Configuration configuration = session.sessionState().newHadoopConfWithOptions(options());
    String path = outputPath().toString();
    FileFormatWriter.write(
        session, rows, fileFormat(), new Reports(path, lines),
        new FileFormatWriter.OutputSpec(path, staticPartitions(), outputColumns()), configuration, partitionColumns(), bucketSpec(),
        ((scala.collection.immutable.List) scala.collection.immutable.Nil$.MODULE$).$colon$colon(basicWriteJobStatsTracker(configuration)),
        options(), 0, FileFormatWriter.write$default$12());
  }

  // Spark reports a failed job while tasks of it still run. They would create files after the caller has deleted those of the job. VACUUM
  // deletes the files of tasks that run longer than this waits.
  private static void awaitTasks(SparkStatusTracker tracker, String tag) {
    long end = System.currentTimeMillis() + LONGEST_WAIT_MS;
    try {
      while (isRunning(tracker, tag) && System.currentTimeMillis() < end) Thread.sleep(20);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private static boolean isRunning(SparkStatusTracker tracker, String tag) {
    int[] jobs = tracker.getJobIdsForTag(tag);
    for (int i = 0; i < jobs.length; i++) {
      scala.Option job = tracker.getJobInfo(jobs[i]);
      if (job.isEmpty()) continue;
      if (((SparkJobInfo) job.get()).status() == JobExecutionStatus.RUNNING) return true;
      int[] stages = ((SparkJobInfo) job.get()).stageIds();
      for (int j = 0; j < stages.length; j++) {
        scala.Option stage = tracker.getStageInfo(stages[j]);
        if (stage.isDefined() && ((SparkStageInfo) stage.get()).numActiveTasks() > 0) return true;
      }
    }
    return false;
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
