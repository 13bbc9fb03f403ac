"""The options of the JVMs that tests start, and an archive of Spark's parsed classes with which they start in half of the processor time.

``python -m tests.java_options`` writes the archive into the virtual environment, once for each release of Java and PySpark. The JVM checks
that an archive fits its class path and its version, and otherwise starts without it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zlib
from importlib.metadata import version
from pathlib import Path

__all__ = ["JAVA_OPTIONS"]

_FEW_QUERIES = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -XX:-UsePerfData "
_FEW_QUERIES += "-Djdk.lang.Process.launchMechanism=VFORK"
"""Tests run each query once or twice: the JVM's second compiler, a collector with threads of its own, and counters for tools that nobody
attaches cost more processor time than they save. Without tiers the code cache has only 48 MB: once it is nearly full, the JVM's sweeper
takes a fifth of its processor time. Hadoop starts ``chmod`` for each file and folder that it writes, which VFORK makes cheaper."""

_PROGRAM = """
import sys
from pyspark.sql import SparkSession
import tahoe
path = sys.argv[1] + "/t"
spark = tahoe.enable(SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate())
spark.range(9).write.format("delta").option("delta.enableDeletionVectors", "true").save(path)
spark.sql(f"UPDATE delta.`{path}` SET id = id + 10 WHERE id > 5")
tahoe.DeltaTable.forPath(spark, path).alias("t").merge(spark.range(3).alias("s"), "t.id = s.id").whenMatchedDelete().execute()
stream = spark.readStream.format("delta").load(path).writeStream.format("delta").option("checkpointLocation", path + "-state")
stream.trigger(availableNow=True).start(path + "-copy").awaitTermination()
assert spark.table(f"delta.`{path}-copy`").groupBy("id").count().toPandas().shape == (6, 2)
spark.stop()
"""


def archive() -> Path:
    """The archive for this PySpark and the Java runtime of ``JAVA_HOME``, whether it exists or not."""
    runtime = Path(os.environ.get("JAVA_HOME", ""), "release")
    contents = runtime.read_bytes() if runtime.exists() else b""
    return Path(sys.prefix, f"spark-classes-{version('pyspark')}-{zlib.crc32(contents):08x}.jsa")


JAVA_OPTIONS = f"{_FEW_QUERIES} -XX:SharedArchiveFile={archive()} -Xlog:cds*=off"
"""For ``spark.driver.extraJavaOptions``. A JVM that starts before the archive exists does without it."""


def main() -> None:
    """Write the archive unless it exists: about half a minute."""
    target = archive()
    if target.exists():
        return
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder, "classes.jsa")
        options = f"{_FEW_QUERIES} -XX:ArchiveClassesAtExit={written} -Xlog:cds*=off"
        environment = {**os.environ, "SPARK_SUBMIT_OPTS": options, "SPARK_LOCAL_IP": "127.0.0.1"}
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", _PROGRAM, folder], env=environment, check=False, capture_output=True
        )
        if not written.exists():
            print(f"{target.name} could not be written: the JVMs of the tests start without it", file=sys.stderr)  # noqa: T201
            return
        unfinished = target.with_name(f"{target.name}.{os.getpid()}")
        unfinished.write_bytes(written.read_bytes())
        unfinished.rename(target)


if __name__ == "__main__":
    main()
