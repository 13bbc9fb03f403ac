"""Materialize Dagster assets that write and read Delta tables with the session of dagster-pyspark's resource."""

import json
import sys

import dagster as dg
from dagster_pyspark import PySparkResource

folder = sys.argv[1]


@dg.asset
def orders(pyspark: PySparkResource) -> None:
    spark = pyspark.spark_session
    spark.range(5).write.format("delta").mode("append").save(f"{folder}/orders")
    spark.sql(f"DELETE FROM delta.`{folder}/orders` WHERE id = 2")


@dg.asset(deps=[orders])
def total(pyspark: PySparkResource) -> int:
    return pyspark.spark_session.read.format("delta").load(f"{folder}/orders").agg({"id": "sum"}).first()[0]


resource = PySparkResource(spark_config={"spark.app.name": "shop", "spark.tahoe.enabled": "true"})
totals = []
for _ in range(2):
    outcome = dg.materialize([orders, total], resources={"pyspark": resource})
    totals.append(outcome.output_for_node("total"))
print()
print(json.dumps({"totals": totals}))
