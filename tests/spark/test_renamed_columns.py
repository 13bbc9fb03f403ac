"""Column mapping over the life of a table, on Spark: read, filtered and changed by the names of today, natively and portably."""

from __future__ import annotations

import pytest

from tahoe.tables import DeltaTable
from tests.renamed_columns import EXPECTED, RENAMED, STARTS, renamed_table


@pytest.mark.parametrize("mode", STARTS.values(), ids=STARTS)
def test_a_dropped_column_does_not_come_back_on_spark(spark, plain, tmp_path, mode):
    table = renamed_table(str(tmp_path / "t"), mode)
    for session in (spark, plain):
        rows = session.read.format("delta").load(table.url)
        assert rows.orderBy("id").toArrow().to_pylist() == EXPECTED
    rows = spark.read.format("delta").load(table.url)
    assert rows.where(f"a = 10 OR `{RENAMED}` = 10 OR s.y = 'v'").count() == 0
    assert rows.where("s.`X,1` = 2 AND `P art=1` = 'p0'").count() == 1
    changed = DeltaTable.forPath(spark, table.url)
    changed.update("`P art=1` = 'p1'", {"a": "7", f"`{RENAMED}`": "id + 1", "s.y": "'new'"})
    spark.createDataFrame([(9, 90, "p0")], f"id bigint, `{RENAMED}` bigint, `P art=1` string").write.format("delta").mode(
        "append"
    ).save(table.url)
    changed.optimize().executeCompaction()
    shown = {row["id"]: (row["a"], row[RENAMED], (row["s"] or {}).get("y")) for row in table.to_arrow().to_pylist()}
    assert shown == {0: (None, None, None), 1: (7, 2, "new"), 2: (None, None, None), 9: (None, 90, None)}
    assert not table.check(deep=True)
