from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tahoe.cli.examination import machine
from tahoe.cli.examination.findings import Finding, State
from tahoe.cli.examination.machine import Interpreter

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.mark.parametrize(
    ("finding", "state", "text"),
    [
        (machine.of_python((3, 10)), State.PROBLEM, "3.10 is too old"),
        (machine.of_python((3, 11)), State.OK, "3.11"),
        (machine.of_startup(True), State.OK, "work in this environment"),
        (machine.of_startup(False), State.NOTE, "`tahoe run`"),
        (machine.of_pyspark(None), State.NOTE, "pip install 'tahoe-delta[spark]'"),
        (machine.of_pyspark("4.2.1"), State.OK, "4.2.1"),
        (machine.of_pyspark("3.5.6"), State.PROBLEM, "Install pyspark 4.0 to 4.3"),
        (machine.of_pyspark("4.30.0"), State.PROBLEM, "not supported"),
        (machine.of_java(None), State.PROBLEM, "JAVA_HOME"),
        (machine.of_java(11), State.PROBLEM, "Version 11 is too old"),
        (machine.of_java(21), State.OK, "Version 21"),
        (machine.of_workers("python3", None), State.PROBLEM, "cannot import pyarrow and pyroaring"),
        (machine.of_workers("python3", Interpreter("3.8", "/x")), State.PROBLEM, f"with Python 3.8, and the driver has {HERE}"),
        (machine.of_workers("python3", Interpreter(HERE, "/another")), State.NOTE, "/another, another environment"),
        (machine.of_workers("python3", Interpreter(HERE, sys.prefix)), State.OK, "the driver's environment"),
        (machine.of_delta_package("/x/delta/__init__.py"), State.NOTE, "tahoe.tables"),
        (machine.of_delta_package(None), State.OK, "TAHOE_ENABLE=1"),
        (machine.of_memory(1 << 30), State.PROBLEM, "1.0 GiB"),
        (machine.of_memory(8 << 30), State.OK, "8.0 GiB"),
        (machine.of_memory(None), State.NOT_EXAMINED, "spark.driver.memory"),
    ],
)
def test_each_fact_has_a_state_a_sentence_and_a_remedy(finding: Finding, state: State, text: str) -> None:
    assert finding.state is state
    assert text in f"{finding.sentence} {finding.remedy}"
    assert bool(finding.remedy) is (state is not State.OK)


def test_the_interpreter_of_the_workers_is_the_one_that_pyspark_runs() -> None:
    assert machine.of_workers(*machine.worker_python({"PYSPARK_PYTHON": sys.executable})).state is State.OK
    assert machine.of_workers(*machine.worker_python({"PYSPARK_PYTHON": "/nowhere/python"})).state is State.PROBLEM


def test_a_java_home_without_java_is_a_problem(tmp_path: Path) -> None:
    assert machine.of_java(machine.java_version({"JAVA_HOME": str(tmp_path)})).state is State.PROBLEM
