"""Commits wait for the server in a bounded queue, and the writer does not wait."""

from __future__ import annotations

import logging
from threading import Event

import pytest

from tahoe.observe.lineage_facts import LineageFacts
from tahoe.observe.lineage_queue import LineageQueue
from tahoe.protocol.actions import Metadata
from tahoe.txn.commit_summary import CommitSummary

MINUTES = 600.0


def facts(version: int) -> LineageFacts:
    summary = CommitSummary("WRITE", 1, 0, 10, 0, 1, None)
    metadata = Metadata("id", '{"type":"struct","fields":[]}')
    return LineageFacts("file:///t", version, 0, "0d6ee6b5-1b4b-4a5c-8f49-6c4bd3b8e9a1", summary, metadata, ())


class Server:
    """A sender that blocks until it is released."""

    def __init__(self) -> None:
        self.called, self.released, self.sent = Event(), Event(), list[int]()

    def send(self, facts: LineageFacts) -> None:
        self.called.set()
        assert self.released.wait(MINUTES)
        if facts.version < 0:
            raise ConnectionError("http://user:hunter2@server/ is down")
        self.sent.append(facts.version)


def test_commits_are_sent_in_their_order_without_the_writer_waiting() -> None:
    server = Server()
    queue = LineageQueue(server.send)
    for version in range(3):
        queue.submit(facts(version))
    assert server.called.wait(MINUTES) and server.sent == []
    assert queue.drain(0) == 3
    server.released.set()
    assert queue.drain(MINUTES) == 0
    assert server.sent == [0, 1, 2]


def test_the_thread_ends_with_the_work_and_starts_again() -> None:
    server = Server()
    server.released.set()
    queue = LineageQueue(server.send)
    for version in range(2):
        queue.submit(facts(version))
        assert queue.drain(MINUTES) == 0
    assert server.sent == [0, 1]


def test_commits_beyond_the_bound_are_dropped_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    server = Server()
    queue = LineageQueue(server.send, most_waiting=2)
    queue.submit(facts(0))
    assert server.called.wait(MINUTES)  # the first is no longer waiting
    for version in range(1, 4):
        queue.submit(facts(version))
    server.released.set()
    assert queue.drain(MINUTES) == 0
    assert server.sent == [0, 1, 2]
    (record,) = caplog.records
    assert record.getMessage() == "the lineage of version 3 of file:///t is dropped: 2 commits wait for the OpenLineage server"
    assert (record.levelno, vars(record)["version"]) == (logging.WARNING, 3)


def test_a_commit_that_cannot_be_sent_is_logged_and_the_next_is_sent(caplog: pytest.LogCaptureFixture) -> None:
    server = Server()
    server.released.set()
    queue = LineageQueue(server.send)
    queue.submit(facts(-1))
    queue.submit(facts(1))
    assert queue.drain(MINUTES) == 0
    assert server.sent == [1]
    (record,) = caplog.records
    assert (
        record.getMessage() == "the lineage of version -1 of file:///t was not sent: ConnectionError: http://***@server/ is down"
    )
    assert record.exc_info is None


def test_a_forked_child_begins_with_an_empty_queue() -> None:
    server = Server()
    queue = LineageQueue(server.send)
    queue.submit(facts(0))
    queue._begin()
    assert queue.drain(0) == 0
    server.released.set()
