"""The parser of DESCRIBE and SHOW for clients without Spark's parser; test_ddl.py has more of its statements."""

from __future__ import annotations

import pytest

from tahoe.sql.ddl import table_statement
from tahoe.sql.described import Describe, Other
from tahoe.sql.dialect import SqlSyntaxError
from tahoe.sql.table_name import TableName

T = TableName(None, ("t",))


def test_one_property_is_shown() -> None:
    assert table_statement("SHOW TBLPROPERTIES t ('a.b')") == Describe(T, "SHOW TBLPROPERTIES", "a.b")
    assert table_statement("SHOW TBLPROPERTIES t (a.b);") == Describe(T, "SHOW TBLPROPERTIES", "a.b")
    with pytest.raises(SqlSyntaxError):
        table_statement("SHOW TBLPROPERTIES t ('a', 'b')")


def test_a_serde_is_not_shown() -> None:
    assert table_statement("SHOW CREATE TABLE t AS SERDE") == Other(T, "SHOW CREATE TABLE … AS SERDE")


@pytest.mark.parametrize(
    "text", ["DESCRIBE HISTORY t", "DESCRIBE t AS JSON", "SHOW TABLES", "SHOW PARTITIONS t PARTITION (p = 1, p = 2)"]
)
def test_other_statements_are_left_to_spark(text: str) -> None:
    assert table_statement(text) is None
