package tahoe;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.sources.*;
import org.apache.spark.sql.types.*;

// Parquet files whose greatest floats may leave NaN out. To Spark, NaN is greater than every number. Arrow and parquet-rs write 1.0 as the
// greatest of 1.0 and NaN, and Spark's reader would skip that row group for f > 5. This format does not pass such filters to the reader; Spark
// applies every filter to the rows anyway. Executors get the reader of a plain ParquetFileFormat, as they do not have this class.
public class NanSafeParquet extends ParquetFileFormat {
  public NanSafeParquet() {}

  public scala.Function1 buildReaderWithPartitionValues(
      org.apache.spark.sql.SparkSession session,
      StructType data,
      StructType partitions,
      StructType required,
      scala.collection.immutable.Seq filters,
      scala.collection.immutable.Map options,
      org.apache.hadoop.conf.Configuration configuration) {
    List safe = new ArrayList();
    for (scala.collection.Iterator each = filters.iterator(); each.hasNext();) {
      Filter filter = (Filter) each.next();
      if (isSafe(filter, data)) safe.add(filter);
    }
    return new ParquetFileFormat().buildReaderWithPartitionValues(
        session, data, partitions, required, (scala.collection.immutable.Seq) PythonUtils.toSeq(safe), options, configuration);
  }

  private static boolean isSafe(Filter filter, StructType data) {
    if (filter instanceof And) return isSafe(((And) filter).left(), data) && isSafe(((And) filter).right(), data);
    if (filter instanceof Or) return isSafe(((Or) filter).left(), data) && isSafe(((Or) filter).right(), data);
    return isFalseForNan(filter) || !readsFloats(filter, data);
  }

  // Row groups without a matching number can be skipped: NaN does not fulfill the filter either.
  private static boolean isFalseForNan(Filter filter) {
    if (filter instanceof EqualTo) return !isNan(((EqualTo) filter).value());
    if (filter instanceof LessThan) return !isNan(((LessThan) filter).value());
    if (filter instanceof LessThanOrEqual) return !isNan(((LessThanOrEqual) filter).value());
    return filter instanceof IsNull || filter instanceof IsNotNull;
  }

  private static boolean isNan(Object value) {
    return (value instanceof Double && ((Double) value).isNaN()) || (value instanceof Float && ((Float) value).isNaN());
  }

  private static boolean readsFloats(Filter filter, StructType data) {
    String[] references = filter.references();
    for (int i = 0; i < references.length; i++) {
      boolean isKnown = false;
      StructField[] fields = data.fields();
      for (int j = 0; j < fields.length; j++) {
        if (!isOf(fields[j].name(), references[i])) continue;
        isKnown = true;
        if (hasFloats(fields[j].dataType())) return true;
      }
      if (!isKnown) return true;
    }
    return false;
  }

  // A reference is a column or a path of fields; names with special characters are in back-ticks.
  private static boolean isOf(String name, String reference) {
    String quoted = "`" + name.replace("`", "``") + "`";
    return reference.equalsIgnoreCase(name) || reference.equalsIgnoreCase(quoted)
        || reference.toLowerCase().startsWith(name.toLowerCase() + ".") || reference.toLowerCase().startsWith(quoted.toLowerCase() + ".");
  }

  private static boolean hasFloats(DataType type) {
    if (type instanceof FloatType || type instanceof DoubleType) return true;
    if (!(type instanceof StructType)) return false;
    StructField[] fields = ((StructType) type).fields();
    for (int i = 0; i < fields.length; i++) if (hasFloats(fields[i].dataType())) return true;
    return false;
  }
}
