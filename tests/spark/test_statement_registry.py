"""Statements that Spark's parsers know: each one is registered, and a node or a clause that is not raises an error on a Delta table."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyspark
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import tahoe
from tahoe.base.exceptions import TahoeError, Unsupported
from tahoe.spark.jvm.bridge import Jvm
from tahoe.spark.jvm.compiled import compiled_source
from tahoe.spark.statements import registry
from tahoe.spark.statements.registry import LEFT_TO_SPARK, SPARK_STATEMENTS, spark_statement
from tests.spark.entries import named  # noqa: F401 - a fixture

SQL = "org.apache.spark.sql"
JARS = Path(pyspark.__file__).parent / "jars"
PACKAGES = ("catalyst/plans/logical", "execution/command", "execution/datasources")

# No parser makes these: the analyzer makes them from other statements, or DataFrames do.
NOT_PARSED = {
    *("AppendData", "DeleteFromTableWithFilters", "InsertOnlyMerge", "OverwritePartitionsDynamic", "ReplaceData", "WriteDelta"),
    *("ExternalCommandExecutor", "InsertIntoHadoopFsRelationCommand", "NoopCommand", "SaveAsV1TableCommand"),
}
# The parser takes these apart.
TAKEN_APART = {"CompoundBody", "ExplainCommand"}
KNOWN = LEFT_TO_SPARK | NOT_PARSED | TAKEN_APART | SPARK_STATEMENTS.keys()
# The parser's own records inside of statements.
RECORDS = {
    "catalyst.plans.logical.AlterColumnSpec": "column newDataType newNullability newComment newPosition newDefaultExpression dropDefault "
    "dropComment",
    "catalyst.plans.logical.ColumnDefinition": "name dataType nullable comment defaultValue generationExpression identityColumnSpec metadata",
    "catalyst.plans.logical.DeleteAction": "condition",
    "catalyst.plans.logical.InsertAction": "condition assignments",
    "catalyst.plans.logical.InsertStarAction": "condition",
    "catalyst.plans.logical.QualifiedColType": "path colName dataType nullable comment position default",
    "catalyst.plans.logical.UnresolvedTableSpec": "properties provider optionExpression location comment collation serde "
    "external constraints",
    "catalyst.plans.logical.UpdateAction": "condition assignments fromStar",
    "catalyst.plans.logical.UpdateStarAction": "condition",
}

INVENTED = """
package tahoe;

public class Invented%(number)s extends org.apache.spark.sql.execution.command.ExternalCommandExecutor {
  private final Object about;

  public Invented%(number)s(org.apache.spark.sql.connector.ExternalCommandRunner runner, Object about) {
    super(runner, "invented", null);
    this.about = about;
  }

  public int productArity() { return 1; }
  public Object productElement(int place) { return about; }
  public scala.collection.Iterator productIterator() { return scala.collection.Iterator$.MODULE$.single(about); }
  public scala.collection.Iterator productElementNames() { return scala.collection.Iterator$.MODULE$.single("about"); }
  public Object about() { return about; }
}
"""


def statement_classes(spark: SparkSession) -> Iterator[object]:
    """The classes of Spark's JARs that are statements and not abstract."""
    jvm = Jvm.of(spark)
    loader = jvm.java_class("org.apache.spark.util.Utils").getContextOrSparkClassLoader()
    find = jvm.java_class("java.lang.Class").forName
    kinds = [
        find(f"{SQL}.catalyst.plans.logical.{name}", False, loader) for name in ("Command", "ParsedStatement", "InsertIntoDir")
    ]
    for jar in (*JARS.glob("spark-catalyst_*.jar"), *JARS.glob("spark-sql_*.jar")):
        for entry in zipfile.ZipFile(jar).namelist():
            match = re.fullmatch(rf"org/apache/spark/sql/({'|'.join(PACKAGES)})/(\w+\$?)\.class", entry)
            if match is None or not re.search(
                "execution/(?:command|datasources)/.*(?:Command|View|Using|Resource)|logical/", entry
            ):
                continue
            kind = find(entry[: -len(".class")].replace("/", "."), False, loader)
            if not kind.getModifiers() & 0x600 and any(item.isAssignableFrom(kind) for item in kinds):
                yield kind


