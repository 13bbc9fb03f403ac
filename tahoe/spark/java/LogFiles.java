package tahoe;

import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.types.*;

public class LogFiles implements org.apache.spark.sql.execution.datasources.FileIndex {
  private final String text;
  private final scala.collection.immutable.Seq roots;
  private final StructType partitions;
  private final scala.Function4 answers;
  private volatile Long size = null;

  public LogFiles(String text, String root, String partitions, scala.Function4 answers) {
    this.text = text;
    this.roots = org.apache.spark.api.python.PythonUtils.toSeq(
        java.util.Arrays.asList(new Object[] {new Path(root), new Path(root + "/_delta_log")}));
    this.partitions = (StructType) DataType.fromJson(partitions);
    this.answers = answers;
  }

  private Object answer(String question, Object partitionFilters, Object dataFilters, String texts) {
    try {
      return answers.apply(question, partitionFilters, dataFilters, texts);
    } catch (java.lang.reflect.UndeclaredThrowableException error) {
      org.apache.spark.unsafe.Platform.throwException(error.getCause());
      return null;
    }
  }

  public scala.collection.immutable.Seq listFiles(scala.collection.immutable.Seq partition, scala.collection.immutable.Seq data) {
    return (scala.collection.immutable.Seq) answer("listFiles", partition, data, texts(partition) + "\n" + texts(data));
  }

  // All filters as one text, because getting each takes Python two calls.
  private static String texts(scala.collection.immutable.Seq filters) {
    StringBuilder all = new StringBuilder();
    scala.collection.Iterator each = filters.iterator();
    while (each.hasNext()) all.append(all.length() == 0 ? "" : "\t").append(((TreeNode) each.next()).toJSON());
    return all.toString();
  }

  // One text, because each element of an array takes Python a call.
  public String filesOf(scala.collection.immutable.Seq partition, scala.collection.immutable.Seq data) {
    return (String) answer("filesOf", partition, data, texts(partition) + "\n" + texts(data));
  }

  public String[] inputFiles() { return (String[]) answer("inputFiles", null, null, null); }

  public long sizeInBytes() {
    if (size == null) size = Long.valueOf(((Number) answer("sizeInBytes", null, null, null)).longValue());
    return size.longValue();
  }

  public scala.collection.immutable.Seq rootPaths() { return roots; }
  public StructType partitionSchema() { return partitions; }
  public void refresh() {}
  public scala.Option metadataOpsTimeNs() { return scala.Option.empty(); }
  public boolean isTimeTravel() { return false; }
  public String toString() { return text; }
  public int hashCode() { return text.hashCode(); }
  public boolean equals(Object other) { return other instanceof LogFiles && text.equals(((LogFiles) other).text); }
}
