"""Every statement that reaches a Delta table, as lives of tables: each begins with none, and its statements follow one another.

A text may name ``{t}``, the table, by its name or by its path; ``{location}``, where an external table is made; ``{o}``, a second table,
which is made and dropped by the life itself; ``{path}``, the table's folder; ``{folder}``, one to put other tables in. The view ``src`` has
the rows of `SOURCE`. What the reference makes of each stands in ``reference.json`` beside this file (`tests.statements.observed`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["KINDS", "LIVES", "SOURCE", "Step"]

KINDS = ("managed", "external", "path")
"""How a table is made and named: by a name in the warehouse, by a name and a location, by its path alone."""

SOURCE = "SELECT * FROM VALUES (1, 'one', 10), (2, 'two', 20), (9, 'nine', 90) AS src(id, name, n)"


@dataclass(frozen=True)
class Step:
    """One statement.

    Args:
        kinds: for which it is given; by default for all.
        answer: which columns of what it answers are compared; all by default, and none but their names for ``()``.
    """

    text: str
    kinds: Sequence[str] = KINDS
    answer: Sequence[str] | None = None


NAMED = ("managed", "external")


def named(text: str) -> Step:
    """For tables that have a name."""
    return Step(text, NAMED)


def _told(text: str, *columns: str) -> Step:
    return Step(text, KINDS, columns)


MADE = "CREATE TABLE {t} (id INT, name STRING, n INT) USING delta {location}"
FILLED = "INSERT INTO {t} VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3), (4, NULL, 4)"
PARTITIONED = "CREATE TABLE {t} (id INT, name STRING, p INT) USING delta PARTITIONED BY (p) {location}"
IN_PARTITIONS = "INSERT INTO {t} VALUES (1, 'a', 0), (2, 'b', 0), (3, 'c', 1), (4, 'd', 2)"
DETAIL = ("format", "name", "description", "location", "partitionColumns", "clusteringColumns", "numFiles", "properties",
          "minReaderVersion", "minWriterVersion", "tableFeatures")  # fmt: skip

_ROWS = [
    FILLED,
    "DELETE FROM {t} WHERE id = 1",
    "DELETE FROM {t} WHERE name IS NULL OR id > 100",
    "DELETE FROM {t} WHERE id > 100",
    "UPDATE {t} SET name = upper(name), n = n + 1 WHERE id = 2",
    "UPDATE {t} SET n = 0 WHERE id > 100",
    "UPDATE {t} SET n = n * 10",
    "MERGE INTO {t} t USING src s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    "MERGE INTO {t} AS t USING src AS s ON t.id = s.id WHEN MATCHED AND s.n > 80 THEN DELETE WHEN MATCHED THEN UPDATE SET t.n = s.n + 1 "
    "WHEN NOT MATCHED BY TARGET AND s.id > 100 THEN INSERT (id, name) VALUES (s.id, 'new') "
    "WHEN NOT MATCHED BY SOURCE AND t.id = 3 THEN UPDATE SET name = 'left' WHEN NOT MATCHED BY SOURCE THEN DELETE",
    "MERGE INTO {t} t USING src s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (n, id) VALUES (s.n, s.id)",
    "MERGE INTO {t} t USING src s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "MERGE WITH SCHEMA EVOLUTION INTO {t} t USING (SELECT *, 'x' AS extra FROM src) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
    "MERGE INTO {t} t USING src s ON t.id > 0 WHEN MATCHED THEN UPDATE SET n = s.n",
    "DELETE FROM {t}",
    "INSERT INTO {t} (id) VALUES (1)",
    "TRUNCATE TABLE {t}",
    "SELECT * FROM {t} VERSION AS OF 1",
]

LIVES: Mapping[str, Sequence[str | Step]] = {
    "creation": [
        "CREATE TABLE {t} (id BIGINT NOT NULL COMMENT 'key', day DATE, n INT) USING delta PARTITIONED BY (day) {location} "
        "COMMENT 'of days' TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'team' = 'me')",
        "CREATE TABLE IF NOT EXISTS {t} (other INT) USING delta",
        "CREATE TABLE {t} (id INT) USING delta {location}",
        "INSERT INTO {t} VALUES (1, DATE'2024-01-01', 1), (2, DATE'2024-01-02', 2)",
        "CREATE OR REPLACE TABLE {t} USING delta PARTITIONED BY (odd) AS SELECT id, id % 2 AS odd FROM {t}",
        "REPLACE TABLE {t} USING delta COMMENT 'again' TBLPROPERTIES ('a' = 'b') AS SELECT id + 1 AS id FROM {t} WHERE odd = 0",
        "REPLACE TABLE {t} (name STRING) USING delta",
        "CREATE OR REPLACE TABLE {t} (a INT COMMENT 'x', s STRUCT<b: INT NOT NULL, c: ARRAY<STRING>>) USING delta",
        "SELECT count(*) FROM {t} VERSION AS OF 1",
        Step("CREATE TABLE {o} USING delta AS SELECT 1 AS a", NAMED),
        "DROP TABLE IF EXISTS {o}",
        named("DROP TABLE {t}"),
        named("SELECT * FROM {t}"),
        named("REPLACE TABLE {t} (a INT) USING delta"),
    ],
    "creation from a query": [
        "CREATE TABLE {t} USING delta PARTITIONED BY (n) {location} COMMENT 'c' TBLPROPERTIES ('k' = 'v') AS SELECT * FROM src",
        "CREATE TABLE {t} USING delta {location} AS SELECT 1 AS id",
        "CREATE TABLE IF NOT EXISTS {t} USING delta AS SELECT 1 AS id",
        "CREATE OR REPLACE TABLE {t} USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true') AS SELECT id, name FROM src",
        "DELETE FROM {t} WHERE id = 1",
        "CREATE OR REPLACE TABLE {t} USING delta AS SELECT * FROM src WHERE id > 100",
        "INSERT INTO {t} SELECT * FROM src",
    ],
    "likeness and adoption": [
        "CREATE TABLE {t} (id INT NOT NULL COMMENT 'c', p STRING) USING delta PARTITIONED BY (p) {location} COMMENT 't' "
        "TBLPROPERTIES ('delta.checkpointInterval' = '5')",
        "INSERT INTO {t} VALUES (1, 'a')",
        named("CREATE TABLE {o} LIKE {t}"),
        named("DESCRIBE {o}"),
        Step("DESCRIBE DETAIL {o}", NAMED, ("format", "description", "partitionColumns", "properties", "numFiles")),
        "DROP TABLE IF EXISTS {o}",
        "CREATE TABLE {o} USING delta LOCATION '{path}'",
        "SELECT * FROM {o}",
        "INSERT INTO {o} VALUES (2, 'b')",
        "DESCRIBE {o}",
        "DROP TABLE {o}",
        "CREATE TABLE {o} (id INT, other STRING) USING delta LOCATION '{path}'",
        "CREATE TABLE {o} (id INT NOT NULL COMMENT 'c', p STRING) USING delta PARTITIONED BY (p) LOCATION '{path}'",
        "CREATE TABLE {o} USING delta LOCATION '{folder}/nothing'",
        "DROP TABLE IF EXISTS {o}",
        "SELECT * FROM {t}",
    ],
    "inserts": [
        MADE,
        FILLED,
        "INSERT INTO TABLE {t} SELECT * FROM src",
        "INSERT INTO {t} (n, id) VALUES (7, 70)",
        "INSERT INTO {t} BY NAME SELECT 'x' AS name, 8 AS id, 9 AS n",
        "INSERT INTO {t} BY NAME SELECT 'y' AS name, 80 AS id",
        "INSERT INTO {t} VALUES (1, 'too few')",
        "INSERT INTO {t} VALUES (1, 'a', 2, 'too many')",
        "INSERT INTO {t} (id, nope) VALUES (1, 2)",
        "INSERT INTO {t} VALUES ('no number', 'a', 1)",
        "INSERT INTO {t} VALUES (3000000000, 'a', 1)",
        "INSERT INTO {t} VALUES (5L, 6, 1.0)",
        "INSERT INTO {t} VALUES (DEFAULT, 'd', DEFAULT)",
        "INSERT INTO {t} TABLE src",
        "INSERT INTO {t} SELECT * FROM src WHERE false",
        "INSERT INTO {t} REPLACE WHERE id > 50 SELECT 90, 'replaced', 1",
        "INSERT INTO {t} REPLACE WHERE id > 50 SELECT 1, 'elsewhere', 1",
        "INSERT OVERWRITE {t} SELECT id, name, n FROM src WHERE n < 50",
        "INSERT OVERWRITE TABLE {t} VALUES (1, 'only', 1)",
        "INSERT OVERWRITE {t} BY NAME SELECT 2 AS n, 1 AS id, 'named' AS name",
    ],
    "inserts into partitions": [
        PARTITIONED,
        IN_PARTITIONS,
        "INSERT INTO {t} PARTITION (p = 3) VALUES (5, 'e')",
        "INSERT INTO {t} PARTITION (p = 3) (name, id) VALUES ('f', 6)",
        "INSERT OVERWRITE {t} PARTITION (p = 0) SELECT 10, 'z'",
        "INSERT OVERWRITE {t} PARTITION (p) VALUES (7, 'g', 1)",
        IN_PARTITIONS,
        "INSERT INTO {t} REPLACE WHERE p = 1 SELECT 11, 'r', 1",
        "SET spark.sql.sources.partitionOverwriteMode=dynamic",
        "INSERT OVERWRITE {t} VALUES (12, 'dyn', 2)",
        "INSERT OVERWRITE {t} PARTITION (p) VALUES (13, 'dyn', 1)",
        "INSERT OVERWRITE {t} PARTITION (p = 1) VALUES (14, 'stat')",
        "SET spark.sql.sources.partitionOverwriteMode=static",
        "INSERT OVERWRITE {t} VALUES (15, 'all', 5)",
    ],
    "rows": [MADE, *_ROWS],
    "rows with deletion vectors": [f"{MADE} TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')", *_ROWS],
    "rows with a change feed": [
        f"{MADE} TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
        FILLED,
        "DELETE FROM {t} WHERE id = 1",
        "UPDATE {t} SET name = upper(name), n = n + 1 WHERE id = 2",
        "MERGE INTO {t} t USING src s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        "INSERT INTO {t} REPLACE WHERE id > 3 SELECT 9, 'nine', 1",
        named("SELECT id, name, n, _change_type, _commit_version FROM table_changes('{t}', 2)"),
        named("SELECT id, _change_type FROM table_changes('{t}', 1, 2)"),
        "SELECT id, _change_type, _commit_version FROM table_changes_by_path('{path}', 3)",
        "SELECT * FROM table_changes_by_path('{path}', 100)",
    ],
    "rows of partitions": [
        PARTITIONED,
        IN_PARTITIONS,
        "DELETE FROM {t} WHERE p = 0",
        "DELETE FROM {t} WHERE p = 1 AND id = 3",
        "UPDATE {t} SET p = 7 WHERE p = 2",
        "MERGE INTO {t} t USING src s ON t.id = s.id AND t.p = 7 WHEN MATCHED THEN UPDATE SET name = s.name "
        "WHEN NOT MATCHED THEN INSERT (id, name, p) VALUES (s.id, s.name, 8)",
        "SELECT * FROM {t} WHERE p = 8",
        Step("SHOW PARTITIONS {t}"),
        Step("SHOW PARTITIONS {t} PARTITION (p = 8)"),
        "TRUNCATE TABLE {t} PARTITION (p = 8)",
        "ALTER TABLE {t} ADD PARTITION (p = 100)",
        "ALTER TABLE {t} DROP PARTITION (p = 8)",
        "ALTER TABLE {t} RECOVER PARTITIONS",
    ],
    "constraints": [
        "CREATE TABLE {t} (id INT NOT NULL, n INT) USING delta {location}",
        "INSERT INTO {t} VALUES (1, 1)",
        "INSERT INTO {t} VALUES (NULL, 1)",
        "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (n > 0)",
        "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (n > 1)",
        "ALTER TABLE {t} ADD CONSTRAINT large CHECK (n > 100)",
        "INSERT INTO {t} VALUES (2, -1)",
        "UPDATE {t} SET n = -1",
        "ALTER TABLE {t} DROP CONSTRAINT positive",
        "ALTER TABLE {t} DROP CONSTRAINT positive",
        "ALTER TABLE {t} DROP CONSTRAINT IF EXISTS positive",
        "INSERT INTO {t} VALUES (2, -1)",
        "ALTER TABLE {t} ALTER COLUMN id DROP NOT NULL",
        "INSERT INTO {t} VALUES (NULL, 1)",
        "ALTER TABLE {t} ALTER COLUMN id SET NOT NULL",
    ],
    "columns": [
        "CREATE TABLE {t} (id INT, s STRUCT<a: INT, b: STRING>, n SMALLINT) USING delta {location}",
        "INSERT INTO {t} VALUES (1, named_struct('a', 1, 'b', 'x'), 3)",
        "ALTER TABLE {t} ADD COLUMN c DOUBLE",
        "ALTER TABLE {t} ADD COLUMNS (d STRING COMMENT 'dd' FIRST, e INT AFTER id)",
        "ALTER TABLE {t} ADD COLUMN s.z INT FIRST",
        "ALTER TABLE {t} ADD COLUMN id INT",
        "ALTER TABLE {t} ADD COLUMN f INT NOT NULL",
        "ALTER TABLE {t} ADD COLUMN f INT DEFAULT 3",
        "ALTER TABLE {t} ALTER COLUMN c COMMENT 'new'",
        "ALTER TABLE {t} ALTER COLUMN d AFTER c",
        "ALTER TABLE {t} ALTER COLUMN s.z AFTER a",
        "ALTER TABLE {t} CHANGE COLUMN d d STRING COMMENT 'again' FIRST",
        "ALTER TABLE {t} ALTER COLUMN n TYPE INT",
        "ALTER TABLE {t} ALTER COLUMN n TYPE STRING",
        "ALTER TABLE {t} RENAME COLUMN d TO dd",
        "ALTER TABLE {t} DROP COLUMN d",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "ALTER TABLE {t} RENAME COLUMN d TO dd",
        "ALTER TABLE {t} RENAME COLUMN s.a TO aa",
        "ALTER TABLE {t} DROP COLUMN s.b",
        "ALTER TABLE {t} DROP COLUMNS (c, e)",
        "ALTER TABLE {t} DROP COLUMN IF EXISTS nope",
        "ALTER TABLE {t} DROP COLUMN nope",
        "ALTER TABLE {t} REPLACE COLUMNS (id INT, n SMALLINT, s STRUCT<z: INT, aa: INT>, dd STRING, neu INT)",
        "ALTER TABLE {t} REPLACE COLUMNS (id STRING)",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
        "ALTER TABLE {t} ALTER COLUMN n TYPE INT",
        "INSERT INTO {t} VALUES (2, 100000, named_struct('z', 1, 'aa', 2), 'd', 5)",
    ],
    "properties": [
        f"{MADE} COMMENT 'first'",
        "ALTER TABLE {t} SET TBLPROPERTIES ('k' = 'v', 'delta.appendOnly' = 'true')",
        "DELETE FROM {t} WHERE id = 1",
        "SHOW TBLPROPERTIES {t}",
        "SHOW TBLPROPERTIES {t} ('k')",
        "SHOW TBLPROPERTIES {t} ('nope')",
        "ALTER TABLE {t} UNSET TBLPROPERTIES ('delta.appendOnly')",
        "ALTER TABLE {t} UNSET TBLPROPERTIES ('nope')",
        "ALTER TABLE {t} UNSET TBLPROPERTIES IF EXISTS ('nope', 'k')",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.nope' = '1')",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.checkpointInterval' = '0')",
        "COMMENT ON TABLE {t} IS 'second'",
        "COMMENT ON TABLE {t} IS NULL",
        "ALTER TABLE {t} SET TBLPROPERTIES ('comment' = 'third')",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5')",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.feature.deletionVectors' = 'supported')",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
        "ALTER TABLE {t} SET SERDEPROPERTIES ('a' = 'b')",
        "SHOW TBLPROPERTIES {t}",
    ],
    "places": [
        MADE,
        FILLED,
        "CREATE TABLE {o} USING delta LOCATION '{folder}/second' AS SELECT 100 AS id, 'there' AS name, 1 AS n",
        named("ALTER TABLE {t} SET LOCATION '{folder}/second'"),
        named("SELECT * FROM {t}"),
        Step("ALTER TABLE {t} SET LOCATION '{folder}/second'", ("path",)),
        "DROP TABLE {o}",
        named("ALTER TABLE {t} SET LOCATION '{path}'"),
        named("ALTER TABLE {t} RENAME TO {o}"),
        named("SELECT * FROM {o}"),
        named("ALTER TABLE {o} RENAME TO {t}"),
        Step("ALTER TABLE {t} RENAME TO {o}", ("path",)),
        "SELECT * FROM {t}",
    ],
    "what it tells": [
        "CREATE TABLE {t} (id INT NOT NULL COMMENT 'key', s STRUCT<a: INT>, p DATE) USING delta PARTITIONED BY (p) {location} "
        "COMMENT 'told' TBLPROPERTIES ('k' = 'v')",
        "INSERT INTO {t} VALUES (1, named_struct('a', 1), DATE'2024-01-01'), (2, NULL, NULL)",
        "DESCRIBE {t}",
        "DESCRIBE TABLE {t} id",
        "DESCRIBE EXTENDED {t} id",
        "DESCRIBE {t} s.a",
        "DESCRIBE {t} nope",
        _told("DESCRIBE EXTENDED {t}"),
        _told("DESCRIBE DETAIL {t}", *DETAIL),
        _told("DESCRIBE DETAIL '{path}'", *DETAIL),
        _told("DESCRIBE HISTORY {t}", "version", "operation", "readVersion", "isolationLevel", "isBlindAppend", "userMetadata"),
        _told("DESCRIBE HISTORY {t} LIMIT 1", "version", "operation"),
        _told("DESCRIBE HISTORY '{path}' LIMIT 1", "version", "operation"),
        "SHOW COLUMNS IN {t}",
        "SHOW PARTITIONS {t}",
        Step("SHOW TABLES LIKE '{bare}'", NAMED, ("tableName", "isTemporary")),
        "SHOW CREATE TABLE {t}",
        "ANALYZE TABLE {t} COMPUTE STATISTICS",
        "REFRESH TABLE {t}",
        "SELECT id, p FROM {t} WHERE p IS NULL",
        "SELECT count(DISTINCT _metadata.file_name), max(_metadata.row_index) FROM {t}",
        "SELECT count(*) FROM {t} VERSION AS OF 0",
        "SELECT count(*) FROM {t} FOR SYSTEM_VERSION AS OF 1",
        "SELECT count(*) FROM {t} TIMESTAMP AS OF current_timestamp()",
        "SELECT count(*) FROM {t} VERSION AS OF 100",
        "SELECT count(*) FROM {t} TIMESTAMP AS OF '2001-01-01'",
        "SELECT count(*) FROM delta.`{path}`",
        "SELECT count(*) FROM delta.`{path}@v0`",
        Step("SELECT count(*) FROM {database}.`{bare}@v0`", NAMED),
        "CREATE OR REPLACE TEMP VIEW seen AS SELECT id FROM {t}",
        "INSERT INTO {t} VALUES (3, NULL, NULL)",
        "SELECT * FROM seen",
        "DROP VIEW seen",
        named("CREATE VIEW {o} AS SELECT id FROM {t} WHERE id > 1"),
        named("SELECT * FROM {o}"),
        named("DROP VIEW {o}"),
    ],
    "refused creations": [
        "CREATE TABLE {t} (id INT) USING delta CLUSTERED BY (id) INTO 3 BUCKETS {location}",
        "CREATE TABLE {t} (at TIMESTAMP) USING delta PARTITIONED BY (years(at)) {location}",
        "CREATE TABLE {t} (id INT) USING delta PARTITIONED BY (nowhere) {location}",
        "CREATE TABLE {t} (id INT) USING delta PARTITIONED BY (id) {location}",
        "CREATE TABLE {t} (id INT, ID INT) USING delta {location}",
        "CREATE TABLE {t} (id INT) USING delta {location} TBLPROPERTIES ('delta.nope' = '1')",
        "CREATE TABLE {t} (id INT) USING delta {location} TBLPROPERTIES ('delta.feature.nope' = 'supported')",
        "CREATE TABLE {t} (`a b` INT) USING delta {location}",
        "CREATE TABLE {t} USING delta {location} AS SELECT nowhere",
        "CREATE TABLE {t} USING delta {location} AS SELECT 1 AS a, 2 AS a",
        "CREATE TABLE {t} USING delta {location} AS SELECT interval 1 year AS i",
        "CREATE OR REPLACE TABLE {t} USING delta {location}",
        "DESCRIBE DETAIL {t}",
        "DESCRIBE HISTORY {t}",
        "DELETE FROM {t}",
        "MERGE INTO {t} t USING src s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "INSERT INTO {t} VALUES (1)",
        "ALTER TABLE {t} ADD COLUMN a INT",
    ],
    "upkeep": [
        PARTITIONED,
        IN_PARTITIONS,
        "INSERT INTO {t} VALUES (5, 'e', 0), (6, 'f', 1)",
        _told("OPTIMIZE {t} WHERE p = 0", "path"),
        _told("OPTIMIZE {t} WHERE id = 1", "path"),
        _told("OPTIMIZE {t}", "path"),
        _told("OPTIMIZE '{path}'", "path"),
        _told("OPTIMIZE {t} ZORDER BY (id, name)", "path"),
        _told("OPTIMIZE {t} WHERE p = 1 ZORDER BY id", "path"),
        _told("OPTIMIZE {t} ZORDER BY (p)", "path"),
        _told("OPTIMIZE {t} ZORDER BY (nope)", "path"),
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        "DELETE FROM {t} WHERE id = 1",
        _told("REORG TABLE {t} WHERE p = 0 APPLY (PURGE)", "path"),
        _told("REORG TABLE {t} APPLY (PURGE)", "path"),
    ],
    "clustering": [
        "CREATE TABLE {t} (id INT, name STRING, n INT, s STRUCT<x: INT>, a ARRAY<INT>) USING delta CLUSTER BY (id, n) {location}",
        _told("DESCRIBE DETAIL {t}", *DETAIL),
        "INSERT INTO {t} VALUES (1, 'a', 1, named_struct('x', 1), array(1)), (2, 'b', 2, named_struct('x', 2), NULL)",
        "INSERT INTO {t} VALUES (3, 'c', 3, named_struct('x', 3), NULL)",
        _told("OPTIMIZE {t}", "path"),
        _told("OPTIMIZE {t}", "path"),
        _told("OPTIMIZE {t} WHERE id = 1", "path"),
        _told("OPTIMIZE {t} ZORDER BY (id)", "path"),
        "ALTER TABLE {t} CLUSTER BY (nope)",
        "ALTER TABLE {t} CLUSTER BY (id, ID)",
        "ALTER TABLE {t} CLUSTER BY (a)",
        "ALTER TABLE {t} CLUSTER BY (s)",
        "ALTER TABLE {t} CLUSTER BY (id, name, n, s, a)",
        "ALTER TABLE {t} CLUSTER BY (name, n)",
        _told("DESCRIBE DETAIL {t}", *DETAIL),
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "ALTER TABLE {t} RENAME COLUMN name TO title",
        "ALTER TABLE {t} DROP COLUMN n",
        _told("OPTIMIZE {t} FULL", "path"),
        _told("DESCRIBE DETAIL {t}", *DETAIL),
        "DELETE FROM {t} WHERE id = 1",
        "ALTER TABLE {t} CLUSTER BY NONE",
        _told("OPTIMIZE {t} FULL", "path"),
        _told("DESCRIBE DETAIL {t}", *DETAIL),
        _told("RESTORE TABLE {t} TO VERSION AS OF 0", "num_restored_files"),
        _told("DESCRIBE DETAIL {t}", *DETAIL),
        "CREATE OR REPLACE TABLE {t} (id INT, p INT) USING delta PARTITIONED BY (p)",
        "CREATE OR REPLACE TABLE {t} USING delta CLUSTER BY (id) AS SELECT 1 AS id, 2 AS n",
        _told("DESCRIBE DETAIL {t}", *DETAIL),
        "CREATE OR REPLACE TABLE {t} (id INT) USING delta",
        _told("DESCRIBE DETAIL {t}", *DETAIL),
        "SELECT * FROM {t}",
    ],
}
