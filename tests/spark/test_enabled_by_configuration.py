"""Sessions that other programs create have Delta enabled by `TAHOE_ENABLE`, by ``spark.tahoe.enabled``, and in `tahoe run`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.own_spark import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.own_jvm]

_BOOTSTRAP = ROOT / "tahoe/cli/bootstrap"
_QUIET = ("--conf", "spark.ui.enabled=false", "--conf", "spark.log.level=OFF", "--conf", "spark.sql.shuffle.partitions=2")

_JOB = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").getOrCreate()
table = sys.argv[1]
spark.range(3).write.format("delta").save(table)
spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 1")
spark.sql(f"CREATE TABLE copy USING delta LOCATION '{table}-copy' AS SELECT * FROM delta.`{table}`")  # in a copy of the session
session = SparkSession(spark.sparkContext, spark._jsparkSession.newSession())
print("= rows", sorted(row.id for row in session.table(f"delta.`{table}`").collect()))
"""

_WITH_DELTA = """
from delta.tables import DeltaTable
print("= history", DeltaTable.forPath(spark, table).history().count())
"""

_REFUSED = """
from pyspark.sql import SparkSession
from tahoe.exceptions import InvalidRequest
try:
    SparkSession.builder.master("local[1]").getOrCreate()
except InvalidRequest as error:
    print("=", error)
"""


def lines(*command: str, text: str | None = None, **variables: str) -> list[str]:
    """The lines that a program prints, without the variables that enable Delta unless they are given."""
    inherited = {name: value for name, value in os.environ.items() if name != "TAHOE_ENABLE"}
    environment = {**inherited, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONWARNINGS": "ignore", **variables}
    outcome = subprocess.run(command, input=text, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert outcome.returncode == 0, outcome.stderr[-4000:]
    return [line[line.index("= ") :] for line in outcome.stdout.splitlines() if "= " in line]


def written(path: Path, program: str) -> str:
    path.write_text(program)
    return str(path)


def spark_submit() -> str:
    return shutil.which("spark-submit", path=str(Path(sys.executable).parent)) or pytest.fail("PySpark has no spark-submit")


@pytest.mark.long
def test_a_submitted_job_is_enabled_by_the_setting(tmp_path):
    job = written(tmp_path / "job.py", _JOB)
    variables = {"PYTHONPATH": f"{_BOOTSTRAP}{os.pathsep}{ROOT}", "PYSPARK_DRIVER_PYTHON": sys.executable}
    setting = ("--conf", "spark.tahoe.enabled=true")
    assert lines(spark_submit(), *_QUIET, *setting, job, str(tmp_path / "t"), **variables) == ["= rows [0, 2]"]


def test_tahoe_run_enables_a_job_and_delta_sparks_names(tmp_path):
    job = written(tmp_path / "job.py", _JOB + _WITH_DELTA)
    command = (sys.executable, "-m", "tahoe", "run", "python", job, str(tmp_path / "t"))
    assert lines(*command) == ["= rows [0, 2]", "= history 2"]


@pytest.mark.soak
def test_tahoe_run_enables_the_shell(tmp_path):
    typed = _JOB.replace("sys.argv[1]", repr(str(tmp_path / "t")))
    assert "= rows [0, 2]" in lines(sys.executable, "-m", "tahoe", "run", "pyspark", *_QUIET, text=typed)


@pytest.mark.soak
def test_the_startup_file_changes_nothing_in_a_session_that_calls_enable(tmp_path):
    program = "import tahoe\n" + _JOB.replace("table = ", "tahoe.enable(spark)\ntable = ").replace(
        "session = ", "session = spark or "
    )
    job = written(tmp_path / "job.py", program)
    variables = {"PYTHONPATH": f"{_BOOTSTRAP}{os.pathsep}{ROOT}"}
    assert lines(sys.executable, job, str(tmp_path / "t"), **variables) == ["= rows [0, 2]"]


@pytest.mark.soak
def test_a_setting_of_false_wins_over_the_variable(tmp_path):
    job = written(
        tmp_path / "job.py", "import tahoe.spark.session as s\n" + _JOB.split("table =")[0] + 'print("=", s.is_enabled(spark))'
    )
    command = (sys.executable, "-m", "tahoe", "run", spark_submit(), *_QUIET, "--conf", "spark.tahoe.enabled=false", job)
    assert lines(*command) == ["= False"]


def test_a_value_that_is_no_boolean_is_refused_before_spark_starts():
    variables = {"PYTHONPATH": f"{_BOOTSTRAP}{os.pathsep}{ROOT}", "TAHOE_ENABLE": "maybe"}
    assert lines(sys.executable, "-c", _REFUSED, **variables) == [
        "= [TAHOE_ENABLE_INVALID] TAHOE_ENABLE = 'maybe' is not a boolean. Use 1 or 0."
    ]
