"""Clients of both formats at the same time: no row is lost or doubled, and each client finds its snapshot."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import tahoe
from tahoe.log import intents
from tahoe.log.files.live_files import add_files
from tahoe.ops.write.writer import write_arrow
from tahoe.txn.transaction import Operation
from tests.iceberg_clients import LocalClient, writable_catalog
from tests.interop.engines import canonical
from tests.unit.api.iceberg_writes.hand_made import KINDS, Writer, rows
from tests.unit.uniform.commits.client_files import Written

SCHEMA = pa.schema([("writer", pa.int64()), ("number", pa.int64())])
WRITERS, COMMITS = 4, 4


def row(writer: int, number: int) -> pa.Table:
    return pa.table({"writer": [writer], "number": [number]}, schema=SCHEMA)


def test_appends_of_both_sides_succeed_without_a_retry_of_the_client(tmp_path: Path) -> None:
    catalog = writable_catalog(tmp_path)
    client = LocalClient(catalog)
    client.create_table("default.t", SCHEMA, properties={"commit.retry.num-retries": "0"})

    def through_iceberg(writer: int) -> None:
        table = LocalClient(catalog).load_table("default.t")
        for number in range(COMMITS):
            table.append(row(writer, number))

    def through_delta(writer: int) -> None:
        for number in range(COMMITS):
            tahoe.Table(tmp_path / "t").append(row(writer, number))

    with ThreadPoolExecutor(2 * WRITERS) as pool:
        runs = [pool.submit(run, writer) for writer in range(WRITERS) for run in (through_iceberg, through_delta)]
        for each in runs:
            each.result()
    table = tahoe.Table(tmp_path / "t")
    expected = sorted((writer, number) for writer in range(WRITERS) for number in range(COMMITS) for _ in range(2))
    rows = table.to_arrow()
    assert sorted(zip(rows["writer"].to_pylist(), rows["number"].to_pylist(), strict=True)) == expected
    assert canonical(client.load_table("default.t").scan().to_arrow()) == canonical(rows)
    shown = {snapshot.snapshot_id for snapshot in client.load_table("default.t").snapshots()}
    committed = {
        int(commit["operationParameters"]["snapshotId"]) for commit in table.history() if commit["operation"] == "ICEBERG APPEND"
    }
    assert len(committed) == WRITERS * COMMITS and committed <= shown


def test_one_request_sent_several_times_at_once_commits_once(tmp_path: Path) -> None:
    catalog = writable_catalog(tmp_path)
    client = LocalClient(catalog)
    orders = client.create_table("default.t", SCHEMA)
    answer = catalog.answer
    statuses: list[int] = []

    def several(request: object) -> object:
        if getattr(request, "path", "").endswith("/tables/t") and getattr(request, "method", "") == "POST":
            with ThreadPoolExecutor(4) as pool:
                answers = list(pool.map(answer, [request] * 4))  # type: ignore[arg-type]
            statuses.extend(each.status for each in answers)
            return next(each for each in answers if each.status == 200)
        return answer(request)  # type: ignore[arg-type]

    catalog.answer = several  # type: ignore[method-assign,assignment]
    orders.append(row(1, 1))
    table = tahoe.Table(tmp_path / "t")
    assert (table.version(), table.to_arrow().num_rows) == (1, 1)
    assert statuses == [200] * 4


def three_files(root: Path, kind: str) -> Writer:
    """Return a table of the ids 1 to 5: the first file has 1 and 2, the second 3 and 4, the last 5."""
    writer = Writer(root, **KINDS[kind])
    for ids in ((1, 2), (3, 4), (5,)):
        writer.table.append(rows(*ids))
    return writer


def rearrange(writer: Writer, *ids: int) -> None:
    """Replace the files of these ids by one, through Delta, without a change of data."""
    table = writer.table
    transaction = table.begin()
    old = [add for add in add_files(table.files()) if set(ids) & set(table.snapshot().scan().read([add])["id"].to_pylist())]
    new = write_arrow(table.snapshot().config, table.store, rows(*ids), table.clock)
    transaction.stage(*(add.remove(0, data_change=False) for add in old), *(replace(add, data_change=False) for add in new))
    table.commit(transaction, Operation("OPTIMIZE"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_of_rows_moves_past_commits_that_only_rearrange_other_files(tmp_path: Path, kind: str) -> None:
    writer = three_files(tmp_path, kind)
    first = writer.files()[0]
    request = writer.request("delete", deletes_of(writer, kind, first, [0]))
    rearrange(writer, 3, 4, 5)
    answer = writer.send(request)
    assert answer.status == 200, answer.content
    writer.assert_rows(2, 3, 4, 5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_of_rows_conflicts_with_every_other_commit(tmp_path: Path, kind: str) -> None:
    writer = three_files(tmp_path, kind)
    changes = {
        "new rows may match its condition": lambda: writer.table.append(rows(6)),
        "rows that it may have read": lambda: writer.table.delete("id = 5"),
        "rows of its file": lambda: writer.table.delete("id = 2"),
        "its file": lambda: writer.table.optimize(),
    }
    for name, change in changes.items():
        request = writer.request("delete", deletes_of(writer, kind, writer.files()[0], [0]))
        change()
        before = writer.table.version()
        answer = writer.send(request)
        assert (answer.status, "CommitFailedException" in str(answer.content)) == (409, True), (name, answer.content)
        assert writer.table.version() == before
    writer.assert_ids(1, 3, 4, 6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_client_s_rearrangement_moves_past_commits_that_leave_its_files_alone(tmp_path: Path, kind: str) -> None:
    writer = three_files(tmp_path, kind)
    request = writer.request("replace", writer.data_file(4, 5, 3, 2, 1), without="m")
    writer.table.append(rows(6))
    answer = writer.send(request)
    assert answer.status == 200, answer.content
    writer.assert_rows(1, 2, 3, 4, 5, 6)
    request = writer.request("replace", writer.data_file(6, 5, 4, 3, 2, 1), without="m")
    writer.table.delete("id = 5")
    assert writer.send(request).status == 409
    writer.assert_rows(1, 2, 3, 4, 6)


def test_other_writers_are_asked_to_wait_for_a_client_that_lost(tmp_path: Path) -> None:
    writer = three_files(tmp_path, "files are rewritten")
    table = writer.table
    request = writer.request("delete", writer.position_deletes(**{writer.files()[0]: [0]}))
    table.append(rows(6))
    assert not intents.standing(table.url)
    assert writer.send(request).status == 409
    (first,) = intents.standing(table.url)
    assert [entry.name for entry in table.store.list_from(intents.FOLDER)] == [first.name]
    assert writer.send(request).status == 409
    (again,) = intents.standing(table.url)
    assert not first.name.endswith(intents.SLOW) and again.name.endswith(intents.SLOW)
    assert writer.commit("delete", writer.position_deletes(**{writer.files()[0]: [0]})).status == 200
    assert not intents.standing(table.url) and not list(table.store.list_from(intents.FOLDER))
    writer.assert_rows(2, 3, 4, 5, 6)


def deletes_of(writer: Writer, kind: str, location: str, positions: list[int]) -> Written:
    """Return a delete file of the kind that the table's format version has."""
    if kind == "Puffin files of vectors":
        return writer.vector(location, positions)
    return writer.position_deletes(**{location: positions})
