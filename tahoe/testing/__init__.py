"""Test helpers for Tahoe and for projects that build on it; `docs/testing.md` has an example of each.

assertions          rows, history, change feed and schema of a table, with readable differences
pytest_plugin       the fixtures `delta_path`, `delta_table` (`temporary_tables`) and `delta_spark` (`spark_session`)
table_laws          invariants of any table
table_machine       random histories of a table, compared with a list of rows; built from `row_model` and `row_strategies`
random_history      random tables with unusual types and names
log_builder         hand-written logs, and corruptions of them; `uniform_log` for conversions, without data files
raced_rows          races on rows in memory, played step by step
iceberg_verifier    compares the Iceberg metadata with the log
store_suite         the contract of stores
faulty_store        stores that fail on purpose; `interleaving` runs threads in an order drawn from a seed

Modules that need pytest, Hypothesis or fastavro document it: they belong to the extra ``testing``.

PYTEST_DONT_REWRITE: pytest imports the package with the plugin, before `pytest.register_assert_rewrite("tahoe.testing")` in a `conftest.py`;
only this module, which has no assertions, is excluded.
"""
