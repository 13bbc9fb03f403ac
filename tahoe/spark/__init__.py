"""Delta tables in Spark: the part of Tahoe that knows PySpark. Users begin with `tahoe.enable` and `tahoe.tables.DeltaTable`."""
