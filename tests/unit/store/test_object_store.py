"""Object stores: the outcome for each answer of S3, commits sent once, and secrets never shown."""

from __future__ import annotations

import logging
import os
import pickle
import socket
import threading
import traceback
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, NotFound, StorageFailure, TahoeError, Unsupported
from tahoe.store import object_store
from tahoe.store.log_store import Created, Exists, InFlight, PutOutcome, Refused, Unanswered
from tahoe.store.object_store import ObjectLogStore, open_store
from tahoe.store.refusals import remedy_of

COMMIT = "_delta_log/00000000000000000000.json"
CANARIES = ("CANARY-KEY-ID", "CANARY-SECRET", "CANARY-TOKEN")


class ScriptedS3:
    """An S3 server that answers by a script, and records the requests.

    `answers[method]` is the status of the next answers, or 'drop' (close the connection without an answer) or 'hang'; the first
    `stumbles` answers are 503.
    """

    def __init__(self) -> None:
        self.answers: dict[str, int | str] = {}
        self.requests: list[tuple[str, str, str | None]] = []
        script = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: object) -> None:
                pass

            def answer(self) -> None:
                self.rfile.read(int(self.headers.get("content-length") or 0))
                if self.path.endswith("/.tahoe-probe"):
                    self.reply(script.answer_probe())
                    return
                script.requests.append((self.command, self.path, self.headers.get("if-none-match")))
                answer = script.answers.get(self.command, 200)
                if script.stumbles:
                    script.stumbles -= 1
                    answer = 503
                script.came.set()
                if answer == "hang":
                    script.closed.wait()
                if isinstance(answer, str):
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                self.reply(answer)

            def reply(self, status: int) -> None:
                leak = "".join(f"<Echo>{canary}</Echo>" for canary in CANARIES)
                body = b"" if status < 400 else f"<Error><Code>SomeCode</Code><Message>{leak}</Message></Error>".encode()
                self.send_response(status)
                self.send_header("content-length", str(len(body)))
                self.send_header("etag", '"etag"')
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = answer  # noqa: N815

        self.closed, self.came = threading.Event(), threading.Event()
        self.stumbles = 0
        self.probes = 0
        self.probe_answer: int | None = None
        self.honours_conditions = True
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def answer_probe(self) -> int:
        if self.probe_answer is not None:
            return self.probe_answer
        self.probes += 1
        return 412 if self.probes > 1 and self.honours_conditions else 200

    @property
    def options(self) -> dict[str, str]:
        return {
            "aws_endpoint": self.endpoint,
            "aws_access_key_id": CANARIES[0],
            "aws_secret_access_key": CANARIES[1],
            "aws_session_token": CANARIES[2],
            "aws_region": "us-east-1",
            "timeout": "200s",
        }

    def close(self) -> None:
        self.closed.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedS3]:
    monkeypatch.setattr(object_store, "_READ_RETRIES", object_store._NO_RETRIES)  # this test is not about retries
    object_store._clients.cache_clear()
    script = ScriptedS3()
    yield script
    script.close()
    object_store._clients.cache_clear()


# -- outcomes -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (200, Created()),
        (412, Exists()),
        (409, InFlight("HTTP status 409 (SomeCode)")),
        (400, Refused("HTTP status 400 (SomeCode)")),
        (401, Refused("HTTP status 401 (SomeCode)")),
        (403, Refused("HTTP status 403 (SomeCode)")),
        (404, Refused("HTTP status 404 (SomeCode)")),
        (429, Refused("HTTP status 429 (SomeCode)")),
        (501, Refused("HTTP status 501 (SomeCode)")),
        (408, Unanswered("HTTP status 408 (SomeCode)")),
        (500, Unanswered("HTTP status 500 (SomeCode)")),
        (502, Unanswered("HTTP status 502 (SomeCode)")),
        (503, Unanswered("HTTP status 503 (SomeCode)")),
        ("drop", Unanswered("the connection was lost")),
    ],
)
def test_each_answer_to_a_commit_has_one_outcome_and_the_commit_is_sent_once(
    s3: ScriptedS3, answer: int | str, outcome: PutOutcome
) -> None:
    store = open_store("s3://bucket/t", s3.options)
    s3.answers["PUT"] = answer
    assert store.put_if_absent(COMMIT, b"{}") == outcome
    assert s3.requests == [("PUT", f"/bucket/t/{COMMIT}", "*")]


