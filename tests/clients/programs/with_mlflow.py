"""Log Delta tables as inputs of an MLflow run: by path, by name, and at a version."""

import json
import sys

import mlflow
import mlflow.data
from pyspark.sql import SparkSession

folder = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
spark.range(5).write.format("delta").save(f"{folder}/orders")
spark.range(5, 7).write.format("delta").mode("append").save(f"{folder}/orders")
spark.sql("CREATE TABLE sales USING delta AS SELECT 1 AS id")
spark.sql("DELETE FROM sales")
spark.sql("INSERT INTO sales VALUES (2)")

mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
inputs = {
    "path": mlflow.data.load_delta(path=f"{folder}/orders"),
    "name": mlflow.data.load_delta(table_name="sales"),
    "version": mlflow.data.load_delta(path=f"{folder}/orders", version="0"),
    "frame": mlflow.data.from_spark(spark.read.format("delta").load(f"{folder}/orders"), path=f"{folder}/orders"),
}
with mlflow.start_run() as run:
    for context, dataset in inputs.items():
        mlflow.log_input(dataset, context=context)
found = {}
for logged in mlflow.get_run(run.info.run_id).inputs.dataset_inputs:
    context = next(tag.value for tag in logged.tags if tag.key == "mlflow.data.context")
    source = mlflow.data.get_source(logged.dataset)
    found[context] = {"version": source.delta_table_version, "type": logged.dataset.source_type, "rows": source.load().count()}
print()
print(json.dumps(found))
