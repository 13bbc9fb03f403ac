"""What a user of Spark reads on standard error beside the one error, or none, of a statement."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
import pyarrow as pa
import tahoe
from pyspark.sql import SparkSession
from tahoe.exceptions import InvariantViolation
from tahoe.tables import DeltaTable

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2").getOrCreate()
tahoe.enable(spark)
path = sys.argv[1]
table = tahoe.Table.create(path, pa.schema([("id", pa.int64()), ("n", pa.int64())]))
table.add_constraint("small", "n < 5")
spark.sql("SELECT 1L AS id, 1L AS n").write.format("delta").mode("append").save(path)
print("BEGIN", file=sys.stderr, flush=True)
try:
    spark.sql("SELECT 2L AS id, 9L AS n").write.format("delta").mode("append").save(path)
except InvariantViolation as error:
    print("REFUSED", file=sys.stderr, flush=True)
source = spark.sql("SELECT 1L AS id, 2L AS n").alias("s")
DeltaTable.forPath(spark, path).alias("t").merge(source, "t.id = s.id").whenMatchedUpdate(set={"n": "s.n + 0"}).execute()
print("MERGED", file=sys.stderr, flush=True)
try:
    spark.sql("SELECT raise_error('a failure of another job')").collect()
except Exception:
    pass
print("OTHER", file=sys.stderr, flush=True)
assert [tuple(row) for row in spark.read.format("delta").load(path).collect()] == [(1, 2)]
"""


def test_a_refused_row_is_told_once_and_a_merge_says_nothing_and_other_failures_are_logged_as_ever(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "t")], capture_output=True, text=True, timeout=250, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    _, _, shown = done.stderr.partition("BEGIN\n")
    refused, _, rest = shown.partition("REFUSED\n")
    merged, _, rest = rest.partition("MERGED\n")
    other, _, _ = rest.partition("OTHER\n")
    assert "\tat " not in refused, "the error is what the caller gets"
    assert "ERROR" not in refused
    assert "locally checkpointed" not in merged
    assert "a failure of another job" in other
    assert "ERROR Executor" in other
