"""For tests of Tahoe and of what builds on it; `docs/testing.md` shows each at work.

    table_laws          what holds of any table
    table_machine       histories of a table, held against a list of rows; `row_model` and `row_strategies` are what it is made of
    random_history      random tables of odd types and names
    log_builder         logs made by hand, and damages; `uniform_log` for conversions, without data files
    raced_rows          races played by hand, on rows in memory
    iceberg_verifier    what readers of Iceberg are shown, held against the log
    store_suite         the contract of stores
    faulty_store        stores that fail on purpose; `interleaving` lets threads race by a seed

Modules that need pytest, Hypothesis or fastavro say so: they are the extra ``testing``.
"""