def parameters(kind: object) -> list[str]:
    [copy] = [item for item in kind.getDeclaredMethods() if str(item.getName()) == "copy"] or [None]
    return [] if copy is None else [str(item.getName()) for item in copy.getParameters()]


def test_every_statement_of_this_spark_is_registered_with_all_its_fields(spark):
    unknown, other_fields, seen = [], {}, 0
    for kind in statement_classes(spark):
        name, seen = str(kind.getSimpleName()).removesuffix("$"), seen + 1
        if name in SPARK_STATEMENTS and SPARK_STATEMENTS[name].fields is not None:
            new = set(parameters(kind)) - set(SPARK_STATEMENTS[name].fields.split())
            other_fields |= {name: new} if new else {}
        # Commands of the package `execution` that name a `TableIdentifier` are made by the analyzer, of the statements before them.
        elif (
            name not in SPARK_STATEMENTS
            and name not in LEFT_TO_SPARK
            and name not in NOT_PARSED | TAKEN_APART
            and ".logical." in str(kind.getName())
        ):
            unknown.append(name)
    assert seen > 150
    assert (unknown, other_fields) == ([], {})
    jvm = Jvm.of(spark)
    new = {name: set(parameters(jvm.reflected(f"{SQL}.{name}"))) - set(fields.split()) for name, fields in RECORDS.items()}
    assert {name: fields for name, fields in new.items() if fields} == {}


def invented(spark: SparkSession, about: object, number: int) -> object:
    from tahoe.spark.statements.command import _Runner

    name = f"Invented{number}"
    return compiled_source(Jvm.of(spark), name, lambda: (name, INVENTED % {"number": number}), _Runner(), about)


def test_an_unknown_statement_raises_an_error_if_it_names_a_delta_table(spark, named):  # noqa: F811
    table = named("SELECT 1 AS id")
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW other_table AS SELECT 1 AS id")
    jvm = Jvm.of(spark)
    parser = spark._jsparkSession.sessionState().sqlParser()
    identifier, parts = parser.parseTableIdentifier, parser.parseMultipartIdentifier
    unresolved = jvm.catalyst("analysis.UnresolvedTable")

    def relation(name: str) -> object:
        return unresolved(parts(name), "INVENTED", False)

    of_delta = [
        *(relation(name) for name in table.names),
        *(jvm.option(relation(name)) for name in table.names),
        jvm.seq(relation("other_table"), relation(table.names[0])),
        identifier(table.names[0]),
    ]
    version = table.table.version()
    for about in of_delta:
        plan = invented(spark, about, 1)
        statement = spark_statement(jvm, "Invented1", plan)
        with pytest.raises(Unsupported, match="INVENTED1 is not supported for Delta tables") as error:
            statement.command(spark, plan)
        assert error.value.code == "DELTA_OPERATION_NOT_ALLOWED"
    assert table.table.version() == version
    for about in (relation("other_table"), identifier("other_table"), jvm.option(None), "text"):
        plan = invented(spark, about, 1)
        assert spark_statement(jvm, "Invented1", plan).command(spark, plan) is None


def test_an_unknown_clause_raises_an_error_if_it_is_there(spark, named, monkeypatch):  # noqa: F811
    table = named("SELECT 1 AS id")
    monkeypatch.setattr(registry, "_UNLISTED", {})
    listed = {"DescribeRelation": "relation partitionSpec output", "SetTableProperties": "table", "TruncateTable": "table"}
    changed = {node: replace(SPARK_STATEMENTS[node], fields=fields) for node, fields in listed.items()}
    monkeypatch.setattr(registry, "SPARK_STATEMENTS", {**SPARK_STATEMENTS, **changed})
    for name in table.names:
        assert spark.sql(f"DESCRIBE {name}").count() == 1
        with pytest.raises(Unsupported, match="DESCRIBE RELATION with isExtended is not supported"):
            spark.sql(f"DESCRIBE EXTENDED {name}")
        with pytest.raises(Unsupported, match="SET TABLE PROPERTIES with properties"):
            spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('a' = 'b')")
    assert table.table.version() == 0
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW other_table AS SELECT 1 AS id")
    assert spark.sql("DESCRIBE EXTENDED other_table").count() >= 1


