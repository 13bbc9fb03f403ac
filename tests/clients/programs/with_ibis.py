"""Create, fill, query, replace and export Delta tables with ibis, by name and by path."""

import json
import sys

import ibis
import pyarrow as pa
from pyspark.sql import SparkSession

folder = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
con = ibis.pyspark.connect(spark)

rows = pa.table({"id": [1, 2, 3], "day": ["a", "a", "b"], "amount": [1.5, 2.5, 3.5]})
orders = con.create_table("orders", ibis.memtable(rows), format="delta", partition_by="day")
con.insert("orders", ibis.memtable(pa.table({"id": [4], "day": ["b"], "amount": [4.5]})))
con.raw_sql("DELETE FROM orders WHERE id = 2")
by_day = orders.group_by("day").agg(total=orders.amount.sum()).order_by("day").to_pyarrow().to_pylist()
formats = spark.sql("DESCRIBE DETAIL orders").first()

con.to_delta(orders.filter(orders.day == "b"), f"{folder}/exported", mode="overwrite")
exported = con.read_delta(f"{folder}/exported").order_by("id").id.to_pyarrow().to_pylist()

con.create_table("orders", ibis.memtable(rows), format="delta", overwrite=True)
replaced = con.table("orders").count().to_pyarrow().as_py()
operations = [row.operation for row in spark.sql("DESCRIBE HISTORY orders").collect()]
con.raw_sql("DROP TABLE orders")  # drop_table is known to fail: docs/clients.md
print()
print(
    json.dumps(
        {
            "by day": by_day,
            "format": formats["format"],
            "partition columns": formats["partitionColumns"],
            "exported": exported,
            "replaced": replaced,
            "operations": operations,
            "left": [name for name in con.list_tables() if name == "orders"],
        }
    )
)