def test_a_commit_that_is_not_answered_in_time_is_sent_once(s3: ScriptedS3) -> None:
    store = open_store("s3://bucket/t", s3.options | {"timeout": "1s"})
    store._clients.honour_conditions = True  # else the probe would have to be answered within the same second
    s3.answers["PUT"] = "hang"
    assert store.put_if_absent(COMMIT, b"{}") == Unanswered("no answer came in time")
    assert s3.came.wait(200)
    assert s3.requests == [("PUT", f"/bucket/t/{COMMIT}", "*")]


def test_an_unreachable_store_refuses_the_commit(s3: ScriptedS3) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        options = s3.options | {"aws_endpoint": f"http://127.0.0.1:{unused.getsockname()[1]}"}
        outcome = open_store("s3://bucket/t", options).put_if_absent(COMMIT, b"{}")
    assert outcome == Refused("the probe for conditional writes failed: no connection could be made")


def test_the_text_of_a_name_is_not_mistaken_for_the_store_s_answer(s3: ScriptedS3) -> None:
    store = open_store("s3://bucket/t", s3.options)
    s3.answers["PUT"] = 412
    assert store.put_if_absent("inner: Status { status: 409, kind: Connect", b"{}") == Exists()
    s3.answers["PUT"] = 500
    assert isinstance(store.put_if_absent("HttpError { kind: Connect, status: 403", b"{}"), Unanswered)


# -- stores that ignore conditions ----------------------------------------------------------------------------------------------


def test_a_store_that_ignores_conditions_is_refused_before_the_first_commit(s3: ScriptedS3) -> None:
    s3.honours_conditions = False
    store = open_store("s3://bucket/t", s3.options)
    for _ in range(2):
        with pytest.raises(Unsupported, match="does not support conditional writes"):
            store.put_if_absent(COMMIT, b"{}")
    assert s3.requests == []


def test_a_bucket_is_probed_once_and_an_existing_probe_suffices(s3: ScriptedS3) -> None:
    for table in "abc":
        assert open_store(f"s3://bucket/{table}", s3.options).put_if_absent(COMMIT, b"{}") == Created()
    assert s3.probes == 2
    object_store._clients.cache_clear()  # another process
    assert open_store("s3://bucket/a", s3.options).put_if_absent(COMMIT, b"{}") == Created()
    assert s3.probes == 3


def test_a_probe_without_an_answer_refuses_the_commit_and_is_retried(s3: ScriptedS3) -> None:
    store = open_store("s3://bucket/t", s3.options)
    s3.probe_answer = 503
    assert store.put_if_absent(COMMIT, b"{}") == Refused("the probe for conditional writes failed: HTTP status 503 (SomeCode)")
    s3.probe_answer = None
    assert store.put_if_absent(COMMIT, b"{}") == Created()


def test_a_store_whose_conditional_writes_are_disabled_is_refused(s3: ScriptedS3) -> None:
    store = open_store("s3://bucket/t", s3.options | {"aws_conditional_put": "disabled"})
    with pytest.raises(Unsupported, match="switched off"):
        store.put_if_absent(COMMIT, b"{}")