# Statement → code, on a Delta table {t}.
REFUSED = {
    "CREATE INDEX i ON {t} (id)": "DELTA_OPERATION_NOT_ALLOWED",
    "DROP INDEX i ON {t}": "DELTA_OPERATION_NOT_ALLOWED",
    "INSERT OVERWRITE DIRECTORY '/nowhere' USING delta SELECT * FROM {t}": "DELTA_OPERATION_NOT_ALLOWED",
}


def test_statements_that_spark_has_for_other_tables_are_refused_by_name(spark, named):  # noqa: F811
    table = named("SELECT 1 AS id")
    spark.sql("CREATE TABLE plain_table (id INT) USING parquet")
    try:
        for statement, code in REFUSED.items():
            for name in table.names:
                with pytest.raises(TahoeError) as error:
                    spark.sql(statement.format(t=name))
                assert error.value.code == code, statement
            if "INDEX" in statement:
                with pytest.raises(PySparkException):  # Spark's own
                    spark.sql(statement.format(t="plain_table"))
    finally:
        spark.sql("DROP TABLE plain_table")


def test_a_statement_after_with_is_one_on_its_table(spark, named):  # noqa: F811
    table = named("SELECT id, 'n' AS name FROM range(3)")
    for name in table.names:
        spark.sql(f"WITH s AS (SELECT 7 AS id) INSERT INTO {name} (id) SELECT id FROM s")
        spark.sql(f"WITH s AS (SELECT 8 AS id, 'x' AS name) INSERT INTO {name} SELECT * FROM s")
        spark.sql(f"WITH s AS (SELECT 7 AS k) MERGE INTO {name} USING s ON id = k WHEN MATCHED THEN UPDATE SET name = 'm'")
        assert spark.sql(f"WITH s AS (SELECT 1) SELECT max(id) FROM {name}").first()[0] == 8
        spark.sql(f"WITH s AS (SELECT 1) DELETE FROM {name} WHERE id = 8")
        spark.sql(f"WITH s AS (SELECT 1) UPDATE {name} SET name = 'u' WHERE id = 0")
    assert sorted(map(tuple, table.table.to_arrow().to_pylist() and spark.table(table.names[0]).collect()), key=str) == [
        (0, "u"),
        (1, "n"),
        (2, "n"),
        (7, "m"),
        (7, "m"),
    ]


def test_one_query_is_inserted_into_several_tables(spark, named):  # noqa: F811
    table, other = named("SELECT 1L AS id, 'n' AS name"), named("SELECT 1L AS id")
    for place in (0, 1):
        spark.sql(
            f"FROM range(2, 4) INSERT INTO {table.names[place]} (id) SELECT id INSERT INTO {other.names[place]} SELECT id + 10"
        )
    assert (
        sorted((row[0], row[1]) for row in spark.table(table.names[0]).collect() if row[0] > 1)
        == [(2, None)] * 2 + [(3, None)] * 2
    )
    assert sorted(row[0] for row in spark.table(other.names[0]).collect()) == [1, 12, 12, 13, 13]


@pytest.mark.skipif(pyspark.__version__ < "4.1", reason="Spark has WITH RECURSIVE since 4.1")
def test_a_recursive_query_is_inserted_into_several_tables(spark, named):  # noqa: F811
    table, other = named("SELECT 9 AS id"), named("SELECT 9 AS id")
    spark.sql(
        "WITH RECURSIVE r(id) AS (VALUES (0) UNION ALL SELECT id + 1 FROM r WHERE id < 2) "
        f"FROM r INSERT INTO {table.names[0]} SELECT * INSERT INTO {other.names[1]} SELECT id + 10 WHERE id > 0"
    )
    assert sorted(row[0] for row in spark.table(table.names[0]).collect()) == [0, 1, 2, 9]
    assert sorted(row[0] for row in spark.table(other.names[0]).collect()) == [9, 11, 12]


