"""Modules of `tahoe` without a test of their own name, grouped by the reason, each with the covering test. Read by `check_house.py`.

A module that makes a decision of its own has `tests/unit/<folder>/test_<module>.py`. A module whose effect is visible only through other
modules is listed here. An entry whose module has a test of its own is reported as stale.
"""

from __future__ import annotations

from collections.abc import Mapping

_COMMAND = "tests/unit/cli/test_main.py"
_COMPUTE = "tests/unit/expr/compute/test_compute.py"
_PARSE = "tests/unit/expr/parse/test_parse_expression.py"
_REPLAY = "tests/unit/log/test_replay.py"
_CORRUPTION = "tests/unit/log/test_damaged_log.py"
_MERGE = "tests/unit/ops/merge/test_merge.py"
_MODEL = "tests/model/test_table_machine.py"
_COLUMNS = "tests/unit/ops/tables/test_alter_columns.py"
_OPTIMIZE = "tests/unit/ops/layout/test_optimize.py"
_REPORT = "tests/unit/ops/reports/test_table_report.py"
_REPORTS = "tests/unit/cli/reports/test_reports.py"
_VACUUM = "tests/unit/ops/upkeep/test_vacuum.py"
_ICEBERG = "tests/unit/ops/copies/test_iceberg_table.py"
_CONVERT = "tests/unit/ops/copies/test_convert.py"
_DROP = "tests/unit/ops/features/test_drop_feature.py"
_PARTITIONS = "tests/unit/protocol/column_values/test_partition_filters.py"
_STRICT = "tests/unit/ops/check/test_strict_check.py"

