"""Iceberg's own Java library reads what UniForm makes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from tahoe import Table
from tests.interop.engines import canonical
from tests.jvm.tables import ICEBERG

pytestmark = pytest.mark.jvm


@pytest.mark.parametrize("make", ICEBERG.values(), ids=ICEBERG)
def test_the_jvms_iceberg_reads_our_tables(jvm: SparkSession, path: str, make: Callable[[str], Table]) -> None:
    table = make(path)
    table.uniform.sync()
    location = table.uniform.status().metadata_location
    assert location is not None
    theirs = jvm.read.format("iceberg").load(location)
    ours = table.to_arrow()
    assert canonical(ours) == canonical(theirs.toArrow())
    some = theirs.where("id between 20 and 25 and part = 'a'").toArrow()
    assert canonical(some) == canonical(table.to_arrow(filter="id between 20 and 25 and part = 'a'"))
