"""Common mistakes on Spark: statements, the error class of each, and texts that its printed error contains.

The names of the statements are those of `tests.spark.test_mistakes.world`. The texts are the table, and the version, column, file or remedy.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mistake:
    """A statement, the class of its error (`getCondition`), and texts of the printed error."""

    statement: str
    code: str
    texts: tuple[str, ...]


def _mistakes(*rows: tuple[str, str, tuple[str, ...]]) -> list[Mistake]:
    return [Mistake(*row) for row in rows]


_UNRESOLVED = "UNRESOLVED_COLUMN.WITH_SUGGESTION"
_IN_MERGE = "DELTA_MERGE_UNRESOLVED_EXPRESSION"
_STREAM = (
    'stream({}).writeStream.format("noop").option("checkpointLocation", {}).trigger(availableNow=True).start().awaitTermination()'
)

CHANGED_ROWS = _mistakes(
    (
        'spark.sql("MERGE INTO orders t USING updates s ON t.id = s.idd WHEN MATCHED THEN UPDATE SET *")',
        _IN_MERGE,
        ("/orders: ", "`s`.`idd`", "Did you mean one of the following? [`s`.`id`"),
    ),
    (
        'spark.sql("MERGE INTO orders t USING updates s ON t.id = s.id WHEN MATCHED THEN UPDATE SET nme = s.name")',
        _IN_MERGE,
        ("/orders: ", "`nme`", "Did you mean 'name'?"),
    ),
    (
        'spark.sql("MERGE INTO orders t USING updates s ON t.id = s.id")',
        "MERGE_WITHOUT_WHEN",
        ("mistakes.orders", "at least one WHEN"),
    ),
    (
        'spark.sql("MERGE INTO orders t USING updates s ON t.id = s.id WHEN MATCHED THEN UPDATE")',
        "PARSE_SYNTAX_ERROR",
        ("mistakes.orders", "end of input"),
    ),
    (
        'spark.sql("MERGE INTO orders t USING twice s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name")',
        "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
        ("/orders: ", "Remove duplicates from the source"),
    ),
    ("spark.sql(\"UPDATE orders SET nme = 'x'\")", _UNRESOLVED, ("`nme`", "`orders`.`name`")),
    ('spark.sql("UPDATE orders SET name = nam WHERE id = 1")', _UNRESOLVED, ("/orders", "`nam`", "[`name`")),
    ("spark.sql(\"UPDATE orders SET id = 5 / 'x'\")", "CAST_INVALID_INPUT", ("UPDATE orders", "The value 'x'", "try_cast")),
    ("spark.sql(\"DELETE FROM orders WHERE nam = 'a'\")", _UNRESOLVED, ("/orders", "`nam`", "[`name`")),
    ('spark.sql("DELETE FROM order_s WHERE id = 1")', "TABLE_OR_VIEW_NOT_FOUND", ("`order_s`", "Verify the spelling")),
    ('spark.sql(f"DELETE FROM delta.`{root}/nothing` WHERE id = 1")', "PATH_NOT_FOUND", ("/nothing", "Check the path")),
    (
        'spark.sql("DELETE FROM only_appended WHERE id = 1")',
        "DELTA_CANNOT_MODIFY_APPEND_ONLY",
        ("/only_appended", "Unset the property"),
    ),
    ("spark.sql(\"INSERT INTO orders (id, nme) VALUES (1, 'a')\")", _UNRESOLVED, ("mistakes.orders", "`nme`", "`name`")),
    (
        "spark.sql(\"INSERT INTO orders VALUES (1, 'a')\")",
        "DELTA_INSERT_COLUMN_ARITY_MISMATCH",
        ("orders: the table has 3 columns, and the query gives 2", "Give all of them"),
    ),
    ("spark.sql(\"INSERT INTO orders VALUES ('x', 'a', NULL)\")", "CAST_INVALID_INPUT", ("'id' of table", "/orders", "cast it")),
    (
        "spark.sql(\"INSERT INTO required VALUES (NULL, 'x')\")",
        "DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
        ("'id'", "/required", "Correct the data"),
    ),
    (
        "spark.sql(\"INSERT INTO checked VALUES (0, 'x', NULL)\")",
        "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
        ("positive", "/checked", "id : 0"),
    ),
    ('spark.sql("UPDATE checked SET id = -1")', "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", ("positive", "/checked", "id : -1")),
    (
        'spark.sql("INSERT INTO generated VALUES (1, 5)")',
        "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
        ("/generated", "double : 5", "id * 2"),
    ),
    (
        "spark.sql(\"INSERT INTO numbered VALUES (1, 'x')\")",
        "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED",
        ("column id of table", "/numbered", "Leave the column out"),
    ),
    ('orders.merge(updates, "t.id = s.idd").whenMatchedDelete().execute()', _IN_MERGE, ("/orders: ", "`s`.`idd`", "[`s`.`id`")),
    (
        'orders.merge(updates, "t.id = s.id").whenMatchedUpdate(set={"nme": "s.name"}).execute()',
        _IN_MERGE,
        ("/orders: ", "nme", "Did you mean 'name'?"),
    ),
    (
        'orders.merge(updates, "t.id = s.id").whenMatchedUpdate(set={"name": "s.nme"}).execute()',
        _IN_MERGE,
        ("/orders: ", "`s`.`nme`", "[`s`.`name`"),
    ),
    ('orders.merge(updates, "t.id = s.id").execute()', "DELTA_MERGE_MISSING_WHEN", ("/orders: ", "at least one WHEN clause")),
    (
        'orders.merge(updates, "t.id = s.id").whenMatchedUpdate().execute()',
        "TAHOE_WRONG_ARGUMENT",
        ("'set' in whenMatchedUpdate",),
    ),
    ('orders.merge("updates", "t.id = s.id")', "TAHOE_WRONG_ARGUMENT", ("'source' in merge must be DataFrame",)),
    (
        'orders.merge(updates, "id = id").whenMatchedDelete().execute()',
        "AMBIGUOUS_REFERENCE",
        ("could be: [`s`.`id`, `t`.`id`]",),
    ),
    (
        'orders.merge(updates, "t.id = s.id").whenMatchedDelete().whenMatchedUpdateAll().execute()',
        "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION",
        ("/orders: ", "only the last may omit its condition"),
    ),
    ("orders.delete(\"nam = 'a'\")", _UNRESOLVED, ("/orders", "`nam`", "[`name`")),
    ("orders.delete(5)", "TAHOE_WRONG_ARGUMENT", ("'condition' must be a Spark SQL Column or a string",)),
    ('orders.update("id = 1", {"nme": "\'x\'"})', _UNRESOLVED, ("/orders: ", "nme", "Did you mean 'name'?")),
    ('orders.update("id = 1", {"name": "hello"})', _UNRESOLVED, ("/orders", "`hello`")),
)

READS = _mistakes(
    ('spark.table("orders").filter("nam = \'a\'").show()', _UNRESOLVED, ("/orders", "`nam`", "[`name`")),
    ('spark.table("orders").select("nam")', _UNRESOLVED, ("/orders", "`nam`", "[`name`")),
    ('spark.sql("SELECT nam FROM orders")', _UNRESOLVED, ("/orders", "`nam`", "[`name`")),
    ('delta.load(f"{root}/nothing")', "PATH_NOT_FOUND", ("/nothing", "Check the path")),
    ("delta.load(parquet)", "DELTA_TABLE_NOT_FOUND", ("/parquet", "`tahoe convert`")),
    ('spark.sql(f"SELECT * FROM delta.`{parquet}`")', "DELTA_TABLE_NOT_FOUND", ("/parquet", "CONVERT TO DELTA")),
    ("delta.load()", "DELTA_PATH_DOES_NOT_EXIST", ("load(path)",)),
    (
        "delta.load(lost).show()",
        "FAILED_READ_FILE.FILE_NOT_EXIST",
        ("/lost, version 0: Data file 'part-", "FSCK REPAIR TABLE delta.`"),
    ),
    (
        "delta.load(lost).collect()",
        "FAILED_READ_FILE.FILE_NOT_EXIST",
        ("/lost, version 0: Data file 'part-", "FSCK REPAIR TABLE delta.`"),
    ),
    (
        'spark.sql(f"DELETE FROM delta.`{lost}` WHERE id = 1")',
        "FAILED_READ_FILE.FILE_NOT_EXIST",
        ("/lost, version 0: Data file 'part-",),
    ),
    (
        "delta.load(corrupt).collect()",
        "FAILED_READ_FILE.NO_HINT",
        ("/corrupt, version 0: ", "not a Parquet file", "Restore the file"),
    ),
    (
        "delta.load(broken_log)",
        "DELTA_TXN_LOG_FAILED_INTEGRITY",
        ("/broken_log: ", "00000000000000000001.json", "Restore the file"),
    ),
    ("delta.load(newer)", "DELTA_UNSUPPORTED_FEATURES_FOR_READ", ("/newer needs reader features", "Upgrade Tahoe")),
    ('delta.option("versionAsOf", 99).load(path)', "DELTA_VERSION_NOT_FOUND", ("/by_path has no version 99", "0 to 0")),
    (
        'delta.option("versionAsOf", "x").load(path)',
        "DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE",
        ("'versionAsOf' must be a version", "'x'"),
    ),
    (
        'delta.option("timestampAsOf", "2099-01-01").load(path)',
        "DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
        ("/by_path", "2099", "an earlier one"),
    ),
    (
        'delta.option("timestampAsOf", "2001-01-01").load(path)',
        "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
        ("/by_path", "2001", "a later one"),
    ),
    ('delta.option("timestampAsOf", "yesterday").load(path)', "DELTA_TIMESTAMP_INVALID", ("'yesterday'", "Write it as")),
    (
        'spark.sql("SELECT * FROM orders VERSION AS OF 99")',
        "DELTA_VERSION_NOT_FOUND",
        ("/orders has no version 99", "Ask for one"),
    ),
    (
        'delta.option("readChangeFeed", "true").option("startingVersion", 0).load(path).show()',
        "DELTA_MISSING_CHANGE_DATA",
        ("/by_path was not on at version 0", "delta.enableChangeDataFeed"),
    ),
    (
        "spark.sql(\"SELECT * FROM table_changes('orders', 0)\").show()",
        "DELTA_MISSING_CHANGE_DATA",
        ("/orders was not on at version 0", "delta.enableChangeDataFeed"),
    ),
    ('DeltaTable.forPath(spark, f"{root}/nothing")', "DELTA_MISSING_DELTA_TABLE", ("/nothing", "Check the path")),
    ('DeltaTable.forName(spark, "nothing")', "DELTA_MISSING_DELTA_TABLE", ("nothing is not a Delta table", "forPath")),
    (
        'spark.sql("DESCRIBE HISTORY plain_parquet")',
        "DELTA_ONLY_OPERATION",
        ("'plain_parquet' is not a Delta table", "by its name"),
    ),
    ('spark.sql("DESCRIBE HISTORY nothing")', "TABLE_OR_VIEW_NOT_FOUND", ("no table 'nothing'", "Check the name")),
)

WRITES = _mistakes(
    (
        'more.write.format("delta").mode("append").save(path)',
        "DELTA_METADATA_MISMATCH",
        ("/by_path", "'more'", "Set mergeSchema"),
    ),
    (
        'more.selectExpr("CAST(id AS STRING) id").write.format("delta").mode("append").save(path)',
        "DELTA_FAILED_TO_MERGE_FIELDS",
        ("/by_path", "'id' has type long in the table and string", "Cast the data to long"),
    ),
    ('more.write.format("delta").save(path)', "DELTA_PATH_EXISTS", ("/by_path", "mode 'append' or 'overwrite'")),
    (
        'more.write.format("delta").saveAsTable("orders")',
        "TABLE_OR_VIEW_ALREADY_EXISTS",
        ("Table: spark_catalog.mistakes.orders", "Choose a different name"),
    ),
    (
        'more.write.format("delta").mode("overwrite").partitionBy("more").save(path)',
        "DELTA_METADATA_MISMATCH",
        ("/by_path is partitioned by ()", "overwriteSchema"),
    ),
    (
        'rows.write.format("delta").mode("overwrite").option("replaceWhere", "id = 7").save(path)',
        "DELTA_REPLACE_WHERE_MISMATCH",
        ("/by_path", "'id = 7'", "Write only rows"),
    ),
    (
        'rows.write.format("delta").mode("overwrite").option("replaceWhere", "idd = 7").save(path)',
        _UNRESOLVED,
        ("/by_path", "`idd`", "[`id`]"),
    ),
    (
        'rows.write.format("delta").mode("append").option("mergeSchema", "yes").save(path)',
        "DELTA_ILLEGAL_OPTION",
        ("'mergeSchema' must be 'true' or 'false'", "'yes'"),
    ),
    (
        'rows.write.format("delta").partitionBy("idd").save(f"{root}/n1")',
        "DELTA_PARTITION_COLUMN_NOT_FOUND",
        ("'idd'", "Did you mean 'id'?"),
    ),
    (
        'rows.selectExpr("id AS `a b`").write.format("delta").save(f"{root}/n2")',
        "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES",
        ("'a b'", "'delta.columnMapping.mode'"),
    ),
    (
        'rows.write.insertInto("orders")',
        "DELTA_INSERT_COLUMN_ARITY_MISMATCH",
        ("mistakes.orders: the table has 3 columns", "Give all"),
    ),
)

DEFINITIONS = _mistakes(
    (
        'spark.sql("ALTER TABLE orders DROP COLUMN name")',
        "DELTA_UNSUPPORTED_DROP_COLUMN",
        ("/orders", "'delta.columnMapping.mode' = 'name'"),
    ),
    (
        'spark.sql("ALTER TABLE orders RENAME COLUMN name TO title")',
        "DELTA_UNSUPPORTED_RENAME_COLUMN",
        ("/orders", "'delta.columnMapping.mode' = 'name'"),
    ),
    (
        'spark.sql("ALTER TABLE orders ALTER COLUMN id TYPE INT")',
        "NOT_SUPPORTED_CHANGE_COLUMN",
        ("column id of table", "/orders", "overwriteSchema"),
    ),
    (
        'spark.sql("ALTER TABLE orders ADD COLUMN id BIGINT")',
        "FIELD_ALREADY_EXISTS",
        ("/orders: ", "column id", "Choose another name"),
    ),
    ('spark.sql("ALTER TABLE orders RENAME COLUMN nam TO n")', _UNRESOLVED, ("/orders: ", "column nam", "name string")),
    (
        "spark.sql(\"ALTER TABLE orders SET TBLPROPERTIES ('delta.enableChangeDataFed' = 'true')\")",
        "DELTA_UNKNOWN_CONFIGURATION",
        ("Did you mean 'delta.enableChangeDataFeed'?",),
    ),
    (
        "spark.sql(\"ALTER TABLE orders SET TBLPROPERTIES ('delta.appendOnly' = 'yes')\")",
        "TAHOE_TABLE_PROPERTY",
        ("delta.appendOnly needs to be a boolean", "'yes'"),
    ),
    (
        'spark.sql("ALTER TABLE orders ADD CONSTRAINT c CHECK (id > 5)")',
        "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION",
        ("3 rows of table", "/orders", "Correct the rows"),
    ),
    ('spark.sql("ALTER TABLE orders ADD CONSTRAINT c CHECK (idd > 5)")', _UNRESOLVED, ("/orders", "`idd`", "[`id`")),
    ('spark.sql("ALTER TABLE orders DROP CONSTRAINT nope")', "DELTA_CONSTRAINT_DOES_NOT_EXIST", ("/orders", "'nope'")),
    (
        'spark.sql("ALTER TABLE orders CLUSTER BY (nam)")',
        "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
        ("nam", "/orders", "it has id, name, day"),
    ),
    (
        'spark.sql("ALTER TABLE orders DROP FEATURE deletionVector")',
        "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE",
        ("/orders", "Did you mean 'deletionVectors'?"),
    ),
    ('orders.addFeatureSupport("deletionVector")', "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG", ("Did you mean 'deletionVectors'?",)),
    (
        'spark.sql("CREATE TABLE orders (id BIGINT) USING delta")',
        "TABLE_OR_VIEW_ALREADY_EXISTS",
        ("`mistakes`.`orders`", "IF NOT EXISTS"),
    ),
    (
        'spark.sql("CREATE TABLE c1 (id BIGINT) USING delta PARTITIONED BY (day)")',
        "DELTA_PARTITION_COLUMN_NOT_FOUND",
        ("'day'", "the columns are: id"),
    ),
    ('spark.sql("CREATE TABLE c2 (id BIGINT, x INTEGR) USING delta")', "UNSUPPORTED_DATATYPE", ('"INTEGR"', "CREATE TABLE c2")),
    (
        'DeltaTable.create(spark).addColumn("id", "BIGINT").execute()',
        "DELTA_CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION",
        ("tableName('db.name')",),
    ),
    (
        'DeltaTable.create(spark).tableName("orders").addColumn("id", "BIGINT").execute()',
        "TABLE_OR_VIEW_ALREADY_EXISTS",
        ("`mistakes`.`orders`", "Choose a different name"),
    ),
    ('DeltaTable.create(spark).tableName("c3").addColumn("id", "BIGNT").execute()', "PARSE_SYNTAX_ERROR", ("BIGNT",)),
)

UPKEEP = _mistakes(
    (
        'spark.sql("VACUUM orders RETAIN 1 HOURS")',
        "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT",
        ("/orders: ", "at least 168 hours", "retentionDurationCheck.enabled"),
    ),
    ("orders.vacuum(1)", "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT", ("/orders: ", "at least 168 hours")),
    ('orders.vacuum("week")', "TAHOE_WRONG_ARGUMENT", ("'retentionHours' must be a number",)),
    (
        'spark.sql("RESTORE TABLE orders TO VERSION AS OF 99")',
        "DELTA_CANNOT_RESTORE_TABLE_VERSION",
        ("/orders to version 99", "up to 2"),
    ),
    ("orders.restoreToVersion(99)", "DELTA_CANNOT_RESTORE_TABLE_VERSION", ("/orders to version 99", "up to 2")),
    ('orders.restoreToVersion("1")', "TAHOE_WRONG_ARGUMENT", ("version needs to be an int",)),
    ('orders.restoreToTimestamp("2099-01-01")', "DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER", ("/orders", "2099", "an earlier one")),
    (
        'spark.sql("OPTIMIZE orders ZORDER BY (nam)")',
        "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST",
        ("nam", "/orders", "it has id, name, day"),
    ),
    (
        "spark.sql(\"OPTIMIZE orders WHERE name = 'a'\")",
        "DELTA_NON_PARTITION_COLUMN_REFERENCE",
        ("'name'", "/orders", "Leave the column out"),
    ),
    (
        'orders.dropFeatureSupport("appendOnly")',
        "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE",
        ("/orders", "Copy the rows to a new table"),
    ),
)

STREAMS = _mistakes(
    ('spark.readStream.format("delta").load(f"{root}/nothing")', "DELTA_SCHEMA_NOT_SET", ("/nothing", "Check the path")),
    (
        _STREAM.format("path, startingVersion=99", 'f"{root}/k1"'),
        "STREAM_FAILED",
        ("[DELTA_VERSION_NOT_FOUND]", "version 99", "/by_path", "Start at another version"),
    ),
    (
        'stream(path).writeStream.format("delta").start(f"{root}/out")',
        "_LEGACY_ERROR_TEMP_1298",
        ("checkpointLocation must be specified",),
    ),
    (
        _STREAM.format("updated", "checkpoint"),
        "STREAM_FAILED",
        ("[DELTA_SOURCE_TABLE_IGNORE_CHANGES]", "Version 1 of table", "/updated", "'skipChangeCommits'"),
    ),
    (
        _STREAM.format("path", "checkpoint"),
        "STREAM_FAILED",
        ("[DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE]", "/by_path", "checkpoint"),
    ),
)

MISTAKES = [*CHANGED_ROWS, *READS, *WRITES, *DEFINITIONS, *UPKEEP, *STREAMS]