TESTED_ELSEWHERE: Mapping[str, Mapping[str, str]] = {
    "tested with Spark": {"cli/bootstrap/sitecustomize": "tests/spark/test_enabled_by_configuration.py"},
    "values without decisions": {
        "expr/compute/values": _COMPUTE,
        "ops/features/engines": "tests/unit/ops/features/test_compat.py",
        "base/error_classes": "tests/unit/test_error_codes.py",
        "settings/dataframe_options": "tests/unit/settings/test_setting.py",
        "settings/property_settings": "tests/unit/settings/test_setting.py",
        "settings/session_settings": "tests/unit/settings/test_setting.py",
        "settings/warn_once": "tests/unit/settings/test_setting.py",
        "coordinator/coordinator": "tests/unit/coordinator/test_sql_coordinator.py",
        "cache": "tests/unit/base/test_cache.py",
        "exceptions": "tests/unit/base/test_exceptions.py",
        "api/process": "tests/unit/uniform/serve/test_warehouse.py",
        "protocol/iceberg_upgrade": "tests/unit/ops/upkeep/test_upgrade_uniform.py",
        "uniform/convert/conversion": "tests/unit/uniform/serve/test_warehouse.py",
        "uniform/serve/folder_changes": "tests/unit/uniform/serve/test_writable_catalog.py",
        "observe/lineage_facts": "tests/unit/observe/test_lineage_events.py",
        "base/json_values": "tests/unit/uniform/formats/test_metadata.py",
        "base/version": "tests/unit/test_public_names.py",
        "base/wording": "tests/unit/cli/shell/test_hints.py",
    },
    "a part of DROP FEATURE, which is tested for each feature through the public API": {
        "ops/features/drop_report": _DROP,
        "ops/features/plain_columns": _DROP,
        "ops/features/removals": _DROP,
    },
    "an encoding used only when variants are reassembled": {
        "schema/variant_bytes": "tests/unit/schema/test_variant_shredding.py",
    },
    "filters implied by one generated column; the tested invariant is that all of them together lose no row": {
        "protocol/column_values/generated_partition": _PARTITIONS,
        "protocol/column_values/monotonic_expressions": _PARTITIONS,
    },
    "an HTML page, whose elements are tested after parsing": {
        "ops/layout/layout_page": "tests/unit/ops/layout/test_table_layout.py",
        "ops/reports/advice": _REPORT,
        "ops/reports/report_facts": _REPORT,
        "ops/reports/report_page": _REPORT,
    },
    "memory use, measured by a benchmark": {
        "snapshot/memory_release": "tests/unit/snapshot/test_read_ahead.py",
    },
    "a command of `tahoe`, whose output and exit code are tested through the command line": {
        "cli/reports/sql": _REPORTS,
        "cli/reports/summaries": _REPORTS,
        "cli/upkeep": _COMMAND,
        "cli/versions": _COMMAND,
        "cli/files": _COMMAND,
        "cli/connections": "tests/interop/test_serve_under_load.py",
    },
    "one of the SQL rules, which are tested together from text to value, against Python and Spark": {
        "expr/compute/decimals": "tests/unit/expr/compute/test_columnar.py",
        "expr/row_condition": "tests/unit/api/test_readable.py",
        "snapshot/read_options": "tests/unit/api/test_readable.py",
        "expr/tree/chains": "tests/unit/expr/test_long.py",
        "expr/tree/coerce": _PARSE,
        "expr/tree/common_types": "tests/unit/expr/tree/test_functions.py",
        "expr/tree/expression": "tests/unit/expr/test_long.py",
        "expr/tree/signatures": "tests/unit/expr/tree/test_functions.py",
    },
    "a step of reading the log, covered by golden tables and by corrupted logs": {
        "log/consistency": _CORRUPTION,
        "log/checkpoints/checkpoint_reader": _REPLAY,
        "log/checkpoints/footer_check": _CORRUPTION,
        "log/checkpoints/parquet_source": "tests/unit/log/test_matching_files.py",
        "log/files/json_columns": "tests/unit/log/files/test_commits.py",
        "log/files/live_files": _REPLAY,
        "log/partition_keys": "tests/unit/log/test_matching_files.py",
        "log/commit_identity": "tests/unit/snapshot/test_snapshot.py",
        "log/tail": _REPLAY,
        "log/totals": "tests/unit/log/test_checksum.py",
        "snapshot/data_reader": "tests/unit/snapshot/test_scan.py",
        "snapshot/file_row_groups": "tests/unit/snapshot/test_arrow_reader.py",
    },
    "a step of writing or cleaning the log, covered by reading the log afterwards": {
        "log/checkpoints/checkpoint_rows": "tests/unit/log/checkpoints/test_checkpoint_writer.py",
        "log/checkpoints/v2_writer": "tests/unit/txn/test_next_checkpoint.py",
        "log/checksum_writer": "tests/unit/log/test_checksum.py",
        "protocol/statistics/bounds": "tests/unit/protocol/statistics/test_collect.py",
        "protocol/statistics/file_statistics": "tests/unit/protocol/statistics/test_collect.py",
        "protocol/statistics/thrift": "tests/unit/protocol/statistics/test_parquet_join.py",
        "protocol/table_state": _REPLAY,
        "txn/commit": "tests/race/test_lost_answers.py",
    },
    "a step of an operation, covered by the resulting rows, in examples and in the model": {
        "ops/merge/explained": _MERGE,
        "ops/merge/match": _MERGE,
        "ops/merge/report": _MERGE,
        "ops/rows/assignments": "tests/unit/ops/rows/test_update.py",
        "ops/rows/engine": "tests/unit/ops/rows/test_delete.py",
        "ops/rows/insert": "tests/unit/api/test_table.py",
        "ops/rows/row_changes": _MODEL,
        "ops/tables/alter": "tests/unit/api/test_table.py",
        "ops/tables/constrain": "tests/unit/ops/write/test_enforce.py",
        "ops/tables/create": "tests/unit/api/test_table.py",
        "ops/check/rules/live_file_rules": "tests/unit/ops/check/test_table_check.py",
        "ops/check/rules/column_values": "tests/unit/ops/check/rules/test_row_rules.py",
        "ops/upkeep/purge": _MODEL,
        "ops/write/rewrite": "tests/unit/ops/upkeep/test_upgrade_uniform.py",
        "protocol/constraints": "tests/unit/ops/write/test_enforce.py",
        "schema/arrow": "tests/unit/ops/write/test_write_and_read.py",
    },
    "a client of a service, tested with that service or with a substitute that speaks its protocol": {
        "tables": "tests/spark/test_delta_table.py",
        "uniform/external/external_table": "tests/interop/test_rogue_writers.py",
        "uniform/external/repair": "tests/interop/test_rogue_writers.py",
    },
    "a step of a conversion, covered by the verifier, which reads the result with another library": {
        "uniform/convert/manifest_draft": "tests/unit/uniform/convert/test_data_manifests.py",
        "uniform/convert/manifest_folder": "tests/unit/uniform/convert/test_data_manifests.py",
    },
    "a part of OPTIMIZE, visible in the table and in its history": {
        "ops/maintenance": _OPTIMIZE,
        "ops/reporting": _REPORT,
        "ops/tables/requests": _OPTIMIZE,
        "ops/layout/cluster_columns": _OPTIMIZE,
        "ops/layout/clustered": _OPTIMIZE,
        "ops/layout/optimize_plan": _OPTIMIZE,
        "ops/layout/optimize_report": _OPTIMIZE,
    },
    "a part of VACUUM, visible in the remaining files": {
        "ops/upkeep/vacuum_files": _VACUUM,
        "ops/upkeep/vacuum_needed": _VACUUM,
        "ops/upkeep/vacuum_plan": _VACUUM,
        "txn/vanished": _VACUUM,
        "testing/aged_store": _VACUUM,
        "testing/modelled_table": "tests/unit/testing/test_table_machine.py",
    },
    "a part of CONVERT TO DELTA or CLONE, visible in the table": {
        "ops/copying": _CONVERT,
        "ops/copies/iceberg_columns": _ICEBERG,
        "ops/copies/iceberg_deletes": _ICEBERG,
        "ops/copies/iceberg_snapshot": _ICEBERG,
        "store/iceberg_io": _ICEBERG,
        "ops/copies/parquet_folder": _CONVERT,
        "ops/copies/clone_source": "tests/unit/ops/copies/test_clone.py",
        "ops/copies/copy_files": "tests/unit/ops/copies/test_clone.py",
        "ops/copies/partition_schema": "tests/unit/ops/copies/test_hive_paths.py",
    },
    "a part of writing files, covered by reading them back": {
        "ops/write/stored_layout": "tests/unit/ops/write/test_writer.py",
    },
    "a part of ALTER TABLE for columns, visible in the table": {
        "ops/tables/altering": _COLUMNS,
        "ops/tables/dependents": _COLUMNS,
    },
    "rules of the strict check, each violated on purpose in one list of tables": {
        "ops/check/subjects/replayed_log": _STRICT,
        "ops/check/subjects/raw_log": _STRICT,
        "ops/check/subjects/rule": _STRICT,
        "ops/check/subjects/table_settings": _STRICT,
        "ops/check/rules/checkpoint_rules": _STRICT,
        "ops/check/rules/commit_rules": _STRICT,
        "ops/check/rules/data_rules": _STRICT,
        "ops/check/rules/file_rules": _STRICT,
        "ops/check/rules/history_rules": _STRICT,
        "ops/check/rules/iceberg_rules": _STRICT,
        "ops/check/rules/log_rules": _STRICT,
        "ops/check/rules/member_rules": _STRICT,
        "ops/check/rules/protocol_rules": _STRICT,
        "ops/check/rules/schema_rules": _STRICT,
        "ops/check/rules/checksum_rules": _STRICT,
    },
}
