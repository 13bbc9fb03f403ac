"""The examinations of `tahoe doctor`: the machine, Spark's JARs and private members, and a table's storage, catalogs and clock."""
