"""`tahoe serve --iceberg` as a process of its own: PyIceberg and DuckDB list and read Delta tables through it, and change nothing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import ForbiddenError, NoSuchTableError, UnauthorizedError
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

import tahoe
from tests.duckdb_with import duckdb_with
from tests.interop.engines import canonical

UNIFORM = {"delta.universalFormat.enabledFormats": "iceberg", "delta.enableIcebergCompatV2": "true"}
TOKEN = "a token of the tests"
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("part", pa.string())])


def rows(first: int, last: int) -> pa.Table:
    ids = range(first, last)
    return pa.table({"id": ids, "name": [f"n{i}" for i in ids], "part": [f"p {i % 3}" for i in ids]}, schema=SCHEMA)


@dataclass(frozen=True)
class Served:
    """A warehouse with the table ``sales.orders``, and the address at which it is served."""

    url: str
    root: Path
    orders: tahoe.Table

    def pyiceberg(self) -> RestCatalog:
        return RestCatalog("served", uri=self.url, token=TOKEN)

    def ask(self, method: str, path: str, content: object = None, token: str = TOKEN) -> tuple[int, dict[str, object]]:
        """Status and content of an answer to a request made by hand."""
        body = None if content is None else json.dumps(content).encode()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url + path, body, headers, method=method)) as answer:
                return answer.status, json.loads(answer.read() or b"{}")
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read() or b"{}")


def start(
    root: Path, *words: str, files: int | None = None, program: Sequence[str] = ("-m", "tahoe"), **variables: str
) -> tuple[subprocess.Popen[str], str]:
    """The server as a process, and its address, which it prints once it listens.

    Args:
        files: the limit of open files; None for that of this process.
        program: the Python program.
    """
    bounded = [] if files is None else ["sh", "-c", f'ulimit -n {files} && exec "$@"', "sh"]
    process = subprocess.Popen(
        [*bounded, sys.executable, *program, "serve", "--iceberg", str(root), "--port", "0", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **variables},
    )
    assert process.stdout is not None
    actual = re.search(r"http://\S+", process.stdout.readline())
    assert actual is not None, process.communicate()
    return process, actual[0]


def stop(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGINT)
    printed, complaints = process.communicate(timeout=200)
    assert (printed, complaints) == ("", ""), "nothing was logged, the token least of all"
    assert process.returncode in (0, 130)


@contextmanager
def attached(url: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB with the catalog at this address as its database `ice`."""
    with duckdb_with("avro", "httpfs", "iceberg") as connection:
        connection.execute(f"CREATE SECRET served (TYPE iceberg, TOKEN '{TOKEN}')")
        connection.execute(f"ATTACH 'any' AS ice (TYPE iceberg, ENDPOINT '{url}', SECRET served)")
        yield connection


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("ware house")
    orders = tahoe.Table.create(root / "sales" / "orders", SCHEMA, partition_by=["part"], properties=UNIFORM)
    orders.append(rows(0, 20))
    tahoe.Table.create(root / "top", SCHEMA, properties=UNIFORM).append(rows(5, 9))
    tahoe.Table.create(root / "sales" / "plain", SCHEMA)
    tahoe.Table.create(root / "sales" / "eu" / "line items", SCHEMA, properties=UNIFORM).append(rows(1, 3))
    process, url = start(root, TAHOE_TOKEN=TOKEN)
    yield Served(url, root, orders)
    stop(process)


@pytest.fixture(scope="module")
def duck(served: Served) -> Iterator[duckdb.DuckDBPyConnection]:
    with attached(served.url) as connection:
        yield connection


def test_pyiceberg_lists_namespaces_and_tables(served: Served) -> None:
    catalog = served.pyiceberg()
    assert catalog.list_namespaces() == [("default",), ("sales",)]
    assert catalog.list_namespaces("sales") == [("sales", "eu")]
    assert catalog.list_tables("default") == [("default", "top")]
    assert catalog.list_tables("sales") == [("sales", "orders")]  # and not sales.plain, which has no UniForm
    assert catalog.list_tables(("sales", "eu")) == [("sales", "eu", "line items")]
    assert catalog.namespace_exists("sales") and not catalog.namespace_exists("nowhere")
    assert catalog.table_exists("sales.orders") and not catalog.table_exists("sales.nothing")
    assert catalog.load_namespace_properties("sales") == {}
    with pytest.raises(NoSuchTableError):
        catalog.load_table("sales.nothing")


