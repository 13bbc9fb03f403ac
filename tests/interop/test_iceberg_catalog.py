"""A table whose property names an Iceberg catalog is found there by PyIceberg, version after version, without a call by anyone:
SQLite, PostgreSQL, a Hive metastore, Glue, REST."""

from __future__ import annotations

import os
import shutil
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.utils.config import Config

import tahoe
from tahoe.api.process import UNIFORM_RUNTIME
from tahoe.base.exceptions import InvalidRequest, StorageFailure, TahoeError, Unsupported
from tahoe.uniform.formats.metadata_files import metadata_number
from tests.interop.catalogs import glue_catalog, postgresql, rest_catalog
from tests.interop.engines import canonical
from tests.interop.hive import hive_metastore

NAME = "interop"
ROWS = pa.table({"id": pa.array(range(10), pa.int64()), "at": pa.array(range(10), pa.timestamp("us", "UTC"))})
UNIFORM = {"delta.universalFormat.enabledFormats": "iceberg", "delta.enableIcebergCompatV2": "true"}
# `make interop` brings a PostgreSQL of its own; elsewhere the environment may name one.
POSTGRESQL = os.environ.get("TAHOE_TEST_POSTGRESQL")
KINDS = [
    "sqlite",
    pytest.param("postgresql", marks=[] if POSTGRESQL else pytest.mark.readers),
    pytest.param("hive", marks=pytest.mark.spark),
    "glue",
    "rest",
]
# Glue: boto tries an address where nobody answers for a minute, so there the client itself cannot be made.
DOWN = {"hive": {"uri": "thrift://127.0.0.1:1"}, "glue": {"glue.max-retries": "none"}, "rest": {"uri": "http://127.0.0.1:1"}}


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def properties(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """How PyIceberg reaches a catalog of the kind, which lives as long as the module's tests of the kind."""
    folder = tmp_path_factory.mktemp(kind)
    match kind:
        case "sqlite":
            yield {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db"}
        case "postgresql":
            with postgresql(POSTGRESQL) as uri:
                yield {"type": "sql", "uri": uri}
        case "hive":
            if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
                pytest.skip("a Hive metastore needs a Java runtime")
            with hive_metastore(folder) as uri:
                waits = {"lock-check-max-wait-time": "0.1", "lock-check-retries": "100"}
                yield {"type": "hive", "uri": uri, "hive.hive2-compatible": "true", **waits}
        case "glue":
            with glue_catalog() as actual:
                yield actual
        case "rest":
            with rest_catalog() as actual:
                yield actual


def configure(monkeypatch: pytest.MonkeyPatch, properties: dict[str, str]) -> None:
    """PyIceberg's own configuration of the catalog, as a user would have it in the environment."""
    for name, value in properties.items():
        key = name.upper().replace("-", "_").replace(".", "__")
        monkeypatch.setenv(f"PYICEBERG_CATALOG__{NAME.upper()}__{key}", value)
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    UNIFORM_RUNTIME.catalogs.forget()


def dispose(catalog: Any) -> None:
    engine = getattr(catalog, "engine", None)
    if engine is not None:
        engine.dispose()
    catalog.close()


@pytest.fixture
def theirs(properties: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    configure(monkeypatch, properties)
    catalog = load_catalog(NAME)
    yield catalog
    dispose(catalog)
    dispose(UNIFORM_RUNTIME.catalogs.loaded(NAME))
    UNIFORM_RUNTIME.catalogs.forget()


@pytest.fixture
def identifier() -> str:
    return f"sales.t{uuid.uuid4().hex}"


def made(path: Path, identifier: str | None = None) -> tahoe.Table:
    named = {} if identifier is None else {"delta.universalFormat.config.iceberg.catalogs": f"{NAME}:{identifier}"}
    return tahoe.Table.create(path, ROWS.schema, properties={**UNIFORM, **named})


def test_a_commit_reaches_the_catalog_in_the_background(tmp_path: Path, theirs: Catalog, identifier: str) -> None:
    table = made(tmp_path / "a table", identifier)
    for _ in range(3):
        version = table.append(ROWS)
        table.uniform.wait(version, timeout=200)
        assert table.uniform.sync().catalog_errors == {}
        (of_catalog,) = table.uniform.status(catalog_seconds=200).catalogs
        assert (of_catalog.name, of_catalog.answered, of_catalog.last_error) == (f"{NAME}:{identifier}", True, None)
        assert (of_catalog.delta_version, of_catalog.lag_versions) == (version, 0)
        actual = theirs.load_table(identifier)
        assert actual.metadata.properties["delta-version"] == str(version)
        assert canonical(actual.scan().to_arrow()) == canonical(table.to_arrow())


def test_new_columns_reach_the_catalog(tmp_path: Path, theirs: Catalog, identifier: str, kind: str) -> None:
    table = made(tmp_path / "t", identifier)
    table.append(ROWS)
    table.uniform.sync()
    table.append(ROWS.append_column("more", [["x"] * 10]), merge_schema=True)
    table.uniform.sync()
    assert theirs.load_table(identifier).schema().column_names == ["id", "at", "more"]
    database, name = identifier.split(".")
    if kind == "hive":
        with theirs._client as client:
            entry = client.get_table(database, name)
        assert [(column.name, column.type) for column in entry.sd.cols] == [
            ("id", "bigint"),
            ("at", "timestamp"),
            ("more", "string"),
        ]
        assert entry.parameters["previous_metadata_location"] != entry.parameters["metadata_location"]
        assert entry.parameters["delta-version"] == str(table.version())
    if kind == "glue":
        columns = theirs.glue.get_table(DatabaseName=database, Name=name)["Table"]["StorageDescriptor"]["Columns"]
        assert [column["Name"] for column in columns] == ["id", "at", "more"]


def test_a_pointer_is_moved_only_from_where_it_is(tmp_path: Path, theirs: Catalog, identifier: str) -> None:
    table = made(tmp_path / "t")
    table.append(ROWS)
    first = table.uniform.sync().metadata_location
    table.append(ROWS)
    second = table.uniform.sync().metadata_location
    pointer = UNIFORM_RUNTIME.catalogs.named(f"{NAME}:{identifier}")
    assert pointer.load() is None
    assert pointer.commit(None, first)
    assert pointer.load() == first
    assert not pointer.commit(None, second), "a second registration"
    assert not pointer.commit(second, first), "a stale look"
    assert pointer.commit(first, second)
    assert not pointer.commit(first, second)
    assert pointer.load() == second == theirs.load_table(identifier).metadata_location


def test_of_many_that_move_one_pointer_at_once_one_wins(tmp_path: Path, theirs: Catalog, identifier: str, kind: str) -> None:
    if kind == "rest":
        pytest.skip(
            "the REST protocol's registration names nothing that it expects; the race of converters below holds there too"
        )
    table = made(tmp_path / "t")
    locations = []
    for _ in range(5):
        table.append(ROWS)
        locations.append(table.uniform.sync().metadata_location)
    pointer = UNIFORM_RUNTIME.catalogs.named(f"{NAME}:{identifier}")
    for old in (None, locations[0]):
        start = threading.Barrier(4)
        outcomes: list[bool] = []

        def move(new: str, old: str | None = old, start: threading.Barrier = start, outcomes: list[bool] = outcomes) -> None:
            start.wait()
            try:
                outcomes.append(pointer.commit(old, new))
            except StorageFailure:  # SQLite: the database was locked; nothing was moved
                outcomes.append(False)

        movers = [threading.Thread(target=move, args=(locations[0] if old is None else new,)) for new in locations[1:]]
        for mover in movers:
            mover.start()
        for mover in movers:
            mover.join()
        assert (len(outcomes), outcomes.count(True)) == (4, 1)


def test_two_converters_race_and_no_version_is_lost(tmp_path: Path, theirs: Catalog, identifier: str) -> None:
    """Two that commit and convert one table, each knowing nothing of the other: at no time does the pointer go back, and when
    both are done, it shows the newest version."""
    made(tmp_path / "t", identifier).append(ROWS)
    start, seen, done = threading.Barrier(3), [], threading.Event()
    problems: list[Exception] = []

    def convert() -> None:
        try:
            table = tahoe.Table(tmp_path / "t")
            start.wait()
            for _ in range(4):
                table.append(ROWS)
                _sync_through(table)
        except Exception as error:  # noqa: BLE001 - raised by the assertion below
            problems.append(error)

    def watch() -> None:
        pointer = UNIFORM_RUNTIME.catalogs.named(f"{NAME}:{identifier}")
        start.wait()
        while not done.is_set():
            try:
                location = pointer.load()
            except StorageFailure:
                continue
            seen.append(-1 if location is None else metadata_number(location))

    threads = [threading.Thread(target=convert), threading.Thread(target=convert), threading.Thread(target=watch)]
    for thread in threads:
        thread.start()
    for thread in threads[:2]:
        thread.join()
    done.set()
    threads[2].join()
    assert problems == []
    table = tahoe.Table(tmp_path / "t")
    table.uniform.wait(timeout=200)
    assert UNIFORM_RUNTIME.drain(200, 200) == []
    assert table.version() == 9
    actual = theirs.load_table(identifier)
    assert actual.metadata.properties["delta-version"] == "9"
    assert canonical(actual.scan().to_arrow()) == canonical(table.to_arrow())
    if "Rest" not in type(theirs).__name__:
        assert seen == sorted(seen)


def _sync_through(table: tahoe.Table) -> None:
    for _ in range(20):
        try:
            table.uniform.sync()
            return
        except StorageFailure:  # the other process had locked the catalog all the time
            continue
    table.uniform.sync()


def test_a_catalog_that_is_down_holds_up_neither_commits_nor_readers_by_path_and_is_caught_up(
    tmp_path: Path, theirs: Catalog, identifier: str, kind: str, properties: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    down = DOWN.get(kind, {"uri": f"sqlite:///{tmp_path}/no such folder/catalog.db"})
    with monkeypatch.context() as while_down:
        configure(while_down, {**properties, **down})
        table = made(tmp_path / "t", identifier)
        for _ in range(3):
            table.append(ROWS)
        status = table.uniform.wait(timeout=200)
        assert status.iceberg_version == 3
        with pytest.raises(StorageFailure, match=f"{NAME}:{identifier}|{NAME} failed") as raised:
            table.uniform.sync()
        assert "127.0.0.1:1" not in str(raised.value)
        assert table.uniform.status().last_error is not None
    configure(monkeypatch, properties)
    assert not theirs.table_exists(identifier)
    assert table.uniform.sync().kind == "none"
    assert table.uniform.status().last_error is None
    assert theirs.table_exists(identifier)
    assert canonical(theirs.load_table(identifier).scan().to_arrow()) == canonical(table.to_arrow())


def test_a_table_of_another_kind_is_left_alone(theirs: Catalog, identifier: str, kind: str) -> None:
    name = identifier.rpartition(".")[2]
    if kind == "hive":
        from hive_metastore.ttypes import FieldSchema, SerDeInfo, StorageDescriptor, Table

        storage = StorageDescriptor(
            [FieldSchema("a", "int", None)], "file:///tmp/x", "i", "o", serdeInfo=SerDeInfo(serializationLib="s")
        )
        with theirs._client as client:
            client.create_table(Table(name, "default", "me", 0, 0, sd=storage, parameters={}))
        identifier = f"default.{name}"
    elif kind == "glue":
        theirs.glue.create_database(DatabaseInput={"Name": f"d{name}"})
        theirs.glue.create_table(DatabaseName=f"d{name}", TableInput={"Name": name})
        identifier = f"d{name}.{name}"
    else:
        pytest.skip("this kind holds Iceberg tables alone")
    with pytest.raises(InvalidRequest, match="not an Iceberg table"):
        UNIFORM_RUNTIME.catalogs.named(f"{NAME}:{identifier}").load()


def test_a_catalog_that_is_nowhere_configured_delays_nothing_and_is_reported(tmp_path: Path) -> None:
    table = tahoe.Table.create(
        tmp_path / "t", ROWS.schema, properties={**UNIFORM, "delta.universalFormat.config.iceberg.catalogs": "nowhere:a.b"}
    )
    assert table.uniform.wait(table.append(ROWS), timeout=200).iceberg_version == 1
    with pytest.raises(TahoeError, match="PYICEBERG_CATALOG__"):
        table.uniform.sync()


def test_a_rest_catalog_that_cannot_move_a_table_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path / "t")
    with rest_catalog(overwrite=False) as properties:
        configure(monkeypatch, properties)
        table.uniform.sync(f"{NAME}:a.b")
        table.append(ROWS)
        with pytest.raises(Unsupported, match="register with overwrite"):
            table.uniform.sync(f"{NAME}:a.b")
    UNIFORM_RUNTIME.catalogs.forget()


def test_our_own_rest_server_refuses_registration_and_says_that_none_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.interop.test_iceberg_rest import start

    table = made(tmp_path / "t")
    process, url = start(tmp_path)
    try:
        configure(monkeypatch, {"type": "rest", "uri": url})
        with pytest.raises(Unsupported, match="needs no registration"):
            table.uniform.sync(f"{NAME}:default.another")
    finally:
        process.terminate()
        process.communicate(timeout=200)
    UNIFORM_RUNTIME.catalogs.forget()


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, {"type": "bigquery", "gcp.bigquery.project-id": "p"})
    with pytest.raises(Unsupported, match=r"not (installed|supported)"):
        UNIFORM_RUNTIME.catalogs.named(f"{NAME}:a.b").load()
    UNIFORM_RUNTIME.catalogs.forget()
