"""The tables and names of a warehouse; each table is shown at its newest version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tahoe
from tahoe.api.process import UNIFORM_RUNTIME
from tahoe.base.exceptions import InvalidRequest, StorageFailure, Unsupported
from tahoe.store.log_store import Refused
from tahoe.store.object_store import open_store
from tahoe.testing.faulty_store import WrappedStore
from tahoe.uniform.convert.converter import Converter
from tahoe.uniform.serve.rest_protocol import ReadOnlyCatalog, Response
from tests.unit.uniform.serve.serving import ROWS, UNIFORM, ask, content, make_table, names, refused, warehouse_of


def test_folders_are_namespaces(catalog: ReadOnlyCatalog) -> None:
    assert content(ask(catalog, "/v1/namespaces"))["namespaces"] == [["default"], ["empty"], ["sales"]]
    assert content(ask(catalog, "/v1/namespaces", "parent="))["namespaces"] == [["default"], ["empty"], ["sales"]]
    assert content(ask(catalog, "/v1/namespaces", "parent=sales"))["namespaces"] == [["sales", "2026 q1.eu"]]
    assert content(ask(catalog, "/v1/namespaces", "parent=default"))["namespaces"] == []
    refused(ask(catalog, "/v1/namespaces", "parent=nowhere"), 404, "NoSuchNamespaceException")
    assert content(ask(catalog, "/v1/namespaces/sales")) == {"namespace": ["sales"], "properties": {}}
    assert ask(catalog, "/v1/namespaces/sales", method="HEAD") == Response(204)
    for absent in ("nowhere", "top", "sales%1Forders", "_hidden", "a%20file", "sales%1F"):
        assert ask(catalog, f"/v1/namespaces/{absent}", method="HEAD").status == 404, absent


def test_an_outdated_table_is_converted_on_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make_table(tmp_path / "t")
    catalog = ReadOnlyCatalog(warehouse_of(tmp_path))
    load = "/v1/namespaces/default/tables/t"
    assert content(ask(catalog, load))["metadata"]["properties"]["delta-version"] == "1"
    with monkeypatch.context() as without_conversion:
        without_conversion.setattr(UNIFORM_RUNTIME.queue, "submit", lambda *_: None)
        table.append(ROWS)
    assert table.uniform.status().lag_versions == 1
    assert content(ask(catalog, load))["metadata"]["properties"]["delta-version"] == "2"


def test_a_coordinated_table_is_shown_with_its_coordinator_and_refused_without(tmp_path: Path) -> None:
    coordinator = tahoe.SqlCoordinator(f"sqlite:///{tmp_path}/c.db")
    properties = {**UNIFORM, "delta.feature.catalogManaged": "supported"}
    (tmp_path / "w").mkdir()
    table = tahoe.Table.create(tmp_path / "w" / "t", ROWS.schema, properties=properties, coordinator=coordinator)
    table.append(ROWS)
    UNIFORM_RUNTIME.queue.drain(30)
    load = "/v1/namespaces/default/tables/t"
    assert "TAHOE_COORDINATOR" in refused(ask(ReadOnlyCatalog(warehouse_of(tmp_path / "w")), load), 500, "Unsupported")
    catalog = ReadOnlyCatalog(warehouse_of(tmp_path / "w", coordinator=coordinator))
    assert content(ask(catalog, load))["metadata"]["properties"]["delta-version"] == "1"
    # Ratified commits that are not yet published are included.
    blocked = tahoe.Table("", store=WithoutPublishing(open_store(tmp_path / "w" / "t")), coordinator=coordinator)
    blocked.append(ROWS)
    assert open_store(tmp_path / "w" / "t").head(f"_delta_log/{2:020d}.json") is None
    assert content(ask(catalog, load))["metadata"]["properties"]["delta-version"] == "2"


class WithoutPublishing(WrappedStore):
    """Storage that refuses to publish commits."""

    def _call(self, method: str, name: str, run: Any) -> Any:
        is_commit = method == "put_if_absent" and name.startswith("_delta_log/0")
        return Refused("not now") if is_commit else run()


def test_a_conversion_that_takes_too_long_is_reported_and_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_table(tmp_path / "t").append(ROWS)
    assert UNIFORM_RUNTIME.queue.drain(120)
    table = tahoe.Table(tmp_path / "t")
    with monkeypatch.context() as without_conversion:
        without_conversion.setattr(UNIFORM_RUNTIME.queue, "submit", lambda *_: None)
        table.append(ROWS)
        answer = ask(ReadOnlyCatalog(warehouse_of(tmp_path, wait_seconds=0.05)), "/v1/namespaces/default/tables/t")
    assert "does not show version 3" in refused(answer, 503, "ServiceUnavailableException")
    assert answer.headers["Retry-After"] == "5"
    patient = ReadOnlyCatalog(warehouse_of(tmp_path))
    assert content(ask(patient, "/v1/namespaces/default/tables/t"))["metadata"]["properties"]["delta-version"] == "3"


def test_a_failed_conversion_is_reported_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make_table(tmp_path / "t")
    catalog = ReadOnlyCatalog(warehouse_of(tmp_path))

    def fails(*_: object, **__: object) -> None:
        raise Unsupported("columns of pure gold")

    with monkeypatch.context() as broken:
        broken.setattr(Converter, "convert", fails)
        table.append(ROWS)
        assert UNIFORM_RUNTIME.queue.drain(120)
        answer = ask(catalog, "/v1/namespaces/default/tables/t")
    assert "columns of pure gold" in refused(answer, 503, "ServiceUnavailableException")
    assert ask(catalog, "/v1/namespaces/default/tables/t").status == 200


HOSTILE = [
    "..",
    ".",
    "%2e%2e",
    "%2E%2E%2Foutside",
    "..%2Foutside",
    "%2F",
    "%2Fetc",
    "..%5Coutside",
    "sales%2Forders",
    "%252e%252e",
    "orders%00",
    "%00",
    "orders%0A",
    "%1F",
    "..%1F..%1Fetc",
    "sales%1F..",
    "_delta_log",
    ".hidden",
    "leads%20out",
    "a" * 5000,
    "%ED%A0%80",
    "file:%2F%2F%2Fetc",
    "s3:%2F%2Fbucket%2Ft",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_match_nothing(tmp_path: Path, name: str) -> None:
    """A table exists outside of the warehouse, next to it and behind links; no spelling of a name reaches it."""
    root = tmp_path / "warehouse"
    for outside in (tmp_path / "outside", tmp_path / "outside" / "etc"):
        (outside / "_delta_log").mkdir(parents=True)
    (root / "sales" / "orders" / "_delta_log").mkdir(parents=True)
    (root / "leads out").symlink_to(tmp_path / "outside")
    (root / "sales" / "leads out").symlink_to(tmp_path / "outside")
    catalog = ReadOnlyCatalog(warehouse_of(root))
    for method in ("GET", "HEAD"):
        for path in (
            f"/v1/namespaces/sales/tables/{name}",
            f"/v1/namespaces/default/tables/{name}",
            f"/v1/namespaces/{name}",
            f"/v1/namespaces/{name}/tables/etc",
            f"/v1/namespaces/{name}/tables/orders",
        ):
            assert ask(catalog, path, method=method).status == 404, path
    assert ask(catalog, f"/v1/namespaces/{name}/tables").status == 404
    assert ask(catalog, f"/v1/namespaces/sales/tables/{name}/credentials").status == 404


@pytest.mark.damages_tables
def test_links_are_followed_only_within_the_warehouse(tmp_path: Path) -> None:
    root = tmp_path / "warehouse"
    make_table(root / "sales" / "orders")
    make_table(tmp_path / "outside" / "t")
    (root / "alias").symlink_to(root / "sales")
    (root / "sales" / "again").symlink_to(root / "sales" / "orders")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "sales" / "t").symlink_to(tmp_path / "outside" / "t")
    (root / "sales" / "log of another").mkdir()
    (root / "sales" / "log of another" / "_delta_log").symlink_to(tmp_path / "outside" / "t" / "_delta_log")
    (root / "nowhere").symlink_to(root / "missing")
    (root / "round").symlink_to(root / "round")
    catalog = ReadOnlyCatalog(warehouse_of(root))
    assert content(ask(catalog, "/v1/namespaces"))["namespaces"] == [["alias"], ["default"], ["sales"]]
    assert names(ask(catalog, "/v1/namespaces/alias/tables")) == ["again", "orders"]
    assert names(ask(catalog, "/v1/namespaces/sales/tables")) == ["again", "orders"]
    assert ask(catalog, "/v1/namespaces/alias/tables/orders").status == 200
    for path in (
        "/v1/namespaces/out/tables/t",
        "/v1/namespaces/sales/tables/t",
        "/v1/namespaces/sales/tables/log%20of%20another",
    ):
        assert ask(catalog, path).status == 404


# -- warehouses ----------------------------------------------------------------------------------------------------------------


def test_a_folder_that_is_a_table_is_not_a_warehouse(root: Path) -> None:
    with pytest.raises(InvalidRequest, match="folder above"):
        warehouse_of(root / "top")


def test_a_folder_called_default_shares_its_namespace_and_a_name_used_twice_is_refused(tmp_path: Path) -> None:
    make_table(tmp_path / "a")
    make_table(tmp_path / "twice")
    make_table(tmp_path / "default" / "b")
    make_table(tmp_path / "default" / "twice")
    (tmp_path / "default" / "deeper").mkdir()
    catalog = ReadOnlyCatalog(warehouse_of(tmp_path))
    assert names(ask(catalog, "/v1/namespaces/default/tables")) == ["a", "b", "twice"]
    assert content(ask(catalog, "/v1/namespaces", "parent=default"))["namespaces"] == [["default", "deeper"]]
    assert ask(catalog, "/v1/namespaces/default/tables/b").status == 200
    message = refused(ask(catalog, "/v1/namespaces/default/tables/twice"), 400, "BadRequestException")
    assert f"{tmp_path}/twice" in message and f"{tmp_path}/default/twice" in message


def test_a_recreated_table_is_shown_with_its_new_content(tmp_path: Path) -> None:
    import shutil

    make_table(tmp_path / "t")
    catalog = ReadOnlyCatalog(warehouse_of(tmp_path))
    first = content(ask(catalog, "/v1/namespaces/default/tables/t"))["metadata"]["table-uuid"]
    shutil.rmtree(tmp_path / "t")
    assert ask(catalog, "/v1/namespaces/default/tables/t").status == 404
    make_table(tmp_path / "t")
    assert content(ask(catalog, "/v1/namespaces/default/tables/t"))["metadata"]["table-uuid"] != first


@pytest.mark.parametrize("kind", ["memory", "s3"])
def test_an_object_store_is_a_warehouse_too(kind: str, request: pytest.FixtureRequest) -> None:
    url = request.getfixturevalue(f"{kind}_url")
    options = request.getfixturevalue("s3_options") if kind == "s3" else {}
    for place in ("sales/orders", "top"):
        tahoe.Table.create(f"{url}/{place}", ROWS.schema, properties=UNIFORM, storage_options=options).append(ROWS)
    assert UNIFORM_RUNTIME.queue.drain(120)
    store = open_store(url, options)
    store.put("sales/notes/readme.txt", b"x")
    store.put("salesroom/readme.txt", b"x")
    catalog = ReadOnlyCatalog(warehouse_of(url, options))
    assert content(ask(catalog, "/v1/namespaces"))["namespaces"] == [["default"], ["sales"], ["salesroom"]]
    assert content(ask(catalog, "/v1/namespaces", "parent=sales"))["namespaces"] == [["sales", "notes"]]
    assert names(ask(catalog, "/v1/namespaces/default/tables")) == ["top"]
    loaded = content(ask(catalog, "/v1/namespaces/sales/tables/orders"))
    assert loaded["metadata-location"] == f"{url}/sales/orders/metadata/v1.metadata.json"
    assert "secret" not in json.dumps(loaded)
    assert ask(catalog, "/v1/namespaces/sale", method="HEAD").status == 404
    assert ask(catalog, "/v1/namespaces/sales/tables/..").status == 404


def test_a_failing_store_asks_the_client_to_retry(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = warehouse_of(root)

    def fails(*_: object) -> None:
        raise StorageFailure("no answer from the store")

    monkeypatch.setattr(type(warehouse._store), "folders", fails)
    refused(ask(ReadOnlyCatalog(warehouse), "/v1/namespaces"), 503, "ServiceUnavailableException")
