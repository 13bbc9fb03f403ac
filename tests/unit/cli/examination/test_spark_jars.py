from __future__ import annotations

from pathlib import Path

import pytest

from tahoe.cli.examination import spark_jars
from tahoe.cli.examination.findings import State


@pytest.mark.parametrize(
    ("jars", "settings", "state", "text"),
    [
        (["spark-sql_2.13-4.3.0.jar", "spark-sql-api_2.13-4.3.0.jar"], "", State.OK, "none of delta-spark"),
        (["delta-spark_2.13-4.0.1.jar"], "", State.NOTE, "delta-spark_2.13-4.0.1.jar"),
        ([], "spark.jars.packages io.delta:delta-spark_2.13:4.0.1", State.NOTE, "delta-spark_2.13"),
        (["spark-sql_2.13-4.3.0.jar", "spark-sql_2.13-4.1.0.jar"], "", State.PROBLEM, "several versions of spark-sql"),
        (["spark-sql_2.13-4.3.0.jar", "spark-sql_2.12-4.3.0.jar"], "", State.PROBLEM, "several versions of spark-sql"),
        (["guava-33.jar", "guava-14.jar"], "", State.OK, "none"),
    ],
)
def test_jars_of_delta_spark_and_second_versions_are_found(jars: list[str], settings: str, state: State, text: str) -> None:
    finding = spark_jars.of_jars(jars, settings)
    assert finding.state is state
    assert text in finding.sentence


def test_the_jars_of_the_installed_pyspark_do_not_conflict() -> None:
    folders = spark_jars.jar_folders({})
    assert spark_jars.of_jars(spark_jars.jars_in(folders)).state is State.OK


def test_another_spark_in_spark_home_conflicts(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.13-3.5.0.jar").touch()
    folders = spark_jars.jar_folders({"SPARK_HOME": str(tmp_path)})
    assert len(folders) == 2
    assert spark_jars.of_jars(spark_jars.jars_in(folders)).state is State.PROBLEM


def test_settings_that_add_jars_are_read_and_others_are_not(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "spark.jars.packages io.delta:delta-spark_2.13:4.0.0\nspark.a.note delta-core\n"
    )
    environment = {"SPARK_CONF_DIR": str(tmp_path), "PYSPARK_SUBMIT_ARGS": "--jars x.jar pyspark-shell"}
    settings = spark_jars.jar_settings(environment)
    assert "delta-spark_2.13" in settings and "--jars x.jar" in settings
    assert "delta-core" not in settings


def test_private_members_are_present_missing_or_not_examined(tmp_path: Path) -> None:
    (folder,) = spark_jars.jar_folders({})
    assert spark_jars.of_private_members(folder).state is State.OK
    lacking = spark_jars.of_private_members(tmp_path)
    assert lacking.state is State.PROBLEM
    assert "DataStreamReader.source" in lacking.sentence and "cannot" in lacking.sentence
    assert spark_jars.of_private_members(None).state is State.NOT_EXAMINED
    (tmp_path / "spark-sql_2.13-4.3.0.jar").write_bytes(b"no archive")
    assert "cannot be read" in spark_jars.of_private_members(tmp_path).sentence


def test_private_attributes_are_present_missing_or_not_examined(tmp_path: Path) -> None:
    assert spark_jars.of_private_attributes(spark_jars.pyspark_folder()).state is State.OK
    assert spark_jars.of_private_attributes(None).state is State.NOT_EXAMINED
    assert spark_jars.of_private_attributes(tmp_path).state is State.NOT_EXAMINED
    (tmp_path / "sql").mkdir()
    lacking = spark_jars.of_private_attributes(tmp_path)
    assert lacking.state is State.PROBLEM
    assert "SparkSession._jvm" in lacking.sentence and "connect.Column._expr" in lacking.sentence
    (tmp_path / "sql" / "session.py").write_text("class")
    assert "cannot be read (SyntaxError)" in spark_jars.of_private_attributes(tmp_path).sentence
