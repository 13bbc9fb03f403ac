"""Validate DataFrames of a Delta table with pandera's schemas for PySpark."""

import json
import sys

import pandera.pyspark as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import DecimalType, LongType, StringType

folder = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
spark.range(5).selectExpr("id", "CAST(id AS DECIMAL(10, 2)) AS amount", "concat('o', id) AS name").write.format(
    "delta"
).saveAsTable("orders")
spark.sql("UPDATE orders SET amount = -1 WHERE id = 4")


class Orders(pa.DataFrameModel):
    id: LongType() = pa.Field(ge=0)
    amount: DecimalType(10, 2) = pa.Field(ge=0)
    name: StringType() = pa.Field(str_startswith="o")


class Misspelled(pa.DataFrameModel):
    idd: LongType() = pa.Field()


def errors(model, frame):
    actual = model.validate(check_obj=frame).pandera.errors
    return {
        kind: sorted(str(error["check"]) for reasons in by_reason.values() for error in reasons)
        for kind, by_reason in actual.items()
    }


print()
print(
    json.dumps(
        {
            "newest": errors(Orders, spark.table("orders")),
            "version 0": errors(Orders, spark.read.option("versionAsOf", 0).table("orders")),
            "misspelled": errors(Misspelled, spark.table("orders")),
        }
    )
)
