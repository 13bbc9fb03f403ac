"""Extra `connect`: appends and reads through the Python data source, on a Spark Connect server of its own."""

from pathlib import Path

from pyspark.sql import SparkSession

import tahoe

folder = Path.cwd()
spark = tahoe.enable(SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate())
spark.range(3).write.format("delta").mode("append").save(f"{folder}/numbers")
assert sorted(row.id for row in spark.read.format("delta").load(f"{folder}/numbers").collect()) == [0, 1, 2]
assert tahoe.Table(f"{folder}/numbers").to_arrow().num_rows == 3
spark.stop()
