"""Whether the list of private members is that of the code; tests/spark/test_private_members.py compares it with each PySpark."""

from __future__ import annotations

import re
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

import tahoe
from tahoe.spark.versions.private_members import REQUIRED, missing_members

OPTIONAL = {"userProvidedSourceName"}


def installed_jars() -> Path:
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent / "jars"


def test_each_member_that_the_code_names_is_listed() -> None:
    texts = [path.read_text() for path in Path(*tahoe.__path__, "spark").rglob("*.py") if path.name != "members.py"]
    called = {name for text in texts for name in re.findall(r'private_(?:value|method|field)\(\w+, "(\w+)"', text)}
    assert called > OPTIONAL
    assert called - OPTIONAL <= {member.name for member in REQUIRED}


def test_a_spark_without_a_class_lacks_its_members(tmp_path: Path) -> None:
    for jar in installed_jars().glob("spark-sql*_*.jar"):
        (tmp_path / jar.name).symlink_to(jar)
    missing = {str(member) for member in missing_members(tmp_path)}
    assert missing == {"DefaultCatalogManager.defaultSessionCatalog", "SessionCatalog.tableRelationCache"}


def test_a_damaged_class_is_an_error(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "spark-x.jar", "w") as jar:
        for owner in {member.owners[0] for member in REQUIRED}:
            jar.writestr(f"{owner.replace('.', '/')}.class", b"\xca\xfe\xba\xbe\x00\x00")
    with pytest.raises(ValueError, match="class file"):
        missing_members(tmp_path)
