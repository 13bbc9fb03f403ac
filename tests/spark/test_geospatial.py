"""Geometries and geographies on Spark, which has functions for them (``ST_…``); refused by name where it brings them into no files."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, SchemaMismatch, Unsupported
from tahoe.spark.portable.data_source import DeltaDataSource

WITH_TYPES = (4, 2)
TABLE = "id INT, g GEOMETRY(4326), h GEOGRAPHY(4326), s STRUCT<z: GEOMETRY(3857)>, a ARRAY<GEOMETRY(0)>"


def point(x: float, y: float) -> bytes:
    return b"\x01\x01\x00\x00\x00" + struct.pack("<dd", x, y)


def geometry(x: float, y: float, srid: int = 4326) -> str:
    return f"ST_GeomFromWKB(X'{point(x, y).hex()}', {srid})"


def release(spark) -> tuple[int, ...]:
    return tuple(int(part) for part in spark.version.split(".")[:2])


@pytest.fixture
def table(spark, path) -> str:
    if release(spark) < WITH_TYPES:
        pytest.skip("PySpark before 4.2 brings geometries into no files")
    return f"delta.`{path}`"


def shown(spark, table: str) -> dict[int, bytes | None]:
    return {row[0]: row[1] for row in spark.sql(f"SELECT id, ST_AsBinary(g) FROM {table}").collect()}


def test_rows_go_in_change_and_come_out(spark, table, path, tmp_path):
    properties = (
        "'delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name'"
    )
    spark.sql(f"CREATE TABLE {table} ({TABLE}) USING delta TBLPROPERTIES ({properties})")
    assert "geospatial" in (Table(path).snapshot().protocol.reader_features or ())
    geography = f"ST_GeogFromWKB(X'{point(10, 20).hex()}')"
    nested = f"named_struct('z', {geometry(3, 4, 3857)}), array({geometry(5, 6, 0)})"
    spark.sql(
        f"INSERT INTO {table} VALUES (1, {geometry(1, 2)}, {geography}, {nested}), (2, {geometry(2, 2)}, null, null, null), "
        "(3, null, null, null, null)"
    )
    spark.sql(f"UPDATE {table} SET g = {geometry(9, 9)} WHERE id = 2")
    spark.sql(f"DELETE FROM {table} WHERE id = 3")
    source = f"(SELECT explode(array(1, 4)) AS id, {geometry(4, 4)} AS g)"
    changes = "WHEN MATCHED THEN UPDATE SET g = s.g WHEN NOT MATCHED THEN INSERT (id, g) VALUES (s.id, s.g)"
    spark.sql(f"MERGE INTO {table} t USING {source} s ON t.id = s.id {changes}")
    spark.sql(f"SELECT 5 AS id, {geometry(5, 5)} AS g").write.format("delta").mode("append").save(path)
    expected = {1: point(4, 4), 2: point(9, 9), 4: point(4, 4), 5: point(5, 5)}
    assert shown(spark, table) == expected
    spark.sql(f"OPTIMIZE {table}")
    assert shown(spark, table) == expected
    query = f"SELECT ST_AsBinary(h), ST_Srid(s.z), ST_AsBinary(s.z), ST_AsBinary(a[0]) FROM {table} WHERE id = 1"
    assert tuple(spark.sql(query).head()) == (point(10, 20), 3857, point(3, 4), point(5, 6))
    assert {row["id"]: row["g"] for row in Table(path).to_arrow().to_pylist()} == expected
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 2).load(path)
    before = feed.where("_change_type = 'update_preimage' AND _commit_version = 2").selectExpr("ST_AsBinary(g)").collect()
    assert [row[0] for row in before] == [point(2, 2)]
    out = str(tmp_path / "out")
    read = spark.readStream.format("delta").load(path).select("id", "g").writeStream.format("delta")
    read.option("checkpointLocation", str(tmp_path / "progress")).trigger(availableNow=True).start(out).awaitTermination()
    assert shown(spark, f"delta.`{out}`") == expected
    for each in (path, out):
        assert Table(each).check(deep=True, strict=True) == []


def test_values_written_without_spark_are_read_with_it(spark, table, path):
    spark.sql(f"CREATE TABLE {table} (id INT, g GEOMETRY(4326)) USING delta")
    Table(path).append(pa.table({"id": pa.array([1, 2], pa.int32()), "g": [point(1, 2), None]}))
    assert shown(spark, table) == {1: point(1, 2), 2: None}
    spark.sql(f"ALTER TABLE {table} ADD CONSTRAINT c CHECK (g IS NOT NULL OR id = 2)")
    spark.sql(f"INSERT INTO {table} VALUES (3, {geometry(3, 3)})")
    with pytest.raises(Exception, match="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"):
        spark.sql(f"INSERT INTO {table} VALUES (4, null)")


def test_other_types_and_places_are_refused(spark, table, path):
    for columns, code in (
        ("g GEOMETRY(4326)) USING delta PARTITIONED BY (g", "INVALID_PARTITION_COLUMN_DATA_TYPE"),
        ("g GEOMETRY(4326)) USING delta CLUSTER BY (g", "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"),
        ("g GEOMETRY(ANY)) USING delta OPTIONS ('x' = 'y'", "DELTA_GEOSPATIAL_SRID_NOT_SUPPORTED"),
        ("g GEOGRAPHY(ANY)) USING delta OPTIONS ('x' = 'y'", "DELTA_GEOSPATIAL_SRID_NOT_SUPPORTED"),
    ):
        with pytest.raises((InvalidRequest, Unsupported)) as error:
            spark.sql(f"CREATE TABLE {table} (id INT, {columns})")
        assert error.value.code == code
    spark.sql(f"CREATE TABLE {table} (id INT) USING delta")
    for feature in ("", "geospatial"):
        if feature:
            spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.feature.{feature}' = 'supported')")
            spark.sql(f"ALTER TABLE {table} ADD COLUMN g GEOMETRY(4326)")
            continue
        with pytest.raises(InvalidRequest) as error:
            spark.sql(f"ALTER TABLE {table} ADD COLUMN g GEOMETRY(4326)")
        assert error.value.code == "DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT"
    for other in (geometry(1, 1, 0), f"X'{point(1, 1).hex()}'"):
        with pytest.raises(SchemaMismatch, match="Column 'g' has type geometry"):
            spark.sql(f"SELECT 1 AS id, {other} AS g").write.format("delta").mode("append").save(path)
    with pytest.raises(InvalidRequest) as error:
        spark.sql(f"OPTIMIZE {table} ZORDER BY (g)")
    assert error.value.code == "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"


def made_without_spark(path: str, kind: str = "geometry(OGC:CRS84)") -> None:
    crs, _, _ = kind.partition("(")[2].rstrip(")").partition(",")
    marked = {"ARROW:extension:name": "geoarrow.wkb", "ARROW:extension:metadata": f'{{"crs":"{crs}"}}'}
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("g", pa.binary(), metadata=marked)])
    Table(path).append(pa.table({"id": [1], "g": [point(1, 2)]}, schema))


def test_a_spark_without_the_types_says_so(spark, path):
    if release(spark) >= WITH_TYPES:
        pytest.skip("this PySpark has the types")
    made_without_spark(path)
    for use in (
        lambda: spark.sql(f"SELECT id FROM delta.`{path}`").collect(),
        lambda: spark.read.format("delta").load(path),
        lambda: spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 1"),
        lambda: spark.readStream.format("delta").load(path),
        lambda: DeltaDataSource({"path": path}).schema(),
    ):
        with pytest.raises(Unsupported, match=r"needs PySpark 4\.2 or later") as error:
            use()
        assert error.value.code == "DELTA_GEOSPATIAL_NOT_SUPPORTED"
    assert Table(path).to_arrow()["g"].to_pylist() == [point(1, 2)]


def test_coordinates_that_pyspark_does_not_know_are_refused(spark, path):
    if release(spark) < WITH_TYPES:
        pytest.skip("PySpark before 4.2 knows none")
    made_without_spark(path, "geometry(IGNF:ATI)")
    for use in (
        lambda: spark.read.format("delta").load(path),
        lambda: spark.range(1).write.format("delta").mode("append").save(path),
    ):
        with pytest.raises(Unsupported, match="does not know the type of column g") as error:
            use()
        assert error.value.code == "DELTA_GEOSPATIAL_SRID_NOT_SUPPORTED"


def test_the_portable_data_source_refuses_them(spark, path):
    if release(spark) < WITH_TYPES:
        pytest.skip("PySpark before 4.2 refuses them earlier: test_a_spark_without_the_types_says_so")
    made_without_spark(path)
    source = DeltaDataSource({"path": path})
    reader = source.reader(source.schema())
    with pytest.raises(Unsupported, match="cannot pass through") as error:
        reader.partitions()
    assert error.value.code == "DELTA_GEOSPATIAL_NOT_SUPPORTED"
