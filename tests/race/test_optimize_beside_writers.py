"""OPTIMIZE and clustering, all the time, beside writers: none of them fails because of it, and no row is lost or doubled."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.exceptions import DeltaConcurrentModificationException
from tahoe.store.object_store import open_store

WRITERS, ROUNDS = 4, 5
SECONDS = 120
"""More than enough: only a test that fails takes so long."""
SCHEMA = pa.schema([("id", pa.int64()), ("writer", pa.int64()), ("times", pa.int64())])


@pytest.mark.parametrize(
    ("tracked", "cluster_by"),
    [
        ("true", None),
        pytest.param("false", None, marks=pytest.mark.long),
        pytest.param("true", ["times", "id"], marks=pytest.mark.long),
    ],
)
def test_no_writer_fails_and_every_row_is_there_once(tracked: str, cluster_by: list[str] | None) -> None:
    """Each writer changes rows of its own, which lie in files with those of the others. Some seconds: changes are begun again and again."""
    store = open_store(f"memory://{uuid.uuid4()}/table")
    properties = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": tracked}
    Table.create(store.url, SCHEMA, cluster_by=cluster_by, properties=properties, store=store)
    ids = range(WRITERS * 10)
    Table(store.url, store=store).append(pa.table([ids, [i % WRITERS for i in ids], [0] * len(ids)], schema=SCHEMA))
    over, started_commit = threading.Event(), threading.Event()

    def write(writer: int) -> None:
        table = Table(store.url, store=store)
        for number in range(ROUNDS):
            if number == ROUNDS - 1:
                assert started_commit.wait(SECONDS), "nothing was optimized: this tests nothing"
            table.append(pa.table([[1000 * (writer + 1) + number], [writer], [0]], schema=SCHEMA))
            table.update({"times": "times + 1"}, f"writer = {writer} and id < 1000")
            source = pa.table({"id": [writer], "more": [10]})
            table.merge(source, "target.id = source.id").when_matched_update({"times": "target.times + source.more"}).execute()
        table.delete(f"id = {writer + WRITERS}")

    def optimize(run: Callable[[Table], int | None]) -> None:
        table = Table(store.url, store=store)
        while not over.is_set():
            try:
                version = run(table)
            except DeltaConcurrentModificationException:
                continue  # it is the one that gives way
            if version is not None:
                started_commit.set()

    with ThreadPoolExecutor(WRITERS + 2) as pool:
        compacting = pool.submit(optimize, lambda table: table.optimize().version)
        columns = ["times", "id"] if cluster_by is None else []
        clustering = pool.submit(
            optimize, lambda table: table.optimize(zorder_by=columns, target_file_size=1500, min_cube_size=2000).version
        )
        try:
            for writing in [pool.submit(write, writer) for writer in range(WRITERS)]:
                writing.result()
        finally:
            over.set()
        compacting.result()
        clustering.result()

    expected = {(i, i % WRITERS, ROUNDS + (10 * ROUNDS if i < WRITERS else 0)) for i in ids if not WRITERS <= i < 2 * WRITERS}
    expected |= {(1000 * (writer + 1) + number, writer, 0) for writer in range(WRITERS) for number in range(ROUNDS)}
    actual = Table(store.url, store=store)
    rows = [tuple(row.values()) for row in actual.to_arrow().to_pylist()]
    assert len(rows) == len(expected)
    assert set(rows) == expected
    assert actual.check(deep=True) == []
