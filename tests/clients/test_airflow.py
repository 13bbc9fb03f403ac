"""Airflow's PySparkOperator and `@task.pyspark`, whose settings enable Delta, in a DAG that ``airflow dags test`` runs."""

from __future__ import annotations

from pathlib import Path

import pytest

import tahoe
from tests.clients.child import HERE, command, needs

pytestmark = pytest.mark.clients


def test_a_dag_writes_changes_and_reads_a_table(tmp_path: Path) -> None:
    needs("apache-airflow", "apache-airflow-providers-apache-spark", "pyspark")
    table = tmp_path / "orders"
    variables = {
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(HERE / "programs/dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "false",
        "SHOP_TABLE": str(table),
    }
    command(["airflow", "db", "migrate"], tmp_path, variables=variables)
    command(["airflow", "dags", "test", "shop"], tmp_path, variables=variables)
    assert [commit["operation"] for commit in tahoe.Table(str(table)).history()] == ["DELETE", "WRITE"]
    assert sorted(tahoe.Table(str(table)).to_arrow()["id"].to_pylist()) == [0, 1, 3, 4]
