"""No secret shows anywhere: each source of a secret is combined with each place where it could show.

The server of the probes refuses each request, and repeats the request's headers, query and body in its answer, as some stores do. A probe
fails if a secret, or the part of it that identifies it, is in an error, its traceback, a log at DEBUG, a representation, HTML, or the
output of a command. A second test reads every file of tables that could be written.
"""

from __future__ import annotations

import base64
import logging
import sys
import threading
import traceback
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from tahoe import Table
from tahoe.base.exceptions import TahoeError
from tahoe.cli.main import app, main
from tahoe.coordinator.sql_coordinator import SqlCoordinator
from tahoe.store import object_store
from tahoe.store.hadoop_settings import storage_options
from tahoe.store.object_store import open_store
from tests.sampling import sampled

CANARY = "CANARYsecret0123456789"
OF_32_BYTES = f"{CANARY:_<32}".encode()
AS_KEY = base64.b64encode(OF_32_BYTES).decode()
HIDDEN_FORMS = (CANARY, AS_KEY, quote(AS_KEY, safe=""), base64.b64encode(CANARY.encode()).decode().rstrip("="))
SERVICE_ACCOUNT = f'{{"private_key": "{CANARY}", "private_key_id": "x", "client_email": "a@b", "gcs_base_url": "{{endpoint}}"}}'


@dataclass(frozen=True)
class Source:
    """A way by which a secret reaches Tahoe; ``{endpoint}`` in a value is the server's URL.

    Args:
        hadoop: settings of a Hadoop file system, which are translated to options.
        coordinator: the URL of a coordinator's database, for the places that take one.
    """

    path: str
    options: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    hadoop: Mapping[str, str] = field(default_factory=dict)
    coordinator: str = ""

    def table(self, endpoint: str) -> Table:
        coordinator = SqlCoordinator(self.coordinator) if self.coordinator else None
        return Table(self.path, storage_options=self.storage_options(endpoint), coordinator=coordinator)

    def storage_options(self, endpoint: str) -> dict[str, str]:
        hadoop = {name: value.replace("{endpoint}", endpoint) for name, value in self.hadoop.items()}
        options = storage_options(self.path, hadoop, {}) if hadoop else {}
        return options | {name: value.replace("{endpoint}", endpoint) for name, value in self.options.items()}


