"""Clients of both formats at the same time: no row is lost or doubled, and each client finds its snapshot."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa

import tahoe
from tests.iceberg_clients import LocalClient, writable_catalog
from tests.interop.engines import canonical

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
