"""Features of a later Delta: refused or ignored as the specification demands, and kept if they are data of other writers.

PROTOCOL.md, "Protocol Evolution", "Domain Metadata", "Schema Serialization Format".
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.exceptions import TahoeError, Unsupported
from tahoe.protocol.actions import Protocol
from tahoe.protocol.features import COORDINATED, FEATURES, Use
from tahoe.protocol.protocols import check_readable, check_writable

KNOWN_READERS, KNOWN_WRITERS = range(1, 4), range(1, 8)


def made(path: Path) -> Table:
    table = Table.create(path, pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1, 2, 3]}))
    return table


def commit_of_another(path: Path, *actions: dict[str, Any]) -> Table:
    """A commit of a writer that knows more than we do."""
    version = Table(path).version() + 1
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (path / "_delta_log" / f"{version:020d}.json").write_text(text)
    return Table(path)


def protocol_action(reader: int, writer: int, *names: str, of_readers: tuple[str, ...] = ()) -> dict[str, Any]:
    actual: dict[str, Any] = {"minReaderVersion": reader, "minWriterVersion": writer}
    if writer == 7:
        actual["writerFeatures"] = [*names, *of_readers]
    if reader == 3:
        actual["readerFeatures"] = list(of_readers)
    return {"protocol": actual}


def code_of(error: pytest.ExceptionInfo[TahoeError]) -> str | None:
    return error.value.code


# -- versions and features ---------------------------------------------------------------------------------------------------


def test_versions_of_the_protocol_are_refused_by_whom_they_concern_and_by_nobody_else() -> None:
    for reader in range(100):
        for writer in range(100):
            listed = frozenset[str]()
            protocol = Protocol(reader, writer, listed if reader == 3 else None, listed if writer == 7 else None)
            for check, known in (
                (check_readable, reader in KNOWN_READERS),
                (check_writable, reader in KNOWN_READERS and writer in KNOWN_WRITERS),
            ):
                if known:
                    check(protocol, "t")
                    continue
                with pytest.raises(Unsupported) as error:
                    check(protocol, "t")
                assert error.value.code == "DELTA_INVALID_PROTOCOL_VERSION" and f"({reader}, {writer})" in error.value.message


INVENTED = ("fancyNewThing", "deletionvectors", "DeletionVectors", "delta.deletionVectors", "", " ", "a,b", "ünïcode-thing")
"""Among them names that differ in case alone: the specification knows names by their letters."""


@pytest.mark.parametrize("name", INVENTED)
def test_an_invented_feature_of_readers_shuts_everybody_out(tmp_path: Path, name: str) -> None:
    made(tmp_path)
    table = commit_of_another(tmp_path, protocol_action(3, 7, "appendOnly", "invariants", of_readers=(name,)))
    for use in (table.to_arrow, table.files, table.detail, table.version, lambda: table.append(pa.table({"id": [4]}))):
        with pytest.raises(Unsupported) as error:
            use()
        assert code_of(error) == "DELTA_UNSUPPORTED_FEATURES_FOR_READ" and error.value.facts["features"] == [name]


@pytest.mark.parametrize("name", INVENTED)
def test_an_invented_feature_of_writers_shuts_writers_out(tmp_path: Path, name: str) -> None:
    made(tmp_path)
    table = commit_of_another(tmp_path, protocol_action(1, 7, "appendOnly", "invariants", name))
    assert table.to_arrow()["id"].to_pylist() == [1, 2, 3]
    before = table.version()
    for write in (
        lambda: table.append(pa.table({"id": [4]})),
        lambda: table.delete("id = 1"),
        lambda: table.set_properties({"a": "b"}),
        lambda: table.optimize(),
        lambda: table.restore(version=0),
        lambda: table.vacuum(0, retention_check=False),
        lambda: table.drop_feature("appendOnly" if not name else "checkConstraints"),
    ):
        with pytest.raises(TahoeError):
            write()
        assert Table(tmp_path).version() == before
    with pytest.raises(Unsupported) as error:
        table.append(pa.table({"id": [4]}))
    assert code_of(error) == "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE" and error.value.facts["features"] == [name]
    assert len(list(tmp_path.glob("*.parquet"))) == 1  # and nothing was left behind


@pytest.mark.parametrize("writer", [8, 99])
def test_a_table_of_later_writers_is_read_and_not_written(tmp_path: Path, writer: int) -> None:
    made(tmp_path)
    table = commit_of_another(tmp_path, protocol_action(1, writer))
    assert table.to_arrow()["id"].to_pylist() == [1, 2, 3]
    with pytest.raises(Unsupported) as error:
        table.append(pa.table({"id": [4]}))
    assert code_of(error) == "DELTA_INVALID_PROTOCOL_VERSION"


def test_no_feature_of_ours_is_asked_for_under_an_invented_name(tmp_path: Path) -> None:
    table = made(tmp_path)
    for name in ("fancyNewThing", "", "a,b"):
        for call in (lambda: table.add_feature(name), lambda: table.set_properties({f"delta.feature.{name}": "supported"})):  # noqa: B023
            with pytest.raises(TahoeError) as error:
                call()
            assert code_of(error) == "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG"
    for status in ("unsupported", "true", "disabled", ""):
        with pytest.raises(TahoeError) as error:
            table.set_properties({"delta.feature.deletionVectors": status})
        assert code_of(error) == "DELTA_UNSUPPORTED_FEATURE_STATUS"
    for key, value, code in (
        ("delta.minReaderVersion", "4", "TAHOE_TABLE_PROPERTY"),
        ("delta.minWriterVersion", "0", "TAHOE_TABLE_PROPERTY"),
        ("delta.minWriterVersion", "seven", "DELTA_PROTOCOL_PROPERTY_NOT_INT"),
        ("delta.minReaderVersion", "3", "DELTA_READ_FEATURE_PROTOCOL_REQUIRES_WRITE"),
    ):
        with pytest.raises(TahoeError) as error:
            table.set_properties({key: value})
        assert code_of(error) == code
    assert table.version() == 1


def test_every_feature_that_we_do_not_read_or_write_is_refused_by_name(tmp_path: Path) -> None:
    for number, (name, row) in enumerate(FEATURES.items()):
        made(path := tmp_path / str(number))
        listed = protocol_action(3, 7, of_readers=(name,)) if row.reader else protocol_action(1, 7, name)
        table = commit_of_another(path, listed)
        if not row.supports(Use.READ) or name in COORDINATED:
            with pytest.raises(Unsupported, match=name) as error:
                table.to_arrow()
            blocked = "PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED"
            assert code_of(error) == f"DELTA_{blocked if row.supports(Use.READ) else 'UNSUPPORTED_FEATURES_FOR_READ'}"
            continue
        assert table.to_arrow()["id"].to_pylist() == [1, 2, 3]
        if not row.supports(Use.WRITE):
            with pytest.raises(Unsupported, match=name) as error:
                table.append(pa.table({"id": [4]}))
            assert code_of(error) == "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"


# -- actions, members, properties --------------------------------------------------------------------------------------------

UNKNOWN: dict[str, Any] = {"deep": [{"er": None}], "text": "ü", "number": 1e300}


def add_action(path: str) -> dict[str, Any]:
    return {
        "path": path,
        "partitionValues": {},
        "size": 0,
        "modificationTime": 0,
        "dataChange": True,
        "stats": json.dumps({"numRecords": 3, "inventedStatistic": UNKNOWN, "minValues": {"nobody": 1}}),
        "tags": {"SOMEBODYS_TAG": "kept"},
        "inventedMember": UNKNOWN,
    }


def test_unknown_members_are_ignored_and_data_of_other_clients_is_kept(tmp_path: Path) -> None:
    """One table with something invented at every level, through a change of the metadata, a checkpoint and a commit after it."""
    table = made(tmp_path)
    first = table.files()["path"][0].as_py()
    shutil.copy(tmp_path / first, tmp_path / "second.parquet")
    metadata = json.loads(_metadata_line(tmp_path))["metaData"]
    schema = json.loads(metadata["schemaString"])
    schema["fields"][0]["metadata"] = {"somebodys.key": {"deep": [1, 2]}, "comment": "c"}
    metadata |= {"schemaString": json.dumps(schema), "inventedMember": UNKNOWN}
    metadata["configuration"] |= {"somebodys.property": "kept", "delta.inventedProperty": "kept"}
    add = add_action("second.parquet") | {"size": (tmp_path / first).stat().st_size}
    table = commit_of_another(
        tmp_path,
        {"commitInfo": {"operation": "INVENTION", "timestamp": 1, "inventedMember": UNKNOWN}},
        {"inventedAction": UNKNOWN},
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2, "inventedMember": UNKNOWN}},
        {"metaData": metadata},
        {"add": add},
        {"txn": {"appId": "a", "version": 7, "inventedMember": UNKNOWN}},
    )
    assert table.to_arrow()["id"].to_pylist() == [1, 2, 3] * 2
    assert table.history(1)[0]["operation"] == "INVENTION"
    table.set_properties({"mine": "too"})
    table.checkpoint()
    table.append(pa.table({"id": [4]}))
    (tmp_path / "_delta_log" / f"{0:020d}.json").unlink()  # so that the checkpoint is read
    actual = Table(tmp_path)
    assert sorted(actual.to_arrow()["id"].to_pylist()) == sorted([1, 2, 3] * 2 + [4])
    configuration = actual.snapshot().metadata.configuration
    assert (
        configuration["somebodys.property"] == configuration["delta.inventedProperty"] == "kept"
        and configuration["mine"] == "too"
    )
    assert json.loads(actual.snapshot().metadata.schema_string)["fields"][0]["metadata"]["somebodys.key"] == {"deep": [1, 2]}
    tags = {row["path"]: dict(row["tags"] or ()) for row in actual.files().to_pylist()}
    assert tags["second.parquet"] == {"SOMEBODYS_TAG": "kept"}
    assert actual.snapshot().state.transactions["a"].version == 7
    assert actual.check() == []


def _metadata_line(path: Path) -> str:
    lines = (path / "_delta_log" / f"{0:020d}.json").read_text().splitlines()
    return next(line for line in lines if line.startswith('{"metaData"'))


def test_domains_of_others_are_kept(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.add_feature("domainMetadata")
    domain = {"domain": "somebodys.domain", "configuration": '{"any": ["thing"]}', "removed": False, "inventedMember": UNKNOWN}
    table = commit_of_another(tmp_path, {"domainMetadata": domain})
    table.set_properties({"a": "b"})
    table.checkpoint()
    table.optimize()
    (tmp_path / "_delta_log" / f"{0:020d}.json").unlink()
    assert Table(tmp_path).snapshot().state.domains["somebodys.domain"].configuration == '{"any": ["thing"]}'


@pytest.mark.parametrize("kind", ["interval", "timestamp_nanos", {"type": "tensor", "shape": [1]}])
def test_columns_of_a_type_that_is_not_known_are_refused_by_name(tmp_path: Path, kind: object) -> None:
    made(tmp_path)
    metadata = json.loads(_metadata_line(tmp_path))["metaData"]
    schema = json.loads(metadata["schemaString"])
    schema["fields"].append({"name": "odd", "type": kind, "nullable": True, "metadata": {}})
    table = commit_of_another(tmp_path, {"metaData": metadata | {"schemaString": json.dumps(schema)}})
    with pytest.raises(TahoeError, match=r"odd|interval|timestamp_nanos|tensor"):
        table.to_arrow()
