"""The way of a query: from a snapshot to Spark's own Parquet scan."""
