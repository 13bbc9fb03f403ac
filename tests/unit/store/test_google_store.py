"""Tables on Google Cloud Storage: moto's S3 server, whose XML API Google's follows, with the precondition header of Google."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from functools import partial
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

from tahoe import Table
from tahoe.store.log_store import LogStore
from tahoe.store.object_store import open_store
from tahoe.testing.interleaving import in_threads
from tahoe.testing.store_suite import LogStoreContract
from tests.moto_server import Application, moto_server

_SIGNED = "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
"""moto refuses unsigned requests, and does not verify signatures."""


def with_preconditions_of_google(application: Application) -> Application:
    """Translate Google's "create only" to S3's, and add the generation that Google's responses have."""

    def google(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        generation = environ.pop("HTTP_X_GOOG_IF_GENERATION_MATCH", None)
        if generation is not None:
            assert generation == "0", generation
            environ["HTTP_IF_NONE_MATCH"] = "*"
        environ["HTTP_AUTHORIZATION"] = _SIGNED
        return application(
            environ, lambda status, headers, *rest: start_response(status, [*headers, ("x-goog-generation", "1")], *rest)
        )

    return google


@pytest.fixture(scope="module")
def options() -> Iterator[dict[str, str]]:
    """The storage options of a server that has the bucket ``tables`` and asks for no credentials."""
    with moto_server("s3", with_preconditions_of_google) as endpoint:
        urllib.request.urlopen(urllib.request.Request(f"{endpoint}/tables", method="PUT")).close()
        account = {"gcs_base_url": endpoint, "disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}
        yield {"google_service_account_key": json.dumps(account), "allow_http": "true"}


@pytest.fixture
def url() -> str:
    return f"gs://tables/{uuid4()}"


class TestTheContract(LogStoreContract):
    @pytest.fixture
    def store(self, options: dict[str, str], url: str) -> LogStore:
        return open_store(url, options)


def test_concurrent_appends_are_all_committed(options: dict[str, str], url: str) -> None:
    table = Table.create(url, {"id": "long"}, storage_options=options)

    def append(writer: int) -> None:
        own = Table(url, storage_options=options)
        for number in range(5):
            own.append(pa.table({"id": [10 * writer + number]}))

    in_threads([partial(append, writer) for writer in range(3)])
    table.delete("id = 3")
    table.checkpoint()
    expected = sorted(10 * writer + number for writer in range(3) for number in range(5) if (writer, number) != (0, 3))
    assert sorted(Table(url, storage_options=options).to_arrow()["id"].to_pylist()) == expected
    assert table.check(deep=True) == []
