"""An Airflow DAG: a PySparkOperator writes a Delta table, a `@task.pyspark` changes it and returns its rows."""

import os

from airflow.providers.apache.spark.operators.spark_pyspark import PySparkOperator
from airflow.sdk import dag, task

TABLE = os.environ["SHOP_TABLE"]


def write(spark):
    spark.range(5).write.format("delta").mode("append").save(TABLE)


@dag(schedule=None)
def shop():
    @task.pyspark(config_kwargs={"spark.tahoe.enabled": "true", "spark.master": "local[2]"})
    def delete(spark):
        spark.sql(f"DELETE FROM delta.`{TABLE}` WHERE id = 2")
        return [row.id for row in spark.sql(f"SELECT id FROM delta.`{TABLE}` ORDER BY id").collect()]

    @task
    def report(ids):
        print("= ids", ids)

    written = PySparkOperator(
        task_id="write", python_callable=write, config_kwargs={"spark.tahoe.enabled": "true", "spark.master": "local[2]"}
    )
    deleted = delete()
    written >> deleted
    report(deleted)


shop()