STATEMENTS_OF_SPARK = """
    CLEAR CACHE; RESET; RESET spark.a.b; SET; SET spark.a.b = 1; SET -v; SET spark.a.b; SET TIME ZONE 'UTC'; USE default; USE
    SCHEMA default; SHOW CATALOGS; SHOW DATABASES; SHOW CURRENT NAMESPACE; SHOW FUNCTIONS LIKE 'ab*'; SHOW TABLES; SHOW TABLE
    EXTENDED LIKE 'none'; SHOW VIEWS; DESCRIBE DATABASE default; DESCRIBE FUNCTION abs; DESCRIBE QUERY SELECT 1; LIST JARS; LIST
    FILES; LIST ARCHIVES; CREATE TEMPORARY VIEW of_statements AS SELECT 1; CACHE TABLE of_statements; CACHE LAZY TABLE kept AS
    SELECT 1; UNCACHE TABLE of_statements; DROP VIEW of_statements; DROP VIEW kept; REFRESH '/none'; EXPLAIN SELECT 1; CREATE
    DATABASE of_statements; DROP DATABASE of_statements; ANALYZE TABLES IN default COMPUTE STATISTICS NOSCAN; DECLARE VARIABLE
    counted INT DEFAULT 1; SET VAR counted = 2; DROP TEMPORARY VARIABLE counted; DROP TEMPORARY FUNCTION IF EXISTS other_function;
    VALUES (1); TABLE of_table; FROM of_table SELECT *; EXECUTE IMMEDIATE 'WITH c AS (SELECT 1) TABLE c UNION TABLE c'
"""
QUERIES_OF_SPARK = """
    WITH c AS (SELECT * FROM of_table) SELECT * FROM c UNION ALL SELECT * FROM c;
    WITH c AS (TABLE of_table), d AS (SELECT id + 1 FROM c) TABLE c UNION TABLE d;
    WITH c AS (TABLE of_table) (TABLE c UNION ALL TABLE c) EXCEPT ALL TABLE c;
    WITH c AS (TABLE of_table) SELECT * FROM c JOIN c AS d USING (id) ORDER BY id LIMIT 1;
    WITH c AS (TABLE of_table) FROM c SELECT id, count(*) OVER () AS n;
    WITH c(n) AS (SELECT id FROM of_table) SELECT (SELECT max(n) FROM c) AS m, n IN (TABLE of_table) AS i FROM c WHERE EXISTS (TABLE c);
    SELECT * FROM (WITH c AS (TABLE of_table) TABLE c UNION ALL TABLE c);
    TABLE of_table UNION ALL TABLE of_table INTERSECT TABLE of_table; VALUES (1), (2) UNION SELECT id FROM of_table;
    SELECT explode(array(1, 2)) FROM of_table; SELECT * FROM of_table, LATERAL (SELECT id + 1 AS n);
    SELECT * FROM (SELECT id, 'x' AS k FROM of_table) PIVOT (sum(id) FOR k IN ('x', 'y')); FROM of_table |> WHERE id > 0 |> SELECT id;
    SELECT id FROM of_table GROUP BY GROUPING SETS ((id), ()) HAVING count(*) > 0
"""


@pytest.mark.every_case
def test_statements_without_a_delta_table_run_as_without_tahoe(spark):
    session = tahoe.enable(spark.newSession())
    session.range(1).createOrReplaceTempView("of_table")
    texts = [text.strip() for text in STATEMENTS_OF_SPARK.split(";")]
    assert len(texts) > 40
    for text in texts:
        session.sql(text).collect()


@pytest.mark.every_case
@pytest.mark.parametrize("rows", ["view", "Delta table"])
def test_queries_have_the_results_of_a_session_without_tahoe(spark, plain, tmp_path, rows):
    for session in (spark, plain):
        session.range(2).createOrReplaceTempView("of_table")
    if rows == "Delta table":
        spark.range(2).write.format("delta").save(str(tmp_path / "table"))
        spark.read.format("delta").load(str(tmp_path / "table")).createOrReplaceTempView("of_table")
    try:
        for query in QUERIES_OF_SPARK.split(";"):
            assert sorted(map(str, spark.sql(query).collect())) == sorted(map(str, plain.sql(query).collect())), query
    finally:
        for session in (spark, plain):
            session.catalog.dropTempView("of_table")
