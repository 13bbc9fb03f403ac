"""Extra `spark`: SQL by name and by path, MERGE and the DeltaTable API, in a session that Tahoe enabled."""

from pyspark.sql import SparkSession

import tahoe
from tahoe.tables import DeltaTable

spark = tahoe.enable(SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate())
spark.sql("CREATE TABLE orders (id BIGINT, amount INT) USING delta")
spark.sql("INSERT INTO orders VALUES (1, 10), (2, 20)")
spark.sql("MERGE INTO orders t USING (SELECT 2 AS id, 25 AS amount) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *")
spark.range(3).write.format("delta").save("numbers")
DeltaTable.forPath(spark, "numbers").delete("id = 0")
assert sorted(map(tuple, spark.table("orders").collect())) == [(1, 10), (2, 25)]
assert spark.read.format("delta").load("numbers").count() == 2