@pytest.mark.parametrize(
    ("options", "probed"),
    [
        ({}, False),
        ({"AWS_ENDPOINT": "https://s3.eu-west-1.amazonaws.com"}, False),
        ({"endpoint_url": "https://bucket.s3.cn-north-1.amazonaws.com.cn/"}, False),
        ({"aws_endpoint": "https://s3.amazonaws.com.evil.example"}, True),
        ({"aws_endpoint": "http://localhost:9000"}, True),
    ],
)
def test_only_amazons_own_endpoints_are_trusted_with_conditions(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, str], probed: bool
) -> None:
    for name in ("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    store = open_store("s3://bucket/t", {"aws_region": "us-east-1", **options})
    assert isinstance(store, ObjectLogStore)
    assert store._clients.honour_conditions is not probed


# -- failures and secrets -------------------------------------------------------------------------------------------------------

CALLS: dict[str, Callable[[object], object]] = {
    "get": lambda store: store.get("name"),
    "get_many": lambda store: store.get_many(["name", "other"]),
    "head": lambda store: store.head("name"),
    "open_input": lambda store: store.open_input("name"),
    "list_from": lambda store: store.list_from("_delta_log", "0"),
    "walk": lambda store: list(store.walk()),
    "put": lambda store: store.put("name", b"x"),
    "put_if_absent": lambda store: store.put_if_absent("name", b"x"),
    "delete": lambda store: store.delete("name"),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("answer", [400, 401, 403, 404, 412, 500, "drop"])
def test_no_failure_shows_a_secret_even_if_the_store_repeats_it(
    s3: ScriptedS3, caplog: pytest.LogCaptureFixture, answer: int | str, call: str
) -> None:
    caplog.set_level(logging.DEBUG)
    store = open_store("s3://bucket/t", s3.options)
    s3.answers = dict.fromkeys(["GET", "PUT", "HEAD", "DELETE", "POST"], answer)
    shown = [repr(store), str(store), store.url]
    error: TahoeError | None = None
    try:
        shown.append(repr(CALLS[call](store)))
    except (StorageFailure, NotFound) as caught:
        error = caught
    if error is not None:
        shown += [str(error), repr(error), repr(error.facts), "".join(traceback.format_exception(error))]
        assert error.__cause__ is None
        assert error.__context__ is None
    assert s3.requests
    assert not [canary for canary in CANARIES for text in [*shown, caplog.text] if canary in text]


@pytest.mark.parametrize(
    "options",
    [
        {"no_such_option": "CANARY-SECRET"},
        {"timeout": "CANARY-SECRET"},
        {"aws_region": "CANARY-KEY-ID", "region": "CANARY-SECRET"},
        {"aws_metadata_endpoint": "CANARY-SECRET", "aws_unknown": "x"},
    ],
)
def test_the_error_for_a_wrong_option_has_its_name_and_never_its_value(options: dict[str, str]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        open_store("s3://bucket/t", options)
    text = "".join(traceback.format_exception(caught.value)) + repr(caught.value.facts)
    assert "s3://bucket" in text
    assert any(name in text for name in options)
    assert not [canary for canary in CANARIES if canary in text]


def test_a_missing_bucket_is_distinguished_from_a_missing_table(s3_options: dict[str, str]) -> None:
    store = open_store("s3://no-such-bucket/t", s3_options)
    for call in ("get", "list_from", "put"):
        with pytest.raises(StorageFailure, match=r"NoSuchBucket.*Create the bucket"):
            CALLS[call](store)
    outcome = store.put_if_absent(COMMIT, b"x")
    assert isinstance(outcome, Refused)
    assert "NoSuchBucket" in outcome.error


TEXTS = ["aws_region", "aws_access_key_id", "aws_secret_access_key", "aws_session_token", "aws_endpoint"]


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("character", ["\n", "\r", "\t", "\0", "\x7f"])
def test_a_control_character_in_an_option_is_refused_by_the_options_name(
    monkeypatch: pytest.MonkeyPatch, name: str, character: str
) -> None:
    value = CANARIES[1] + character
    with pytest.raises(InvalidRequest, match=f"'{name}'.*control character") as caught:
        open_store("s3://bucket/t", {name: value})
    assert "CANARY" not in "".join(traceback.format_exception(caught.value)) + repr(caught.value.facts)
    if character != "\0":  # which environment variables cannot contain
        monkeypatch.setenv(name.upper(), value)
        with pytest.raises(InvalidRequest, match=f"'{name.upper()}'.*control character"):
            open_store("s3://bucket/t", {})
        open_store("memory://bucket/t", {})


@pytest.mark.parametrize("endpoint", ["", "host", "http://", "http://a b", "http://é", "ftp://host", "http:/host"])
def test_an_endpoint_that_is_not_a_url_is_refused(endpoint: str) -> None:
    with pytest.raises(InvalidRequest, match=r"'aws_endpoint'.*must be a URL"):
        open_store("s3://bucket/t", {"aws_endpoint": endpoint})


def test_a_certificate_may_have_lines() -> None:
    with pytest.raises(InvalidRequest, match="cannot be opened"):  # the certificate is invalid, and that is the only error
        open_store("s3://bucket/t", {"root_certificate": "-----BEGIN\nNONE\n", "aws_region": "r"})


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("answer", [401, 403])
def test_denied_access_is_reported_without_advice_to_retry(s3: ScriptedS3, answer: int, call: str) -> None:
    store = open_store("s3://bucket/t", s3.options)
    s3.answers = dict.fromkeys(["GET", "PUT", "HEAD", "DELETE", "POST"], answer)
    error = _failure_of(lambda: CALLS[call](store))
    if error is None:
        return  # a commit returns an outcome, which the transaction reports
    assert error.code == "TAHOE_ACCESS_DENIED"
    assert f"HTTP status {answer}" in error.message
    assert "Access was denied" in error.message
    assert "Try again" not in error.message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "no credentials were found.*aws_access_key_id"),
        ({"aws_access_key_id": "k", "aws_secret_access_key": "s"}, "whether they may read"),
    ],
)
def test_denied_access_distinguishes_missing_credentials_from_missing_permission(
    s3: ScriptedS3, monkeypatch: pytest.MonkeyPatch, options: dict[str, str], message: str
) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    endpoint = {
        "aws_endpoint": s3.options["aws_endpoint"],
        "aws_region": "r",
        "aws_metadata_endpoint": s3.options["aws_endpoint"],
    }
    s3.answers = dict.fromkeys(["GET", "PUT", "HEAD", "DELETE", "POST"], 403)
    with pytest.raises(StorageFailure, match=f"^.TAHOE_ACCESS_DENIED. Table 's3://bucket/t': Access was denied.*{message}"):
        Table("s3://bucket/t", storage_options={**endpoint, **options}).version()


