"""Each supported PySpark has the private members that Tahoe uses; this needs no session, and `make test-versions` runs it on all."""

from __future__ import annotations

from pathlib import Path

import pyspark

from tahoe.spark.versions.private_attributes import missing_attributes
from tahoe.spark.versions.private_members import missing_members

FOLDER = Path(pyspark.__file__).parent


def test_the_jars_have_the_private_members() -> None:
    assert missing_members(FOLDER / "jars") == []


def test_the_python_classes_have_the_private_attributes() -> None:
    assert missing_attributes(FOLDER) == []
