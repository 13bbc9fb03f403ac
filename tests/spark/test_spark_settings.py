"""Settings of Spark that must not change what Delta statements do: the outcomes are those of a session with its defaults."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tahoe import Table
from tests.session_settings import with_settings

SETTINGS = {
    "double-quoted identifiers": {"spark.sql.ansi.doubleQuotedIdentifiers": "true"},
    "reserved words": {"spark.sql.ansi.enforceReservedKeywords": "true"},
    "names with case": {"spark.sql.caseSensitive": "true"},
    "names as patterns": {"spark.sql.parser.quotedRegexColumnNames": "true"},
    "reader of rows": {"spark.sql.parquet.enableVectorizedReader": "false"},
    "no nested columns in batches": {"spark.sql.parquet.enableNestedColumnVectorizedReader": "false"},
    "cost-based optimizer": {"spark.sql.cbo.enabled": "true", "spark.sql.cbo.planStats.enabled": "true"},
    "missing files ignored": {"spark.sql.files.ignoreMissingFiles": "true", "spark.sql.files.ignoreCorruptFiles": "true"},
    "schemas of files": {"spark.sql.parquet.mergeSchema": "true"},
    "no pushed filters": {"spark.sql.parquet.filterPushdown": "false"},
    "tiny partitions": {"spark.sql.files.maxPartitionBytes": "500", "spark.sql.files.openCostInBytes": "1"},
    "INT96": {"spark.sql.parquet.outputTimestampType": "INT96"},
    "milliseconds": {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS"},
    "old calendar": {
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
    },
    "old Parquet": {"spark.sql.parquet.writeLegacyFormat": "true"},
    "bytes as texts": {"spark.sql.parquet.binaryAsString": "true"},
    "old parser of times": {"spark.sql.legacy.timeParserPolicy": "LEGACY"},
    "Arrow in functions": {"spark.sql.execution.pythonUDF.arrow.enabled": "true"},
    "no generated code": {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"},
    "no broadcasts": {"spark.sql.autoBroadcastJoinThreshold": "-1"},
    "many partitions": {"spark.sql.shuffle.partitions": "11"},
    "one row a file": {"spark.sql.files.maxRecordsPerFile": "1"},
    "no types of partitions": {"spark.sql.sources.partitionColumnTypeInference.enabled": "false"},
    "Delta by default": {"spark.sql.sources.default": "delta"},
    "no V1 sources": {"spark.sql.sources.useV1SourceList": ""},
    "no variables in texts": {"spark.sql.variable.substitute": "false"},
    "fewer rules": {
        "spark.sql.optimizer.excludedRules": ",".join(
            f"org.apache.spark.sql.catalyst.optimizer.{rule}"
            for rule in ("ConstantFolding", "CollapseProject", "PushDownPredicates", "ColumnPruning", "ConvertToLocalRelation")
        )
    },
}
COLUMNS = (
    "id BIGINT, s STRING, d DATE, ts TIMESTAMP, x DOUBLE, m DECIMAL(10, 2), st STRUCT<a: INT, b: STRING>, c CHAR(3), bin BINARY, "
    "y INT GENERATED ALWAYS AS (YEAR(d))"
)
PROPERTIES = "delta.enableDeletionVectors = true, delta.enableChangeDataFeed = true"
STATEMENTS = (
    f"CREATE TABLE {{t}} ({COLUMNS}) USING delta PARTITIONED BY (d) TBLPROPERTIES ({PROPERTIES})",
    """INSERT INTO {t} (id, s, d, ts, x, m, st, c, bin) VALUES
    (1, 'a', DATE'2024-01-01', TIMESTAMP'2024-01-01 10:00:00', 1.5D, 1.25BD, named_struct('a', 1, 'b', 'x'), 'ab', X'00FF'),
    (2, NULL, DATE'1500-03-01', TIMESTAMP'1500-03-01 10:00:00', double('NaN'), NULL, NULL, NULL, NULL),
    (3, 'C', NULL, TIMESTAMP'2024-07-01 10:00:00', -0.0D, 3.00BD, named_struct('a', NULL, 'b', 'y'), 'xyz', X'')""",
    """INSERT INTO {t} (id, s, d, x) SELECT id + 10, concat('s', id), DATE'2024-02-01', CAST(id AS DOUBLE) FROM range(12)""",
    "DELETE FROM {t} WHERE id % 5 = 0 AND id > 10",
    "UPDATE {t} SET s = concat(s, '!'), st.a = st.a + 1, x = id / 2 WHERE id IN (1, 2, 12, 13)",
    """MERGE INTO {t} USING (SELECT id + 11 AS id, 'm' AS s, DATE'2024-03-01' AS d FROM range(12)) u ON {t}.id = u.id
    WHEN MATCHED AND {t}.id < 14 THEN UPDATE SET s = u.s WHEN MATCHED AND {t}.id = 16 THEN DELETE
    WHEN NOT MATCHED THEN INSERT (id, s, d) VALUES (u.id, u.s, u.d)
    WHEN NOT MATCHED BY SOURCE AND {t}.id = 1 THEN UPDATE SET c = 'nms'""",
    "OPTIMIZE {t} ZORDER BY (id, s)",
)
QUERIES = (
    "SELECT * FROM {t}",
    "SELECT id FROM {t} WHERE d = '2024-01-01' OR d < DATE'1600-01-01' OR ts > TIMESTAMP'2024-06-01 00:00:00' OR c = 'nms'",
    "SELECT count(*), count(s), min(id), max(id), min(ts), max(x), max(d) FROM {t}",
    "SELECT id, s, x, _change_type, _commit_version FROM table_changes('{t}', 1)",
    "SELECT count(*), sum(id) FROM {t} VERSION AS OF 2",
)


def outcomes(spark: SparkSession, folder: Path) -> list[list[str]]:
    table = f"delta.`{folder}`"
    for statement in STATEMENTS:
        # MERGE names columns by an alias, since a path has no short name.
        spark.sql(
            statement.replace("MERGE INTO {t}", f"MERGE INTO {table} t").replace("{t}.", "t.").replace("{t}", table)
        ).collect()
    answers = [
        query.replace("table_changes('{t}'", f"table_changes_by_path('{folder}'").replace("{t}", table) for query in QUERIES
    ]
    rows = [sorted(str(tuple(row)) for row in spark.sql(answer).collect()) for answer in answers]
    assert Table(folder).check(deep=True, strict=True) == []
    return rows


@pytest.fixture(scope="module")
def expected(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    rows = outcomes(spark, tmp_path_factory.mktemp("settings") / "t")
    assert [len(answer) for answer in rows] == [15, 3, 1, 37, 1]
    return rows


@pytest.mark.long
@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_of_spark_changes_no_outcome(spark: SparkSession, tmp_path: Path, expected: list[list[str]], name: str) -> None:
    with with_settings(spark, SETTINGS[name]):
        assert outcomes(spark, tmp_path / "t") == expected
