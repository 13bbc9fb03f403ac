"""Column types that some releases of PySpark lack: geometry and geography exist since 4.1, and are read and written in Parquet since 4.2.

Obsolete when PySpark 4.2 is the oldest supported release, except for the check of the SRID.
"""

from __future__ import annotations

import json

import pyspark
from pyspark.errors import IllegalArgumentException
from pyspark.sql.types import StructType as SparkStruct

from tahoe.base.exceptions import Unsupported
from tahoe.schema.types import StructType, is_geospatial
from tahoe.schema.walk import paths_of_type

_FIRST_WITH_GEOSPATIAL = (4, 2)


def check_column_types(schema: StructType) -> None:
    """Reject columns of types that this PySpark version cannot read and write. Called with each schema that is passed to Spark.

    Raises:
        Unsupported: ``DELTA_GEOSPATIAL_NOT_SUPPORTED``; ``DELTA_GEOSPATIAL_SRID_NOT_SUPPORTED`` for an SRID that PySpark does not know.
    """
    columns = ", ".join(paths_of_type(schema, is_geospatial))
    if not columns:
        return
    if tuple(int(part) for part in pyspark.__version__.split(".")[:2]) < _FIRST_WITH_GEOSPATIAL:
        raise Unsupported(
            f"Geospatial types are not supported by PySpark {pyspark.__version__}: column {columns} needs PySpark 4.2 or later. "
            "Without Spark the table is read and written (tahoe.Table), with values in Well-Known Binary.",
            code="DELTA_GEOSPATIAL_NOT_SUPPORTED",
            column=columns,
        )
    try:
        SparkStruct.fromJson(json.loads(schema.to_json()))
    except IllegalArgumentException as error:
        raise Unsupported(
            f"PySpark {pyspark.__version__} does not know the type of column {columns}: {error}. Without Spark the table is read and written "
            "(tahoe.Table), with values in Well-Known Binary.",
            code="DELTA_GEOSPATIAL_SRID_NOT_SUPPORTED",
            column=columns,
        ) from error
