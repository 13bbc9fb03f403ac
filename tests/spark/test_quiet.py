"""The output on standard error beside the one error, or none, of a statement."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
import pyarrow as pa
import tahoe
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from tahoe.base.exceptions import InvariantViolation
from tahoe.tables import DeltaTable

path, java_options = sys.argv[1:]
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2")
spark = tahoe.enable(builder.config("spark.driver.extraJavaOptions", java_options).getOrCreate())
table = tahoe.Table.create(path, pa.schema([("id", pa.int64()), ("n", pa.int64())]))
table.add_constraint("small", "n < 5")
table.append(pa.table({"id": [1], "n": [1]}))
print("BEGIN", file=sys.stderr, flush=True)
try:
    spark.sql("SELECT 2L AS id, 9L AS n").write.format("delta").mode("append").save(path)
except InvariantViolation as error:
    print("REFUSED", file=sys.stderr, flush=True)
for condition in ("1 / (id - 1) > 3", "raise_error('no') IS NULL OR id > 0", "nowhere > 3", "id > > 3"):
    for command in (DeltaTable.forPath(spark, path).delete, lambda text: DeltaTable.forPath(spark, path).update(text, {"n": "2"})):
        try:
            command(condition)
        except PySparkException:
            continue
        raise AssertionError(condition)
try:
    rows = spark.sql("SELECT 2L AS id, 3L AS n").write.format("delta").mode("overwrite")
    rows.option("replaceWhere", "id = 1").save(path)
except AnalysisException as error:
    assert error.getSqlState() == "44000", error.getSqlState()
print("PREDICATES", file=sys.stderr, flush=True)
source = spark.sql("SELECT 1L AS id, 2L AS n").alias("s")
DeltaTable.forPath(spark, path).alias("t").merge(source, "t.id = s.id").whenMatchedUpdate(set={"n": "s.n + 0"}).execute()
print("MERGED", file=sys.stderr, flush=True)
try:
    spark.sql("SELECT raise_error('a failure of another job')").collect()
except Exception:
    pass
print("OTHER", file=sys.stderr, flush=True)
assert table.to_arrow().to_pylist() == [{"id": 1, "n": 2}]
"""


# Over five seconds: the log of Spark is looked at, which the session of the other tests has switched off, so this one starts its own.
@pytest.mark.own_jvm
@pytest.mark.long
def test_a_refused_row_or_predicate_is_reported_once_and_a_merge_says_nothing_and_other_failures_are_logged_as_ever(
    tmp_path: Path, java_options: str
) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "t"), java_options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    _, _, shown = done.stderr.partition("BEGIN\n")
    refused, _, rest = shown.partition("REFUSED\n")
    predicates, _, rest = rest.partition("PREDICATES\n")
    merged, _, rest = rest.partition("MERGED\n")
    other, _, _ = rest.partition("OTHER\n")
    assert "\tat " not in refused, "the error is what the caller gets"
    assert "ERROR" not in refused
    assert "WARN" not in refused
    assert [line for line in predicates.splitlines() if "ERROR" in line or "\tat " in line] == []
    assert "locally checkpointed" not in merged
    assert "a failure of another job" in other
    assert "ERROR Executor" in other
