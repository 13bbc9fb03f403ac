"""Many objects of the JVM, made there in one call.

One call through py4j costs about 0.1 ms, and more where Spark is at work, so what Spark wants for each file of a scan is made by a few
lines of Java over packed columns: texts as offsets, flags and bytes, numbers as they lie in memory.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from tempfile import TemporaryDirectory

import pyarrow as pa

from tahoe.lazy import pc
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.compiled import compiled_object

__all__ = ["directories", "rows_of", "rows_that_hold", "texts"]

_BLOCK_SIZE = 134_217_728
_MOST_BYTES_AS_TEXT = 2**18

_MANY = """
package tahoe;

import java.nio.ByteBuffer;
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.unsafe.types.UTF8String;

public class Many {
  public Many() {}

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
    Object[] made = new Object[groups];
    for (int i = 0; i < groups; i++) {
      FileStatus[] mine = (FileStatus[]) java.util.Arrays.copyOfRange(all, i == 0 ? 0 : stops[i - 1], stops[i]);
      made[i] = PartitionDirectory.apply(values[i], mine);
    }
    return org.apache.spark.api.python.PythonUtils.toSeq(java.util.Arrays.asList(made));
  }

  public byte[] holds(Object packed, int count, String types, String zone, BasePredicate predicate) throws Exception {
    InternalRow[] rows = rows(content(packed), count, types, zone);
    byte[] answers = new byte[count];
    for (int i = 0; i < count; i++) answers[i] = (byte) (predicate.eval(rows[i]) ? 1 : 0);
    return answers;
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
    String[] kinds = types.isEmpty() ? new String[0] : types.split("\\n");
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
    DataType string = DataType.fromJson("\\"string\\"");
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
"""


def directories(
    jvm: Jvm,
    urls: pa.Array,
    sizes: pa.ChunkedArray,
    modification_times: pa.ChunkedArray,
    stops: pa.Array,
    values: Sequence[pa.Array],
    types: Sequence[object],
    time_zone: str,
) -> JavaObject:
    """A Scala `Seq` of a ``PartitionDirectory`` for each group of files, the files in their order.

    Args:
        urls: of the files, percent-encoded, group by group.
        sizes, modification_times: of the files, in bytes and in milliseconds.
        stops: for each group the number of the file after its last one.
        values: for each partition column the groups' values, as the log's strings.
        types: for each partition column the JSON of its Spark type.
        time_zone: of timestamps that name none.
    """
    parts = [*_texts(urls), _numbers(sizes, pa.int64()), _numbers(modification_times, pa.int64()), _numbers(stops, pa.int32())]
    parts += [part for column in values for part in _texts(column)]
    with _crossing(parts) as packed:
        return _many(jvm).directories(packed, len(urls), len(stops), _lines(types), time_zone, _BLOCK_SIZE)


def rows_of(jvm: Jvm, columns: Sequence[pa.Array | pa.ChunkedArray], types: Sequence[object], time_zone: str) -> JavaObject:
    """A Scala `Seq` of Catalyst rows of the log's strings, cast as Spark casts them.

    Args:
        columns, types, time_zone: as in `directories`.
    """
    with _crossing([part for column in columns for part in _texts(column)]) as packed:
        return _many(jvm).typed(packed, len(columns[0]), _lines(types), time_zone)


def rows_that_hold(
    jvm: Jvm, predicate: JavaObject, columns: Sequence[pa.Array], types: Sequence[object], time_zone: str
) -> list[bool]:
    """For each row of the log's strings, cast as Spark casts them, whether a Catalyst ``BasePredicate`` finds it true.

    Args:
        columns, types, time_zone: as in `directories`.
    """
    with _crossing([part for column in columns for part in _texts(column)]) as packed:
        answers = _many(jvm).holds(packed, len(columns[0]), _lines(types), time_zone, predicate)
    return [bool(answer) for answer in answers]


def texts(jvm: Jvm, values: pa.Array) -> JavaObject:
    """A Java array of ``UTF8String`` over the bytes of a string or binary array; null stays null."""
    with _crossing(_texts(values)) as packed:
        return _many(jvm).texts(packed, len(values))


def _many(jvm: Jvm) -> JavaObject:
    return jvm.kept("Many", lambda: compiled_object(jvm, "Many", lambda: ("Many", _MANY)))


def _lines(types: Sequence[object]) -> str:
    return "\n".join(json.dumps(one) for one in types)


@contextmanager
def _crossing(parts: Sequence[bytes]) -> Iterator[bytes | str]:
    """What the JVM is given for these bytes. py4j makes texts of bytes; many go faster through a file, which the JVM, on the same host,
    reads."""
    data = b"".join(parts)
    if len(data) < _MOST_BYTES_AS_TEXT:
        yield data
        return
    with TemporaryDirectory() as folder:
        path = os.path.join(folder, "bytes")
        with open(path, "wb") as file:
            file.write(data)
        yield path


def _texts(values: pa.Array | pa.ChunkedArray) -> list[bytes]:
    """Where each text ends, whether there is one, and the bytes of all."""
    values = _contiguous(values)
    if not len(values):
        return []
    offsets = pa.Array.from_buffers(pa.int32(), len(values) + 1, [None, values.buffers()[1]], offset=values.offset)
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    content = values.buffers()[2]
    present = _numbers(values.is_valid().cast(pa.uint8()), pa.uint8())
    ends = _numbers(pc.subtract(offsets.slice(1), first), pa.int32())
    return [ends, present, b"" if content is None else content.slice(first, last - first).to_pybytes()]


def _numbers(values: pa.Array | pa.ChunkedArray, data_type: pa.DataType) -> bytes:
    values = _contiguous(values).cast(data_type)
    width = data_type.bit_width // 8
    return values.buffers()[1].slice(values.offset * width, len(values) * width).to_pybytes() if len(values) else b""


def _contiguous(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
