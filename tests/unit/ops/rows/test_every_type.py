"""Every type through every operation, without Spark: written, read, as a partition, changed, merged, fed, and from a checkpoint."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from tahoe import Table

LOW_AND_HIGH = {
    "string": (pa.string(), "ä ,;{}\n=", "ü%/'\""),
    "long": (pa.int64(), -(2**63), 2**63 - 1),
    "integer": (pa.int32(), -(2**31), 2**31 - 1),
    "short": (pa.int16(), -(2**15), 2**15 - 1),
    "byte": (pa.int8(), -128, 127),
    "float": (pa.float32(), -1.5, float("inf")),
    "double": (pa.float64(), -1e-300, 1e300),
    "boolean": (pa.bool_(), False, True),
    "binary": (pa.binary(), b"a", b"b"),
    "date": (pa.date32(), date(1, 1, 1), date(9999, 12, 31)),
    "timestamp": (pa.timestamp("us", "UTC"), datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, 23, 59, 59, 999999, UTC)),
    "timestamp_ntz": (pa.timestamp("us"), datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)),
    "decimal": (pa.decimal128(38, 10), Decimal("-1.0000000001"), Decimal("9" * 28 + "." + "9" * 10)),
}
NAME = "tÿpe of.it ,;{}="


@pytest.mark.parametrize("name", LOW_AND_HIGH)
@pytest.mark.parametrize("partitioned", [False, True], ids=["plain", "partitioned"])
def test_a_value_of_each_type_goes_through_every_operation(tmp_path, name, partitioned):
    kind, low, high = LOW_AND_HIGH[name]
    schema = pa.schema(
        [("id", pa.int64()), (NAME, kind), ("s", pa.struct([(NAME, kind), ("v", pa.null())])), ("none", pa.null())]
    )
    properties = {"delta.columnMapping.mode": "name", "delta.enableChangeDataFeed": "true", "delta.checkpointInterval": "2"}
    path = tmp_path / "t"
    table = Table.create(path, schema, partition_by=[NAME] if partitioned else [], properties=properties)

    def rows(*pairs):
        return pa.Table.from_pylist([{"id": i, NAME: value, "s": {NAME: value}} for i, value in pairs], schema)

    table.append(rows((1, low)))
    table.append(rows((2, high), (3, None)))
    table.merge(
        rows((3, low), (4, high)), "source.id = target.id"
    ).when_matched_update_all().when_not_matched_insert_all().execute()
    table.update({"id": "id + 10"}, f"`{NAME}` IS NOT NULL AND id = 1")
    table.delete("id = 2")
    fresh = Table(path)
    assert any((path / "_delta_log").glob("*.checkpoint*.parquet"))
    expected = {11: low, 3: low, 4: high}
    actual = fresh.to_arrow()
    assert {row["id"]: row[NAME] for row in actual.to_pylist()} == expected
    assert {row["id"]: row["s"][NAME] for row in actual.to_pylist()} == expected
    # A void column is of the schema, and of no file.
    assert [str(column.data_type) for column in fresh.schema()][3] == "void"
    assert actual["none"].to_pylist() == [None] * 3
    source = pa.table({"id": [11]}).append_column(pa.field("wanted", kind), pa.array([low], kind))
    fresh.merge(source, f"source.wanted = target.`{NAME}` AND source.id = target.id").when_matched_update({"id": "99"}).execute()
    assert set(fresh.to_arrow().column("id").to_pylist()) == {99, 3, 4}
    fed = {row["_change_type"] for row in fresh.changes(1).to_pylist() if row[NAME] == high}
    assert fed == {"insert", "delete"}
    fresh.optimize()
    assert fresh.to_arrow(filter=f"`{NAME}` IS NULL").num_rows == 0
    assert not fresh.check(deep=True)
