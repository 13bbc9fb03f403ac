"""The version that several reads of a table in one request of Spark Connect have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.connect import proto

from tahoe import Table
from tahoe.base.exceptions import TahoeWarning, Unsupported
from tahoe.settings.warn_once import reset_warnings
from tahoe.spark.connect.requests import query_versions
from tahoe.spark.portable.data_source import DeltaDataSource


def source(path: str, **options: str) -> Any:
    return proto.Read.DataSource(format="delta", paths=[path], options=options)


@pytest.fixture(autouse=True)
def tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Open tables without a session, and let each test provoke its warnings."""
    monkeypatch.setattr(query_versions, "table_with_options", lambda _, path, options: Table(path))
    reset_warnings()
    yield
    reset_warnings()


def sent(*reads: Any) -> list[str]:
    query_versions.read_one_version(None, reads)
    return [read.options.get("queryVersion", "") for read in reads]


@pytest.fixture
def path(tmp_path: Path) -> str:
    table = Table(str(tmp_path / "t"))
    for number in range(3):
        table.append(pa.table({"id": [number]}))
    return str(tmp_path / "t")


def test_several_reads_of_the_newest_version_get_it(path: str, tmp_path: Path) -> None:
    version = f"2:{Table(path).snapshot().metadata.id}"
    assert sent(source(path), source(path), source(str(tmp_path / "other"))) == [version, version, ""]
    assert sent(source(path)) == [""]
    in_options = proto.Read.DataSource(format="delta", options={"PATH": path})
    assert sent(in_options, source(path, readChangeFeed="true")) == [version, version]


@pytest.mark.parametrize("options", [{"versionAsOf": "1"}, {"TIMESTAMPASOF": "2026-01-01"}, {"versionAsOf": "x"}])
def test_reads_with_a_version_or_invalid_options_stay_as_they_are(path: str, options: dict[str, str]) -> None:
    assert sent(source(path), source(path, **options)) == ["", ""]
    assert sent(source(f"{path}@v1"), source(f"{path}@v1")) == ["", ""]
    assert sent(*[proto.Read.DataSource(format="delta", paths=[path, path]) for _ in range(2)]) == ["", ""]


def test_a_warning_says_that_the_client_cannot_read_the_log(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    with pytest.warns(TahoeWarning, match=r"more than once.*cannot read its log.*storage='server'"):
        assert sent(source(missing), source(missing)) == ["", ""]


def test_a_later_request_chooses_its_own_version(path: str) -> None:
    read, own = source(path, queryVersion="2:id"), source(path, queryVersion="newest")
    for each in (read, own):
        query_versions.forget_version(each)
    assert "queryVersion" not in read.options
    assert own.options["queryVersion"] == "newest"


def rows(path: str, version: str) -> DeltaDataSource:
    return DeltaDataSource({"path": path, "queryVersion": version})


def test_the_data_source_reads_the_version_of_the_same_table(path: str) -> None:
    table_id = Table(path).snapshot().metadata.id
    # Version 9 is that of a client with newer information than the server.
    values = [f"1:{table_id}", f"2:{table_id}", f"9:{table_id}", "1:another-table"]
    assert [rows(path, value)._snapshot().version for value in values] == [1, 2, 2, 2]


@pytest.mark.parametrize("value", ["1", ":id", "1:", "newest"])
def test_the_data_source_refuses_other_values(path: str, value: str) -> None:
    with pytest.raises(Unsupported, match="queryVersion"):
        rows(path, value).schema()
