"""Validate a Delta table with Great Expectations: as a directory asset, and as a DataFrame."""

import json
import sys

import great_expectations as gx
import great_expectations.expectations as gxe
from pyspark.sql import SparkSession

folder = sys.argv[1]
spark = SparkSession.builder.config("spark.tahoe.enabled", "true").getOrCreate()
spark.range(10).selectExpr("id", "id * 2 AS amount").write.format("delta").save(f"{folder}/orders")
spark.sql(f"DELETE FROM delta.`{folder}/orders` WHERE id = 9")

context = gx.get_context(mode="ephemeral")
suite = context.suites.add(gx.ExpectationSuite(name="orders"))
suite.add_expectation(gxe.ExpectColumnValuesToBeBetween(column="id", min_value=0, max_value=8))
suite.add_expectation(gxe.ExpectColumnValuesToBeUnique(column="id"))
suite.add_expectation(gxe.ExpectTableRowCountToEqual(value=9))
suite.add_expectation(gxe.ExpectColumnMaxToBeBetween(column="amount", min_value=16, max_value=16))
suite.add_expectation(gxe.ExpectColumnValuesToNotBeNull(column="amount"))
wrong = context.suites.add(gx.ExpectationSuite(name="wrong"))
wrong.add_expectation(gxe.ExpectColumnValuesToBeBetween(column="amount", max_value=10))

files = context.data_sources.add_spark_filesystem(name="files", base_directory=folder)
newest = files.add_directory_delta_asset(name="newest", data_directory="orders")
first = files.add_directory_delta_asset(name="first", data_directory="orders", version_as_of="0")
frames = context.data_sources.add_spark(name="frames").add_dataframe_asset(name="orders")
in_frame = frames.add_batch_definition_whole_dataframe("all")


def success(batch):
    outcome = batch.validate(suite)
    return [outcome.success, outcome.statistics["evaluated_expectations"]]


found = {asset.name: success(asset.add_batch_definition_whole_directory("all").get_batch()) for asset in (newest, first)}
frame = spark.read.format("delta").load(f"{folder}/orders")
found["frame"] = success(in_frame.get_batch(batch_parameters={"dataframe": frame}))
old = spark.read.format("delta").option("versionAsOf", 0).load(f"{folder}/orders")
outcome = in_frame.get_batch(batch_parameters={"dataframe": old}).validate(wrong)
found["unexpected in version 0"] = outcome.results[0].result["unexpected_count"]
print()
print(json.dumps(found))
