"""Files of Maven Central for tests, kept beside the JARs that Spark fetches."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

import pyspark
import pytest

from tests.jvm.conftest import KEPT

CENTRAL = "https://repo1.maven.org/maven2"


def fetched(path: str, folder: str) -> Path:
    """Return a file of Maven Central; skip the test if it cannot be fetched.

    Args:
        path: of the file there.
        folder: the folder for it.
    """
    target = KEPT / folder / path.rpartition("/")[2]
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        try:
            urllib.request.urlretrieve(f"{CENTRAL}/{path}", target.with_suffix(".part"))
        except urllib.error.URLError as error:
            pytest.skip(f"{CENTRAL}/{path} cannot be fetched: {error}")
        target.with_suffix(".part").rename(target)
    return target


def hadoop_version() -> str:
    """Return the version of Hadoop in PySpark's package."""
    jars = Path(pyspark.__file__).parent / "jars"
    (version,) = {path.stem.rpartition("-")[2] for path in jars.glob("hadoop-client-api-*.jar")}
    return version