S3 = {"aws_endpoint": "{endpoint}", "aws_region": "us-east-1", "allow_http": "true"}
S3_KEYS = {"aws_access_key_id": CANARY, "aws_secret_access_key": CANARY}
LOCK_TABLE = {"io.delta.storage.S3DynamoDBLogStore.ddb.tableName": "locks"}
AZURE = {"azure_storage_endpoint": "{endpoint}", "azure_storage_account_name": "account", "allow_http": "true"}
S3A = {"fs.s3a.endpoint": "{endpoint}", "fs.s3a.endpoint.region": "us-east-1", "fs.s3a.path.style.access": "true"}
S3A_KEYS = {"fs.s3a.access.key": CANARY, "fs.s3a.secret.key": CANARY}
SOURCES = {
    "S3, options": Source("s3://bucket/t", S3 | S3_KEYS),
    "S3, option in upper case": Source("s3://bucket/t", S3 | {name.upper(): value for name, value in S3_KEYS.items()}),
    "S3, session token": Source("s3://bucket/t", S3 | S3_KEYS | {"aws_session_token": CANARY}),
    "S3, customer key": Source(
        "s3://bucket/t", S3 | S3_KEYS | {"aws_server_side_encryption": "sse-c", "aws_sse_customer_key_base64": AS_KEY}
    ),
    "S3, environment": Source("s3://bucket/t", S3, {name.upper(): value for name, value in S3_KEYS.items()}),
    "S3, token in the environment": Source("s3://bucket/t", S3 | S3_KEYS, {"AWS_SESSION_TOKEN": CANARY}),
    "S3, Hadoop": Source("s3a://bucket/t", {"allow_http": "true"}, hadoop=S3A | S3A_KEYS),
    "S3, Hadoop, of the bucket": Source(
        "s3a://bucket/t",
        {"allow_http": "true"},
        hadoop=S3A | {"fs.s3a.access.key": "k", "fs.s3a.bucket.bucket.secret.key": CANARY},
    ),
    "S3, proxy": Source("s3://bucket/t", S3 | S3_KEYS | {"proxy_url": f"http://user:{CANARY}@127.0.0.1:9"}),
    "S3, wrong option": Source("s3://bucket/t", S3 | {"no_such_option": CANARY}),
    "S3, wrong value": Source("s3://bucket/t", S3 | {"timeout": CANARY}),
    "S3, line break in a key": Source("s3://bucket/t", S3 | {"aws_secret_access_key": f"{CANARY}\n"}),
    "S3, credentials in the endpoint": Source("s3://bucket/t", {**S3, "aws_endpoint": f"http://user:{CANARY}@127.0.0.1:9"}),
    "S3, lock table": Source("s3://bucket/t", S3 | S3_KEYS | LOCK_TABLE, {"AWS_ENDPOINT_URL_DYNAMODB": "{endpoint}"}),
    "S3, lock table, environment": Source(
        "s3://bucket/t",
        S3 | LOCK_TABLE,
        {**{name.upper(): value for name, value in S3_KEYS.items()}, "AWS_ENDPOINT_URL_DYNAMODB": "{endpoint}"},
    ),
    "HDFS, setting": Source("hdfs://127.0.0.1:9/t", {"fs.s3a.secret.key": CANARY}),
    "HDFS, wrong option": Source("hdfs://127.0.0.1:9/t", {"secret": CANARY}),
    "HDFS, user in the URL": Source(f"hdfs://user:{CANARY}@127.0.0.1:9/t"),
    "coordinator, password": Source("memory://probes/coordinated", coordinator=f"postgresql://user:{CANARY}@127.0.0.1:9/db"),
    "coordinator, wrong scheme": Source("memory://probes/coordinated", coordinator=f"mysql://user:{CANARY}@127.0.0.1:9/db"),
    "Azure, account key": Source("az://container/t", AZURE | {"azure_storage_account_key": AS_KEY}),
    "Azure, environment": Source("az://container/t", AZURE, {"AZURE_STORAGE_ACCOUNT_KEY": AS_KEY}),
    "Azure, signature": Source("az://container/t", AZURE | {"azure_storage_sas_key": f"sv=2023&se=2099&sig={CANARY}"}),
    "Azure, bearer token": Source("az://container/t", AZURE | {"azure_storage_token": CANARY}),
    "Azure, client secret": Source(
        "az://container/t",
        AZURE
        | {"azure_storage_client_id": "i", "azure_storage_client_secret": CANARY, "azure_storage_tenant_id": "t"}
        | {"azure_storage_authority_host": "{endpoint}"},
    ),
    "Google, service account": Source("gs://bucket/t", {"google_service_account_key": SERVICE_ACCOUNT}),
    "Google, environment": Source("gs://bucket/t", {}, {"GOOGLE_SERVICE_ACCOUNT_KEY": SERVICE_ACCOUNT}),
    "URL, user": Source(f"s3://user:{CANARY}@bucket/t", S3),
    "URL, query": Source(f"s3://bucket/t?X-Amz-Signature={CANARY}", S3),
    "URL, Azure signature": Source(f"az://container/t?sig={CANARY}", AZURE),
    "URL, other scheme": Source(f"https://user:{CANARY}@host/t?sig={CANARY}"),
}

Place = Callable[[Source, str, Path], object]
ROWS = pa.table({"id": [1]})


def _with_table(work: Callable[[Table], object]) -> Place:
    return lambda source, endpoint, folder: work(source.table(endpoint))


def _command(*words: str) -> Place:
    """A command of the command line, with options as flags. `PATH` is the table, `FILE` and `BUNDLE` are files to be written."""

    def run(source: Source, endpoint: str, folder: Path) -> object:
        flags = [part for pair in source.storage_options(endpoint).items() for part in ("--option", "=".join(pair))]
        places = {"PATH": source.path, "FILE": str(folder / "out"), "BUNDLE": str(folder / "out.zip")}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["tahoe", *(places.get(word, word) for word in words), *flags])
            with suppress(SystemExit):
                main()
        return [content for path in folder.iterdir() for content in _contents(path)]

    return run


def _contents(path: Path) -> list[bytes]:
    """The bytes of a file, and of each entry if it is an archive."""
    if not zipfile.is_zipfile(path):
        return [path.read_bytes()]
    with zipfile.ZipFile(path) as archive:
        return [archive.read(name) for name in archive.namelist()]


