"""Compare DataFrames of Delta tables with chispa, as a test of a data pipeline does."""

import json
import sys

from chispa import assert_approx_df_equality, assert_column_equality, assert_df_equality
from chispa.dataframe_comparer import DataFramesNotEqualError
from pyspark.sql import SparkSession

folder = sys.argv[1]
spark = SparkSession.builder.config("spark.tahoe.enabled", "true").getOrCreate()
expected = spark.createDataFrame([(1, "a", 1.0), (2, "b", 2.0)], "id bigint, name string, amount double")
expected.write.format("delta").save(f"{folder}/orders")
orders = spark.read.format("delta").load(f"{folder}/orders")
assert_df_equality(orders, expected, ignore_row_order=True)
assert_approx_df_equality(orders.selectExpr("id", "name", "amount + 1e-9 AS amount"), expected, 1e-6, ignore_row_order=True)
assert_column_equality(orders.selectExpr("id", "id + 0 AS same"), "id", "same")

spark.sql(f"UPDATE delta.`{folder}/orders` SET name = 'c' WHERE id = 2")
try:
    assert_df_equality(orders, expected, ignore_row_order=True)
    difference = None
except DataFramesNotEqualError as error:
    difference = "name=c" in str(error) and "name=b" in str(error)
first = spark.read.format("delta").option("versionAsOf", 0).load(f"{folder}/orders")
assert_df_equality(first, expected, ignore_row_order=True)
print()
print(json.dumps({"difference is reported": difference}))