def _failure_of(call: Callable[[], object]) -> StorageFailure | None:
    try:
        assert isinstance(call(), Refused)
    except StorageFailure as error:
        return error
    return None


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("HTTP status 403 (SignatureDoesNotMatch)", "secret key"),
        ("HTTP status 403 (RequestTimeTooSkewed)", "clock"),
        ("HTTP status 400 (ExpiredToken)", "expired"),
        ("HTTP status 400 (AuthorizationHeaderMalformed)", "aws_region"),
        ("HTTP status 404 (NoSuchBucket)", "Create the bucket"),
        ("HTTP status 503", "Try again"),
        ("no answer came in time", "Try again"),
    ],
)
def test_the_remedy_derives_from_the_store_s_code(kind: str, says: str) -> None:
    assert says in remedy_of(kind)


def test_reads_are_retried_after_503(s3: ScriptedS3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # the real retries
    object_store._clients.cache_clear()
    store = open_store("s3://bucket/t", s3.options)
    s3.answers["GET"] = 404
    s3.stumbles = 1
    with pytest.raises(NotFound):
        store.get("name")
    assert len(s3.requests) == 2


# -- names, listings, files -----------------------------------------------------------------------------------------------------


def test_keys_in_the_bucket_are_the_names_themselves(s3_url: str, s3_options: dict[str, str]) -> None:
    name = "p=a%3Ab/with space+#?é.parquet"
    open_store(s3_url, s3_options).put(name, b"x")
    bucket, _, key = s3_url.removeprefix("s3://").partition("/")
    listing = urllib.request.urlopen(f"{s3_options['aws_endpoint']}/{bucket}?list-type=2&prefix={key}").read().decode()
    assert f"<Key>{key}/{name}</Key>" in listing


def test_a_listing_skips_the_content_of_large_sub_folders(memory_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "_PAGE", 5)
    store = open_store(memory_url)
    names = [f"{version:020d}.json" for version in range(12)]
    for name in [*names, "_last_checkpoint", "_zebra"]:
        store.put(f"_delta_log/{name}", b"x")
    for number in range(40):
        store.put(f"_delta_log/_sidecars/{number:03d}.parquet", b"x")
        store.put(f"_delta_log/_staged_commits/{number:03d}.json", b"x")
    seen: list[int] = []
    pages = store._pages  # type: ignore[attr-defined]
    monkeypatch.setattr(store, "_pages", lambda *where: (seen.append(len(page)) or page for page in pages(*where)))
    expected = [f"_delta_log/{name}" for name in [*names, "_last_checkpoint", "_zebra"]]
    assert [entry.name for entry in store.list_from("_delta_log")] == expected
    assert [entry.name for entry in store.list_from("_delta_log", names[7])] == expected[7:]
    assert sum(seen) < 2 * (12 + 2 + 20)


def test_a_parquet_file_is_opened_with_one_request_and_read_by_ranges(s3_url: str, s3_options: dict[str, str]) -> None:

    store = open_store(s3_url, s3_options)
    table = pa.table({"a": range(100_000), "b": range(100_000)})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=50_000, compression="none", use_dictionary=False)
    store.put("part", sink.getvalue().to_pybytes())
    asked: list[str] = []
    ask = store._ask  # type: ignore[attr-defined]
    store._ask = lambda verb, name, request: asked.append(verb) or ask(verb, name, request)  # type: ignore[attr-defined]
    with store.open_input("part") as file:
        footer = pq.ParquetFile(file)
        assert asked == ["open"]
        assert footer.read_row_group(0, columns=["a"]) == table.select(["a"]).slice(0, 50_000)
    assert asked == ["open", "read"]


