"""SQL statements over Spark Connect whose table is named by a variable, by an expression, or by a temporary view."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, InvariantViolation, Unsupported
from tests.operations.operations import made
from tests.spark.connect_server import remote


def test_texts_that_are_built_at_run_time(connect: Any, tmp_path: Path) -> None:
    path = made(str(tmp_path / "t"))
    with remote():
        connect.sql(f"CREATE TABLE at_run_time USING delta LOCATION '{path}'")
        connect.sql("DECLARE OR REPLACE VARIABLE most BIGINT")
        connect.sql("DECLARE OR REPLACE VARIABLE name STRING DEFAULT 'at_run_time'")
        connect.sql("EXECUTE IMMEDIATE 'SELECT max(id) FROM at_run_time WHERE id < ?' INTO most USING 5")
        assert connect.sql("SELECT most").first()[0] == 4
        assert connect.sql("EXECUTE IMMEDIATE 'DELETE FROM at_run_time WHERE id = :id' USING :x AS id", {"x": 4}).first()[0] == 1
        assert connect.sql("SELECT count(*), max(IDENTIFIER('id')) FROM IDENTIFIER(name)").first() == (11, 11)
        assert connect.sql("DELETE FROM IDENTIFIER(concat(:name, '')) WHERE id = 0", {"name": "at_run_time"}).first()[0] == 1
        with pytest.raises(AnalysisException, match="missing"):
            connect.sql("SELECT * FROM IDENTIFIER(missing)").collect()
        with pytest.raises(Unsupported, match="function that reads Delta tables"):
            connect.sql("CREATE TEMPORARY FUNCTION ids() RETURNS TABLE (id BIGINT) RETURN SELECT id FROM at_run_time")


def test_rows_are_changed_through_a_temporary_view(connect: Any, tmp_path: Path) -> None:
    path = made(str(tmp_path / "t"))
    with remote():
        frame = connect.read.format("delta").load(path)
        frame.createOrReplaceTempView("whole")
        connect.sql(f"CREATE OR REPLACE TEMP VIEW some AS SELECT id, s FROM delta.`{path}`")
        frame.where("id > 1").createOrReplaceTempView("filtered")
        assert connect.sql("DELETE FROM whole WHERE id = 0").first() == (1,)
        assert connect.sql("UPDATE some AS x SET s = 'new' WHERE x.id = 1").first() == (1,)
        merge = "MERGE INTO {} t USING (SELECT 2L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE"
        assert connect.sql(merge.format("whole")).first().num_deleted_rows == 1
        rows = connect.sql("SELECT id, s FROM whole ORDER BY id LIMIT 2").collect()
        assert [(row.id, row.s == "new") for row in rows] == [(1, True), (3, False)]
        version = Table(path).snapshot().version
        for statement, error in (
            ("DELETE FROM filtered", InvalidRequest),
            (merge.format("some"), InvalidRequest),
            ("UPDATE some SET s = '' WHERE p = 1", AnalysisException),
            ("INSERT INTO whole SELECT * FROM whole", InvalidRequest),
        ):
            with pytest.raises(error):
                connect.sql(statement)
        assert Table(path).snapshot().version == version


def test_constraints_that_only_spark_evaluates(connect: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    Table.create(path, {"k": "long", "v": "string"}).append(pa.table({"k": [1], "v": ["ab-1"]}))
    with remote():
        add = f"ALTER TABLE delta.`{path}` ADD CONSTRAINT"
        connect.sql(f"{add} pattern CHECK (regexp_extract(v, '^([a-z]+)-', 1) <> '')")
        version = Table(path).snapshot().version
        for statement, error, message in (
            (f"{add} violated CHECK (regexp_count(v, 'b') = 0)", InvariantViolation, "1 row"),
            (f"{add} code CHECK (reflect('java.lang.System', 'lineSeparator') IS NOT NULL)", Unsupported, "reflect"),
            (f"{add} number CHECK (regexp_count(v, 'b'))", InvalidRequest, "NON_BOOLEAN"),
            (f"INSERT INTO delta.`{path}` VALUES (2, '-2')", InvariantViolation, "v : -2"),
            (f"INSERT INTO delta.`{path}` (k) VALUES (2)", InvariantViolation, "v : None"),
            (f"UPDATE delta.`{path}` SET v = 'x'", InvariantViolation, "v : x"),
        ):
            with pytest.raises(error, match=message):
                connect.sql(statement)
        assert Table(path).snapshot().version == version
        connect.sql(f"INSERT INTO delta.`{path}` VALUES (2, 'b-2')")
        connect.sql(f"UPDATE delta.`{path}` SET v = concat('x', v)")
        rows = connect.createDataFrame([(3, "c-3")], "k long, v string")
        rows.write.format("delta").mode("append").save(path)
    assert Table(path).to_arrow().sort_by("k")["v"].to_pylist() == ["xab-1", "xb-2", "c-3"]
