"""Tables with identity, default and generated columns, written by Tahoe and by delta-spark in turn: equal rows, no number twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tahoe.api.table import Table
from tahoe.protocol.column_values.identity import identity_metadata
from tahoe.schema.types import PrimitiveType, StructField, StructType

pytestmark = pytest.mark.jvm

LONG, STRING = PrimitiveType("long"), PrimitiveType("string")
COLUMNS = StructType(
    (
        StructField("id", LONG, True, identity_metadata(5, 5, allow_explicit=False)),
        StructField("k", LONG, True, identity_metadata(-1, -1, allow_explicit=True)),
        StructField("s", STRING, True, {"CURRENT_DEFAULT": "'new'"}),
        StructField("n", LONG),
        StructField("twice", LONG, True, {"delta.generationExpression": "n * 2"}),
    )
)
MAPPED = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}


def made_by(who: str, jvm: SparkSession, path: Path, properties: dict[str, str]) -> Table:
    if who == "tahoe":
        enabled = {**properties, "delta.feature.allowColumnDefaults": "supported"}
        return Table.create(path, COLUMNS, properties=enabled)
    # Its SQL knows no generated columns; its builder in Scala does.
    tables, session = jvm._jvm.io.delta.tables.DeltaTable, jvm._jsparkSession
    builder = tables.create(session).location(str(path)).property("delta.feature.allowColumnDefaults", "supported")
    for key, value in properties.items():
        builder = builder.property(key, value)

    def column(name: str, data_type: str = "BIGINT") -> Any:
        return tables.columnBuilder(session, name).dataType(data_type)

    builder = builder.addColumn(column("id").generatedAlwaysAsIdentity(5, 5).build())
    builder = builder.addColumn(column("k").generatedByDefaultAsIdentity(-1, -1).build())
    builder = builder.addColumn(column("s", "STRING").build()).addColumn(column("n").build())
    builder.addColumn(column("twice").generatedAlwaysAs("n * 2").build()).execute()
    jvm.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN s SET DEFAULT 'new'")
    return Table(path)


def marks(table: Table) -> list[int | None]:
    return [column.metadata.get("delta.identity.highWaterMark") for column in table.schema()][:2]


@pytest.mark.parametrize("properties", [{}, MAPPED], ids=["plain", "mapped"])
@pytest.mark.parametrize("who", ["tahoe", "delta-spark"])
def test_both_fill_in_columns_in_turn(jvm: SparkSession, tmp_path: Path, who: str, properties: dict[str, str]) -> None:
    path = tmp_path / "t"
    table, name = made_by(who, jvm, path, properties), f"delta.`{path}`"
    mine = {key: value for column in table.schema() for key, value in column.metadata.items() if "columnMapping" not in key}
    assert mine == {key: value for column in COLUMNS for key, value in column.metadata.items()}
    table.append(pa.table({"n": [1, 2]}))
    jvm.sql(f"INSERT INTO {name} (n) VALUES (3), (4)")
    table.merge(pa.table({"n": [4, 5]}), "target.n = source.n").when_matched_update({"s": "'met'"}).when_not_matched_insert(
        {"n": "source.n"}
    ).execute()
    jvm.sql(f"INSERT INTO {name} (k, s, n) VALUES (-50, DEFAULT, 6)")
    jvm.sql(f"ALTER TABLE {name} ALTER COLUMN k SYNC IDENTITY")
    table.append(pa.table({"n": [7], "s": ["given"]}))
    jvm.sql(f"UPDATE {name} SET s = DEFAULT WHERE n = 4")
    ours = table.to_arrow().sort_by("n").to_pylist()
    assert [tuple(row) for row in jvm.table(name).orderBy("n").collect()] == [tuple(row.values()) for row in ours]
    assert [row["twice"] for row in ours] == [2 * n for n in range(1, 8)]
    assert [row["s"] for row in ours] == ["new"] * 6 + ["given"]
    for column, step, start in (("id", 5, 5), ("k", -1, -1)):
        values = [row[column] for row in ours]
        assert len(set(values)) == 7
        assert all((value - start) % step == 0 and (value - start) * step >= 0 for value in values)
    assert marks(table) == [max(row["id"] for row in ours), min(row["k"] for row in ours)]
    assert ours[-1]["k"] == -51
    assert table.check(deep=True) == []
    with pytest.raises(Exception, match="DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED"):
        jvm.sql(f"INSERT INTO {name} (id, n) VALUES (1, 8)")