def test_stores_in_memory_are_shared_by_name() -> None:
    open_store("memory://shared/t").put("name", b"x")
    assert open_store("memory://shared/t").get("name") == b"x"
    assert open_store("memory://shared").get("t/name") == b"x"
    assert open_store("memory://unshared/t").head("name") is None


def test_a_store_can_be_sent_to_another_process(s3_url: str, s3_options: dict[str, str]) -> None:
    store = open_store(s3_url, s3_options)
    store.put("name", b"x")
    assert pickle.loads(pickle.dumps(store)).get("name") == b"x"


def test_credentials_and_an_endpoint_without_tls_from_the_environment_are_used(
    s3_url: str, s3_options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3_options.items():
        monkeypatch.setenv(name.upper(), value)
    store = open_store(s3_url)
    assert store.put_if_absent(COMMIT, b"{}") == Created()
    assert store.get(COMMIT) == b"{}"


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("abfss://container@account.dfs.core.windows.net/t", {"azure_storage_account_key": "Q0FOQVJZLVNFQ1JFVA=="}),
        ("az://container/t", {"account_name": "account", "account_key": "Q0FOQVJZLVNFQ1JFVA=="}),
        ("gs://bucket/t", {"google_skip_signature": "true"}),
    ],
)
def test_other_clouds_are_opened_by_their_url(url: str, options: dict[str, str]) -> None:
    store = open_store(url, options)
    assert isinstance(store, ObjectLogStore)
    assert (store.url, repr(store)) == (url, f"ObjectLogStore('{url}')")


def test_a_large_object_is_put_whole(s3_url: str, s3_options: dict[str, str]) -> None:
    store = open_store(s3_url, s3_options)
    data = bytes(range(256)) * 50_000  # obstore sends it in parts
    store.put("large", data)
    assert store.get("large") == data


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("az://box/t", {"azure_storage_account_name": "a", "azure_storage_account_key": "AAAA", "azure_allow_http": "true"}),
        ("s3://box/t", {"aws_allow_http": "true"}),
        ("gs://box/t", {"google_allow_http": "true", "google_skip_signature": "true"}),
    ],
)
def test_options_of_the_http_client_may_have_the_prefix_of_the_store(url: str, options: dict[str, str]) -> None:
    assert open_store(url, options).url == url
