"""The demonstration (`make demo`): a year of flights from CSV to gold, read back by every engine at hand.

landing/2013-01.csv … ─► bronze (as delivered) ─► silver (typed, by month) ─► gold (joined, by month, UniForm on)
                                                                               │
                                          Delta: Spark, Tahoe, deltalake, DuckDB ┴ Iceberg: PyIceberg, DuckDB
"""
