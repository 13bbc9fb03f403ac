package tahoe;

import java.nio.ByteBuffer;
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.unsafe.types.UTF8String;

public class BulkObjects {
  public BulkObjects() {}

  public Object directories(Object packed, int files, int groups, String types, String zone, long blockSize) throws Exception {
    ByteBuffer content = content(packed);
    UTF8String[] urls = texts(content, files);
    long[] sizes = longs(content, files);
    long[] times = longs(content, files);
    int[] stops = ints(content, groups);
    InternalRow[] values = rows(content, groups, types, zone);
    FileStatus[] all = new FileStatus[files];
    for (int i = 0; i < files; i++) {
      org.apache.hadoop.fs.Path path = new org.apache.hadoop.fs.Path(java.net.URI.create(urls[i].toString()));
      all[i] = new FileStatus(sizes[i], false, 1, blockSize, times[i], path);
    }
    Object[] result = new Object[groups];
    for (int i = 0; i < groups; i++) {
      FileStatus[] members = (FileStatus[]) java.util.Arrays.copyOfRange(all, i == 0 ? 0 : stops[i - 1], stops[i]);
      result[i] = PartitionDirectory.apply(values[i], members);
    }
    return org.apache.spark.api.python.PythonUtils.toSeq(java.util.Arrays.asList(result));
  }

  public byte[] matches(Object packed, int count, String types, String zone, BasePredicate predicate) throws Exception {
    InternalRow[] rows = rows(content(packed), count, types, zone);
    byte[] matches = new byte[count];
    for (int i = 0; i < count; i++) matches[i] = (byte) (predicate.eval(rows[i]) ? 1 : 0);
    return matches;
  }

  public Object typed(Object packed, int count, String types, String zone) throws Exception {
    return org.apache.spark.api.python.PythonUtils.toSeq(java.util.Arrays.asList((Object[]) rows(content(packed), count, types, zone)));
  }

  public Object[] texts(Object packed, int count) throws Exception { return texts(content(packed), count); }

  private static ByteBuffer content(Object packed) throws Exception {
    byte[] bytes = packed instanceof byte[] ? (byte[]) packed
        : java.nio.file.Files.readAllBytes(new java.io.File((String) packed).toPath());
    return ByteBuffer.wrap(bytes).order(java.nio.ByteOrder.LITTLE_ENDIAN);
  }

  private static InternalRow[] rows(ByteBuffer content, int count, String types, String zone) {
    String[] kinds = types.isEmpty() ? new String[0] : types.split("\n");
    InternalRow[] rows = new InternalRow[count];
    if (kinds.length == 0) {
      java.util.Arrays.fill(rows, InternalRow.empty());
      return rows;
    }
    UTF8String[][] columns = new UTF8String[kinds.length][];
    for (int i = 0; i < kinds.length; i++) columns[i] = texts(content, count);
    UnsafeProjection projection = projection(kinds, zone);
    for (int i = 0; i < count; i++) {
      Object[] values = new Object[kinds.length];
      for (int j = 0; j < kinds.length; j++) values[j] = columns[j][i];
      rows[i] = projection.apply(new GenericInternalRow(values)).copy();
    }
    return rows;
  }

  private static UnsafeProjection projection(String[] kinds, String zone) {
    java.util.ArrayList parts = new java.util.ArrayList();
    DataType string = DataType.fromJson("\"string\"");
    for (int i = 0; i < kinds.length; i++) {
      DataType type = DataType.fromJson(kinds[i]);
      Expression part = new BoundReference(i, string, true);
      if (!type.equals(string)) part = new Cast(part, type, scala.Option.apply(zone), EvalMode.ANSI());
      parts.add(part);
    }
    return InterpretedUnsafeProjection.createProjection(org.apache.spark.api.python.PythonUtils.toSeq(parts));
  }

  private static UTF8String[] texts(ByteBuffer content, int count) {
    int[] ends = ints(content, count);
    byte[] present = new byte[count];
    content.get(present);
    byte[] bytes = new byte[count == 0 ? 0 : ends[count - 1]];
    content.get(bytes);
    UTF8String[] texts = new UTF8String[count];
    for (int i = 0; i < count; i++) {
      int start = i == 0 ? 0 : ends[i - 1];
      if (present[i] != 0) texts[i] = UTF8String.fromBytes(bytes, start, ends[i] - start);
    }
    return texts;
  }

  private static int[] ints(ByteBuffer content, int count) {
    int[] values = new int[count];
    content.asIntBuffer().get(values);
    content.position(content.position() + 4 * count);
    return values;
  }

  private static long[] longs(ByteBuffer content, int count) {
    long[] values = new long[count];
    content.asLongBuffer().get(values);
    content.position(content.position() + 8 * count);
    return values;
  }
}
