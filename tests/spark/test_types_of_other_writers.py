"""Column types of other writers that this version of Tahoe does not write: the values that Spark reads, and the refusals by name."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tahoe.api.table import Table
from tahoe.base.exceptions import Unsupported


def table_of(folder: Path, fields: list[dict], feature: str) -> str:
    """A table over the one Parquet file in the folder."""
    file = next(folder.glob("*.parquet"))
    features = {"readerFeatures": [feature], "writerFeatures": [feature]}
    metadata = {"id": "i", "format": {"provider": "parquet", "options": {}}, "partitionColumns": [], "configuration": {}}
    metadata["schemaString"] = json.dumps({"type": "struct", "fields": fields})
    add = {"path": file.name, "partitionValues": {}, "size": file.stat().st_size, "modificationTime": 1, "dataChange": True}
    actions = [{"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}, {"metaData": metadata}, {"add": add}]
    (folder / "_delta_log").mkdir()
    (folder / "_delta_log" / f"{0:020d}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))
    return str(folder)


def field(name: str, kind: str, **metadata: object) -> dict:
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


class TestWidenedColumns:
    @pytest.fixture
    def widened(self, tmp_path):
        def made(kind: str) -> str:
            pq.write_table(pa.table({"id": pa.array([1, 2, -3], pa.int8()), "t": ["a", "b", "c"]}), tmp_path / "a.parquet")
            change = {"fromType": "byte", "toType": kind, "tableVersion": 1}
            fields = [field("id", kind, **{"delta.typeChanges": [change]}), field("t", "string")]
            return table_of(tmp_path, fields, "typeWidening")

        return made

    @pytest.mark.parametrize("kind", ["decimal(10,0)", "decimal(11,1)"])
    def test_a_change_of_the_specification_is_read(self, spark, widened, kind):
        path = widened(kind)
        actual = spark.read.format("delta").load(path).where("id > 1.5").toArrow()
        assert actual.equals(Table(path).to_arrow(filter="id > 1.5").cast(actual.schema))

    def test_a_change_of_the_preview_is_refused_by_name_where_the_column_is_read(self, spark, widened):
        path = widened("decimal(4,1)")
        rows = spark.read.format("delta").load(path)
        for query in (rows, rows.select("id"), rows.where("id > 1")):
            with pytest.raises(Unsupported, match=r"column 'id' was changed from byte to decimal\(4,1\)"):
                query.collect()
        assert rows.schema["id"].dataType.simpleString() == "decimal(4,1)"
        assert [row.t for row in rows.select("t").where("t <> 'b'").collect()] == ["a", "c"]
        assert Table(path).to_arrow()["id"].cast(pa.int64()).to_pylist() == [1, 2, -3]


class TestVariants:
    @pytest.fixture
    def variants(self, spark, tmp_path):
        rows = spark.sql("""SELECT 1L id, parse_json('{"a": 1}') v UNION ALL SELECT 2L, parse_json('3')""")
        rows.coalesce(1).write.parquet(str(tmp_path / "written"))
        next((tmp_path / "written").glob("*.parquet")).rename(tmp_path / "a.parquet")
        return table_of(tmp_path, [field("id", "long"), field("v", "variant")], "variantType-preview")

    def test_spark_reads_them_and_the_columns_beside_them(self, spark, variants):
        rows = spark.read.format("delta").load(variants)
        assert [row.id for row in rows.select("id").where("id > 1").collect()] == [2]
        assert [row.v for row in rows.selectExpr("to_json(v) v").collect()] == ['{"a":1}', "3"]

    def test_the_portable_source_reads_them_too(self, plain, variants):
        rows = plain.read.format("delta").load(variants).where("id > 1")
        assert [row.v for row in rows.selectExpr("to_json(v) v").collect()] == ["3"]
