"""The settings of a builder that name delta-spark's classes."""

from __future__ import annotations

import pytest

from tahoe.spark.catalog.jar_settings import CATALOG, EXTENSION, remove_jar_settings


@pytest.mark.parametrize(
    ("extensions", "left"),
    [(EXTENSION, None), (f"a.B,{EXTENSION}", "a.B"), (f"a.B, {EXTENSION} ,c.D", "a.B,c.D"), ("a.B", "a.B")],
)
def test_delta_sparks_classes_are_left_out_and_others_stay(extensions: str, left: str | None) -> None:
    options = {"spark.sql.extensions": extensions, "spark.sql.catalog.spark_catalog": CATALOG, "spark.app.name": "x"}
    remove_jar_settings(options)
    expected = {"spark.app.name": "x"} | ({} if left is None else {"spark.sql.extensions": left})
    assert options == expected


def test_a_catalog_of_somebody_elses_stays() -> None:
    options = {"spark.sql.catalog.spark_catalog": "org.apache.iceberg.spark.SparkSessionCatalog"}
    remove_jar_settings(options)
    assert options == {"spark.sql.catalog.spark_catalog": "org.apache.iceberg.spark.SparkSessionCatalog"}