def test_pyiceberg_reads_the_newest_commit_whoever_made_it_and_whether_or_not_it_was_converted(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = served.pyiceberg()
    for name, place in (
        ("sales.orders", "sales/orders"),
        ("default.top", "top"),
        (("sales", "eu", "line items"), "sales/eu/line items"),
    ):
        assert canonical(catalog.load_table(name).scan().to_arrow()) == canonical(tahoe.Table(served.root / place).to_arrow())
    monkeypatch.setattr(
        "tahoe.api.process.UNIFORM_RUNTIME.queue.submit", lambda *_: None
    )  # this process's converter does nothing
    for change in (
        lambda: served.orders.append(rows(100, 130)),
        lambda: served.orders.overwrite(rows(500, 505), replace_where="id >= 15"),
        lambda: served.orders.append(rows(200, 201).append_column("new", [["x"]]), merge_schema=True),
    ):
        change()
        assert served.orders.uniform.status().lag_versions == 1
        actual = catalog.load_table("sales.orders")
        assert canonical(actual.scan().to_arrow()) == canonical(served.orders.to_arrow())
        assert actual.metadata.properties["delta-version"] == str(served.orders.version())
    filtered = actual.scan(row_filter="part == 'p 1' and id < 200").to_arrow()
    assert canonical(filtered) == canonical(served.orders.to_arrow("part = 'p 1' and id < 200"))


def test_duckdb_lists_and_reads_the_newest_commit(served: Served, duck: duckdb.DuckDBPyConnection) -> None:
    actual = duck.execute("SELECT table_schema, table_name FROM information_schema.tables WHERE table_catalog = 'ice'").fetchall()
    assert {("sales", "orders"), ("default", "top")} <= set(actual)
    for _ in range(2):
        assert canonical(duck.execute("SELECT * FROM ice.sales.orders").to_arrow_table()) == canonical(served.orders.to_arrow())
        served.orders.append(rows(1000, 1010))
    assert duck.execute('SELECT count(*) FROM ice."default".top WHERE id > 5').fetchall() == [(3,)]


def test_a_table_without_uniform_is_refused_with_the_property_to_set(served: Served, duck: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(Exception, match="enabledFormats"):
        served.pyiceberg().load_table("sales.plain")
    with pytest.raises(duckdb.Error, match="UniForm is not enabled"):
        duck.execute("SELECT * FROM ice.sales.plain")


ICEBERG_SCHEMA = Schema(NestedField(1, "id", LongType()))
ORDERS = {"namespace": ["sales"], "name": "orders"}

# The kinds of writes: through PyIceberg (None where its client has no such call) and as its request.
Write = tuple[Callable[[RestCatalog], object] | None, str, str, object]
WRITES: dict[str, Write] = {
    "create a table": (
        lambda c: c.create_table("sales.made", ICEBERG_SCHEMA),
        *("POST", "/v1/namespaces/sales/tables", {"name": "made", "schema": ICEBERG_SCHEMA.model_dump()}),
    ),
    "drop a table": (
        lambda c: c.purge_table("sales.orders"),
        *("DELETE", "/v1/namespaces/sales/tables/orders?purgeRequested=true", None),
    ),
    "rename a table": (
        lambda c: c.rename_table("sales.orders", "sales.renamed"),
        *("POST", "/v1/tables/rename", {"source": ORDERS, "destination": {**ORDERS, "name": "renamed"}}),
    ),
    "append": (
        lambda c: c.load_table("sales.orders").append(rows(1, 2)),
        *("POST", "/v1/namespaces/sales/tables/orders", {"requirements": [], "updates": [{"action": "add-snapshot"}]}),
    ),
    "overwrite": (
        lambda c: c.load_table("sales.orders").overwrite(rows(1, 2)),
        *("POST", "/v1/namespaces/sales/tables/orders", {"requirements": [], "updates": [{"action": "set-snapshot-ref"}]}),
    ),
    "delete rows": (
        lambda c: c.load_table("sales.orders").delete("part = 'p 1'"),
        *("POST", "/v1/namespaces/sales/tables/orders", {"requirements": [], "updates": [{"action": "remove-snapshots"}]}),
    ),
    "change the schema": (
        lambda c: c.load_table("sales.orders").update_schema().add_column("more", LongType()).commit(),
        *("POST", "/v1/namespaces/sales/tables/orders", {"requirements": [], "updates": [{"action": "add-schema"}]}),
    ),
    "set properties": (
        lambda c: c.load_table("sales.orders").transaction().set_properties({"a": "b"}).commit_transaction(),
        *("POST", "/v1/namespaces/sales/tables/orders", {"requirements": [], "updates": [{"action": "set-properties"}]}),
    ),
    "create a namespace": (
        lambda c: c.create_namespace("made"),
        *("POST", "/v1/namespaces", {"namespace": ["made"], "properties": {}}),
    ),
    "drop a namespace": (lambda c: c.drop_namespace("sales"), "DELETE", "/v1/namespaces/sales", None),
    "register a table": (
        lambda c: c.register_table("sales.registered", "file:///elsewhere/metadata/v1.metadata.json"),
        *("POST", "/v1/namespaces/sales/register", {"name": "registered", "metadata-location": "file:///elsewhere"}),
    ),
    "create a view": (None, "POST", "/v1/namespaces/sales/views", {"name": "v"}),
    "commit a transaction of tables": (None, "POST", "/v1/transactions/commit", {"table-changes": [{"identifier": ORDERS}]}),
}


def files_of(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def assert_unchanged(root: Path, before: dict[Path, bytes]) -> None:
    """Nothing that was there changed, and no log, metadata or hint was added. (An Iceberg client writes data files and manifests
    by itself before it asks for the commit; nothing names them.)"""
    after = files_of(root)
    assert {path: after.get(path) for path in before} == before
    assert {path.suffix for path in after.keys() - before.keys()} <= {".parquet", ".avro"}


@pytest.mark.parametrize("name", WRITES)
def test_every_kind_of_write_is_refused_and_changes_nothing(served: Served, name: str) -> None:
    through_pyiceberg, method, path, content = WRITES[name]
    catalog = served.pyiceberg()
    catalog.load_table("sales.orders")  # every pending conversion is done
    before = files_of(served.root)
    if through_pyiceberg is not None:
        with pytest.raises(NotImplementedError, match="Server does not support endpoint"):
            through_pyiceberg(catalog)
        catalog._supported_endpoints = _Everything()  # as a client that ignores the endpoints that the server lists
        with pytest.raises(ForbiddenError, match="read-only"):
            through_pyiceberg(catalog)
    answer, error = served.ask(method, path, content)
    assert answer == 403
    assert "through Delta" in error["error"]["message"]
    assert_unchanged(served.root, before)
    assert canonical(catalog.load_table("sales.orders").scan().to_arrow()) == canonical(served.orders.to_arrow())


def test_the_rest_of_the_namespaces_and_views_are_refused_too(served: Served) -> None:
    for method, path in (
        ("POST", "/v1/namespaces/sales/properties"),
        ("POST", "/v1/namespaces/sales/views/v"),
        ("DELETE", "/v1/namespaces/sales/views/v"),
        ("POST", "/v1/views/rename"),
        ("POST", "/v1/namespaces/sales/tables/orders/unregister"),
    ):
        assert served.ask(method, path, {})[0] == 403, (method, path)
    assert served.ask("GET", "/v1/nothing")[0] == 404


class _Everything:
    def __contains__(self, endpoint: object) -> bool:
        return True


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO ice.sales.orders (id) VALUES (1)",
        "DELETE FROM ice.sales.orders",
        "UPDATE ice.sales.orders SET id = 1",
        "DROP TABLE ice.sales.orders",
        "CREATE TABLE ice.sales.made (a INT)",
        "CREATE SCHEMA ice.made",
    ],
)
def test_duckdb_s_writes_are_refused(served: Served, duck: duckdb.DuckDBPyConnection, statement: str) -> None:
    before = files_of(served.root)
    with pytest.raises(duckdb.Error):
        duck.execute(statement)
    assert_unchanged(served.root, before)
    assert served.pyiceberg().load_table("sales.orders").scan().to_arrow().num_rows == served.orders.to_arrow().num_rows


def test_a_wrong_token_opens_nothing(served: Served) -> None:
    assert served.ask("GET", "/v1/config", token="another")[0] == 401
    with pytest.raises(UnauthorizedError):
        RestCatalog("served", uri=served.url, token="another").list_namespaces()


def test_paths_that_climb_find_nothing(served: Served) -> None:
    for path in (
        "/v1/namespaces/..%2F..%2Fetc/tables",
        "/v1/namespaces/sales/tables/..%2F..%2F..",
        "/v1/namespaces/%2e%2e/tables/x",
    ):
        assert served.ask("GET", path)[0] == 404, path
        assert served.ask("HEAD", path)[0] == 404, path


def test_big_bodies_are_swallowed_and_odd_requests_answered(served: Served) -> None:
    assert served.ask("POST", "/v1/namespaces", {"namespace": ["x" * 5_000_000]})[0] == 403
    assert served.ask("GET", "/v1/namespaces?parent=" + "x" * 5000)[0] == 404


def test_a_server_for_others_needs_a_token(tmp_path: Path) -> None:
    for words in (["--host", "0.0.0.0"], ["--host", "0.0.0.0", "--token", ""], ["--port", "99999"]):
        actual = subprocess.run(
            [sys.executable, "-m", "tahoe", "serve", "--iceberg", str(tmp_path), *words],
            capture_output=True,
            text=True,
            env={name: text for name, text in os.environ.items() if name != "TAHOE_TOKEN"},
            timeout=200,
        )
        assert actual.returncode == 2
        assert ("token" in actual.stderr) is ("--host" in words)