PLACES: dict[str, Place] = {
    "open": _with_table(Table.snapshot),
    "representation": _with_table(repr),
    "HTML": _with_table(Table._repr_html_),
    "append": _with_table(lambda table: table.append(ROWS)),
    "delete": _with_table(lambda table: table.delete("id = 1")),
    "merge": _with_table(lambda table: table.merge(ROWS, "target.id = source.id").when_not_matched_insert_all().execute()),
    "vacuum": _with_table(lambda table: table.vacuum(dry_run=True)),
    "convert": _with_table(lambda table: table.convert_to_delta()),
    "clone": _with_table(lambda table: Table("memory://probes/source").clone(table)),
    "history": _with_table(Table.history),
    "check": _with_table(Table.check),
    "Iceberg status": _with_table(lambda table: table.uniform.status()),
    "create": lambda source, endpoint, folder: Table.create(
        source.path, ROWS.schema, storage_options=source.storage_options(endpoint)
    ),
    "store": lambda source, endpoint, folder: [
        repr(store := open_store(source.path, source.storage_options(endpoint))),
        store.url,
        store.put_if_absent("_delta_log/00000000000000000000.json", b"x"),
    ],
    "tahoe detail": _command("detail", "PATH"),
    "tahoe report": _command("report", "PATH", "--output", "FILE"),
    "tahoe sql": _command("sql", "PATH", "select 1"),
    "tahoe doctor": _command("doctor", "PATH", "--bundle", "BUNDLE"),
}


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server that refuses every request and repeats it."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            pass

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            echo = f"<Error><Code>AccessDenied</Code><Message>{self.path} {self.headers} ".encode() + body + b"</Message></Error>"
            self.send_response(403)
            self.send_header("content-length", str(len(echo)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(echo)

        do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = answer  # noqa: N815

    monkeypatch.setattr(object_store, "_READ_RETRIES", object_store._NO_RETRIES)  # probes are not about retries
    object_store._clients.cache_clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()
    object_store._clients.cache_clear()


PROBES = [(source, place) for source in SOURCES for place in PLACES]


def test_there_are_enough_probes() -> None:
    assert len(PROBES) >= 300


@pytest.mark.parametrize("probe", sampled(PROBES, 10))
def test_a_secret_shows_nowhere(
    probe: tuple[str, str],
    endpoint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source, place = SOURCES[probe[0]], PLACES[probe[1]]
    for name, value in source.environment.items():
        monkeypatch.setenv(name, value.replace("{endpoint}", endpoint))
    caplog.set_level(logging.DEBUG)
    shown: list[str] = []
    try:
        shown.append(repr(place(source, endpoint, tmp_path)))
    except (TahoeError, FileNotFoundError) as error:
        shown += [str(error), repr(error), repr(getattr(error, "facts", "")), *traceback.format_exception(error)]
    printed = capsys.readouterr()
    shown += [printed.out, printed.err, caplog.text, *(repr(record.__dict__) for record in caplog.records)]
    assert any(shown), "the probe reached nothing"
    assert [text for text in shown for form in HIDDEN_FORMS if form in text] == []


UNIFORM = {"delta.universalFormat.enabledFormats": "iceberg", "delta.enableIcebergCompatV2": "true"}


@pytest.mark.parametrize("kind", ["local", "memory", "S3"])
def test_no_file_of_a_table_has_a_secret(
    kind: str,
    tmp_path: Path,
    memory_url: str,
    s3_url: str,
    s3_options: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Commits, checkpoints, checksums, Iceberg metadata, data files and the records of clones."""
    caplog.set_level(logging.DEBUG)
    for name in ("AWS_SESSION_TOKEN", "AZURE_STORAGE_ACCOUNT_KEY", "PYICEBERG_CATALOG__PROBE__TOKEN", "DATABASE_PASSWORD"):
        monkeypatch.setenv(name, CANARY)
    url = {"local": str(tmp_path / "t"), "memory": memory_url, "S3": s3_url}[kind]
    options = {**(s3_options if kind == "S3" else {}), **S3_KEYS, "aws_session_token": CANARY}
    table = Table.create(url, {"id": "long"}, properties=UNIFORM, storage_options=options)
    table.append(pa.table({"id": range(10)}))
    table.delete("id = 3")
    table.checkpoint()
    clone = f"{url}-clone"
    table.clone(clone, shallow=True, storage_options=options)
    table.uniform.sync()
    table.vacuum(0, retention_check=False)
    for each in (table, Table(clone, storage_options=options)):
        names = [entry.name for entry in each.store.walk()]
        assert any(name.endswith(".json") for name in names)
        assert [name for name in names for form in HIDDEN_FORMS if form.encode() in each.store.get(name)] == []
        shown = [repr(each.history()), each._repr_html_(), repr(each.report()), repr(each.detail()), caplog.text]
        assert [text for text in shown for form in HIDDEN_FORMS if form in text] == []
    flags = [part for pair in options.items() for part in ("--option", "=".join(pair))]
    for command in (["history"], ["detail", "--json"], ["files"], ["doctor", "--json"]):
        assert CANARY not in CliRunner().invoke(app, [command[0], url, *command[1:], *flags]).output
