"""Requests that lie: each is refused by name, in bounded time, and changes nothing; none is an error of the server."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tahoe.uniform.serve.rest_protocol import Response
from tests.sampling import sampled
from tests.unit.api.iceberg_writes.hand_made import KINDS, Writer, rows

STRANGE = (
    *(None, True, -1, 0, 2**63, 1.5, "", "x" * 100_000, [], {}, [None], {"a": {}}, "main", "\x00", "../..", "\ud800"),
    *("file:///etc/passwd", "file:///", "s3://other/bucket", "/etc/passwd", "http://127.0.0.1:1/x", [[[[]]]], 10**400),
)
CASES = 300


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Writer:
    writer = Writer(tmp_path_factory.mktemp("warehouse"), **KINDS["files are rewritten"])
    writer.table.append(rows(1, 2, 3))
    assert writer.commit("append", writer.data_file(4)).status == 200
    return writer


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to each value inside a JSON value."""
    if path:
        yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], (*path, key))


def changed(body: dict[str, Any], drawn: random.Random) -> dict[str, Any]:
    """The request with one value exchanged for a strange one, or left out."""
    body = copy.deepcopy(body)
    *above, last = drawn.choice(list(places(body)))
    at: Any = body
    for key in above:
        at = at[key]
    if drawn.random() < 0.2:
        del at[last]
    else:
        at[last] = drawn.choice(STRANGE)
    return body


def assert_refused(writer: Writer, answer: Response, version: int) -> None:
    """The request was refused with a reason, or it was still valid and committed exactly one version."""
    if answer.status == 200:
        assert writer.table.version() <= version + 1
        return
    assert answer.status in (400, 404, 409), answer
    assert json.loads(answer.body)["error"]["message"]
    assert writer.table.version() == version


@pytest.mark.parametrize("seed", sampled(range(CASES // 3), 10))
def test_a_value_of_the_request_is_strange(writer: Writer, seed: int) -> None:
    drawn, version = random.Random(seed), writer.table.version()
    body = changed(writer.request("append", writer.data_file(100 + seed)), drawn)
    try:
        data = json.dumps(body).encode("utf-8", "surrogatepass")
    except ValueError:  # more digits than Python writes
        return
    assert_refused(writer, writer.send(data), version)


@pytest.mark.parametrize("seed", sampled(range(CASES // 3), 10))
def test_bytes_of_a_manifest_are_changed(writer: Writer, seed: int) -> None:
    drawn, version = random.Random(seed), writer.table.version()
    body = writer.request("append", writer.data_file(100 + seed))
    number = body["updates"][0]["snapshot"]["snapshot-id"] - 10**9
    path = writer.root / "metadata" / drawn.choice([f"own-{number}-0.avro", f"list-{number}.avro"])
    data = bytearray(path.read_bytes())
    for _ in range(drawn.randint(1, 4)):
        data[drawn.randrange(len(data))] = drawn.randrange(256)
    path.write_bytes(bytes(data[: len(data) - drawn.choice([0, 0, 0, drawn.randrange(len(data))])]))
    assert_refused(writer, writer.send(body), version)


@pytest.mark.parametrize("seed", sampled(range(CASES // 3), 10))
def test_bytes_of_a_data_file_are_changed(writer: Writer, seed: int) -> None:
    drawn, version = random.Random(seed), writer.table.version()
    file = writer.data_file(100 + seed)
    body = writer.request("append", file)
    path = Path(file.path.removeprefix("file://"))
    data = bytearray(path.read_bytes())
    footer = int.from_bytes(data[-8:-4], "little") + 8
    for _ in range(drawn.randint(1, 4)):
        data[-drawn.randint(1, footer)] = drawn.randrange(256)
    path.write_bytes(bytes(data))
    assert_refused(writer, writer.send(body), version)


def test_a_link_that_leads_out_of_the_table_is_not_followed(writer: Writer, tmp_path: Path) -> None:
    version = writer.table.version()
    file = writer.data_file(9)
    path = Path(file.path.removeprefix("file://"))
    path.rename(tmp_path / "secret.parquet")
    path.symlink_to(tmp_path / "secret.parquet")
    answer = writer.commit("append", file)
    assert answer.status == 400 and "secret" not in answer.body.decode()
    assert writer.table.version() == version
