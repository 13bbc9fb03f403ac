"""What a user of Spark reads on standard error beside the one error, or none, of a statement."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
import tahoe
from pyspark.sql import SparkSession
from tahoe.exceptions import InvariantViolation
from tahoe import configure_spark_with_delta_pip

spark = configure_spark_with_delta_pip(SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")).getOrCreate()
path = sys.argv[1]
spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT, n BIGINT) USING delta")
spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT small CHECK (n < 5)")
spark.sql(f"INSERT INTO delta.`{path}` VALUES (1, 1)")
print("BEGIN", file=sys.stderr, flush=True)
try:
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (2, 9)")
except InvariantViolation as error:
    print("REFUSED", file=sys.stderr, flush=True)
spark.sql(f"MERGE INTO delta.`{path}` t USING (SELECT 1L AS id, 2L AS n) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n + 0")
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
    assert refused == "", "the error is what the caller gets"
    assert merged == ""
    assert "a failure of another job" in other
    assert "ERROR Executor" in other
