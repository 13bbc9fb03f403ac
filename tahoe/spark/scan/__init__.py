"""The execution of queries: from a snapshot to Spark's own Parquet scan."""
