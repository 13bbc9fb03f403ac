"""Tables with char(n) and varchar(n), made and written by Tahoe and by delta-spark in turn: one schema, one limit, equal rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tahoe.api.table import Table
from tahoe.base.exceptions import InvariantViolation
from tahoe.schema.text_limits import DECLARED_TYPE
from tahoe.schema.types import ArrayType, MapType, PrimitiveType, StructField, StructType

pytestmark = pytest.mark.jvm

STRING = PrimitiveType("string")
DECLARED = {
    "c": "char(3)",
    "v": "varchar(3)",
    "s": "struct<a:varchar(3)>",
    "l": "array<char(2)>",
    "m": "map<varchar(2),array<varchar(3)>>",
}
TYPES = {
    "c": STRING,
    "v": STRING,
    "s": StructType((StructField("a", STRING),)),
    "l": ArrayType(STRING),
    "m": MapType(STRING, ArrayType(STRING)),
}
ROW = {"c": "a", "v": "abc  ", "s": {"a": "abc "}, "l": ["x"], "m": [("k ", ["abc "])]}
STORED = {"c": "a  ", "v": "abc", "s": {"a": "abc"}, "l": ["x "], "m": [("k ", ["abc"])]}
VALUES = "'a', 'abc', named_struct('a', 'abc'), array('x'), map('k ', array('abc'))"
AS_GIVEN = {**STORED, "c": "a", "l": ["x"]}
"""delta-spark does not pad texts in files; Spark pads the values of a char(n) when it reads them."""


@pytest.mark.parametrize("who", ["tahoe", "delta-spark"])
def test_both_hold_texts_against_one_limit(jvm: SparkSession, tmp_path: Path, who: str) -> None:
    path, name = tmp_path / "t", f"delta.`{tmp_path / 't'}`"
    if who == "tahoe":
        columns = (StructField(item, TYPES[item], True, {DECLARED_TYPE: DECLARED[item]}) for item in DECLARED)
        Table.create(path, StructType(tuple(columns)))
    else:
        jvm.sql(f"CREATE TABLE {name} ({', '.join(f'{item} {kind}' for item, kind in DECLARED.items())}) USING delta")
    table = Table(path)
    assert {item.name: item.metadata.get(DECLARED_TYPE) for item in table.schema()} == DECLARED
    table.append(pa.Table.from_pylist([ROW], table.to_arrow().schema))
    jvm.sql(f"INSERT INTO {name} VALUES ({VALUES})")
    assert sorted(table.to_arrow().to_pylist(), key=lambda row: str(row["c"])) in ([STORED, STORED], [AS_GIVEN, STORED])
    theirs = jvm.table(name).where("c = 'a' AND v = 'abc'").collect()
    assert [row.asDict(recursive=True) for row in theirs] == [{**STORED, "m": {"k ": ["abc"]}}] * 2
    with pytest.raises(InvariantViolation, match="DELTA_EXCEED_CHAR_VARCHAR_LIMIT"):
        table.append(pa.table({"v": ["abcd"]}))
    with pytest.raises(Exception, match="DELTA_EXCEED_CHAR_VARCHAR_LIMIT"):
        jvm.sql(f"INSERT INTO {name} (v) VALUES ('abcd')")
    jvm.sql(f"ALTER TABLE {name} ALTER COLUMN v TYPE VARCHAR(4)")
    table.append(pa.table({"v": ["abcd"]}))
    assert table.check(deep=True) == []
