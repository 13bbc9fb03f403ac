"""Whether the fixture `delta_spark` can start Spark; tests/spark/test_pytest_plugin.py starts it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tahoe.base.exceptions import InvalidRequest
from tahoe.base.missing_extra import MissingExtra
from tahoe.testing import spark_session
from tahoe.testing.spark_session import settings_of, spark_problem


def test_a_missing_package_is_named_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_session, "find_spec", lambda package: None)
    problem = spark_problem(os.environ)
    assert isinstance(problem, MissingExtra) and "pip install 'tahoe-delta[spark]'" in problem.message


def test_a_missing_java_is_named_with_the_remedy(tmp_path: Path) -> None:
    problem = spark_problem({"JAVA_HOME": str(tmp_path)})
    assert problem is not None and "PySpark finds no Java runtime. Install Java 17 or newer" in problem.message


def test_settings_are_lines_of_name_and_value() -> None:
    assert settings_of(["a.b = c", "d.e=f=g"]) == {"a.b": "c", "d.e": "f=g"}
    with pytest.raises(InvalidRequest, match=r"delta_spark_conf: 'a\.b' is not a setting; write name=value"):
        settings_of(["a.b"])
