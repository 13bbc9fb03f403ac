"""Write a partitioned Delta table with Spark, update a row and delete others."""

import json
import sys

from pyspark.sql import SparkSession

folder = sys.argv[1]
table = f"delta.`{folder}/orders`"
spark = SparkSession.builder.getOrCreate()
frame = spark.range(100).selectExpr(
    "id", "CAST(id % 3 AS STRING) AS shop", "CAST(id AS DECIMAL(12, 2)) AS amount", "timestamp_seconds(id) AS at"
)
frame.write.format("delta").partitionBy("shop").save(f"{folder}/orders")
spark.sql(f"UPDATE {table} SET amount = amount + 0.5 WHERE id = 7")
spark.sql(f"DELETE FROM {table} WHERE id >= 90")
print()
print(json.dumps({"operations": [row.operation for row in spark.sql(f"DESCRIBE HISTORY {table}").collect()][::-1]}))
