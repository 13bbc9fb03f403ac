"""Delta tables in Spark: the part of Tahoe that uses PySpark. Users begin with `tahoe.enable` and `tahoe.tables.DeltaTable`."""
