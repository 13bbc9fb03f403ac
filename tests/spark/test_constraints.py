"""What a table demands of rows, held against the writes of Spark: the same rows go in and stay out as without Spark."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame

from tahoe.exceptions import InvalidRequest, InvariantViolation
from tahoe.schema.types import PrimitiveType, StructField, StructType
from tahoe.table import Table
from tests.spark.test_writing import data_files, load, write

P = PrimitiveType


def field(name: str, data_type: Any, *, nullable: bool = True, **metadata: Any) -> StructField:
    return StructField(name, data_type, nullable, {key.replace("__", "."): value for key, value in metadata.items()})


def refused(path: str, frame: DataFrame, mode: str = "append", **options: Any) -> Any:
    """The error of a write that leaves neither a version nor a file behind."""
    table = Table(path)
    before = table.version(), sorted(data_files(path))
    with pytest.raises(InvalidRequest) as raised:
        write(frame, path, mode, **options)
    assert (table.version(), sorted(data_files(path))) == before
    return raised.value


@pytest.fixture
def checked(path) -> str:
    """A table with a CHECK over two columns."""
    schema = StructType((field("id", P("long")), field("price", P("double")), field("s", StructType((field("x", P("long")),)))))
    Table.create(path, schema, properties={"delta.constraints.fair": "price > 0 AND (s.x IS NULL OR s.x < id)"})
    return path


class TestChecks:
    def test_rows_that_fulfil_it_go_in(self, spark, checked):
        write(spark.sql("select * from values (1L, 1.5D, named_struct('x', 0L)), (2L, 2D, null) t(id, price, s)"), checked)
        write(spark.sql("select 3 id, 1 price"), checked)
        assert load(spark, checked).count() == 3

    @pytest.mark.parametrize("bad", ["2L, -1D, null", "2L, null, null", "2L, 1D, named_struct('x', 9L)"])
    def test_a_row_for_which_it_is_false_or_null_is_refused_with_its_values(self, spark, checked, bad):
        error = refused(checked, spark.sql(f"select * from values (1L, 1.5D, null), ({bad}) t(id, price, s)"))
        assert isinstance(error, InvariantViolation)
        assert error.code == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
        assert error.facts["constraint"] == "fair"
        assert error.facts["values"]["id"] == "2"
        for part in (checked, "fair", "price > 0 AND", " - id : 2", " - s.x : "):
            assert part in str(error)
