"""Load tables with dlt into a folder as Delta, in turns with Spark: `first`, then Spark's changes, then `second`."""

import json
import sys

import dlt
from dlt.common.libs.deltalake import get_delta_tables
from dlt.destinations import filesystem
from pyspark.sql import SparkSession

folder = sys.argv[1]


def load(rows, disposition, **options):
    @dlt.resource(name="orders", table_format="delta", write_disposition=disposition, **options)
    def orders():
        yield rows

    pipeline.run(orders())


pipeline = dlt.pipeline(
    "shop", destination=filesystem(f"file://{folder}/lake"), dataset_name="raw", pipelines_dir=f"{folder}/pipelines"
)
load([{"id": 1, "amount": 10}, {"id": 2, "amount": 20}, {"id": 3, "amount": 30}], "append")

spark = SparkSession.builder.getOrCreate()
table = f"{folder}/lake/raw/orders"
spark.sql(f"UPDATE delta.`{table}` SET amount = 21 WHERE id = 2")
spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 3")
spark.sql(f"OPTIMIZE delta.`{table}`")

load([{"id": 2, "amount": 22}, {"id": 4, "amount": 40}], {"disposition": "merge", "strategy": "upsert"}, primary_key="id")
merged = get_delta_tables(pipeline, "orders")["orders"].to_pyarrow_table().to_pydict()
by_dlt = sorted(zip(merged["id"], merged["amount"], strict=True))
by_spark = sorted([row.id, row.amount] for row in spark.read.format("delta").load(table).collect())

load([{"id": 9, "amount": 90, "note": "new"}], "append")
evolved = sorted((row.id, row.note) for row in spark.read.format("delta").load(table).collect() if row.note)
load([{"id": 5, "amount": 50}], "replace")
replaced = [row.id for row in spark.read.format("delta").load(table).collect()]
operations = [row.operation for row in spark.sql(f"DESCRIBE HISTORY delta.`{table}`").collect()][::-1]
print()
print(json.dumps({"dlt": by_dlt, "spark": by_spark, "evolved": evolved, "replaced": replaced, "operations": operations}))
