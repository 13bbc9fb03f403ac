"""A checkpoint that names one file as live and, with another spelling, as removed: commits count first, then the tombstone."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import pytest

from tahoe.expr.tree.predicate import Column, Comparison, Literal, Predicate
from tahoe.log.checkpoints.checkpoint_reader import CheckpointReader
from tahoe.log.replay import LogReader
from tahoe.log.segment import segment_for
from tahoe.schema.types import PrimitiveType
from tahoe.snapshot.snapshot import Snapshot
from tahoe.testing.log_builder import Log, add, live_paths, memory_log, remove, vector

RAW, ENCODED = "part=é/one.parquet", "part=%C3%A9/one.parquet"
OTHER = "part=%C3%BC/two.parquet"

Checkpoint = Callable[[Log], object]
CHECKPOINTS: dict[str, Checkpoint] = {
    "classic": Log.classic,
    "multi-part": lambda log: log.multi_part(2),
    "V2 in JSON": lambda log: log.v2("json", sidecars=0),
    "V2 with sidecars": lambda log: log.v2("parquet"),
}


def paths(log: Log) -> list[str]:
    """The live paths, once by the whole log and once by a filter that keeps all."""
    everything: Predicate = Comparison(">=", Column(("id",)), Literal(0, PrimitiveType("long")))
    snapshot = Snapshot.at(log.store)
    filtered = LogReader(log.store, segment_for(log.store)).scan(everything, snapshot.schema, snapshot.partition_columns)
    actual = live_paths(log)
    assert sorted(filtered["path"].to_pylist()) == actual
    return actual


def forget_commits(log: Log, last: int) -> None:
    for version in range(last + 1):
        log.store.delete(f"_delta_log/{version:020d}.json")


@pytest.fixture(params=CHECKPOINTS)
def checkpoint(request: pytest.FixtureRequest) -> Checkpoint:
    return CHECKPOINTS[request.param]


def removed(first: str, second: str, checkpoint: Checkpoint, **more: object) -> Log:
    """A file added under one spelling and removed under another, in a checkpoint of a writer who compares texts."""
    log = memory_log()
    log.begin(file := add(first, part="é", **more), add(OTHER, part="ü"))
    log.commit(remove(replace(file, path=second)))
    checkpoint(log)
    assert len(log.versions[-1]) == 2, "the checkpoint has the file and its tombstone"
    log.commit(add("part=a/three.parquet"))
    return log


@pytest.mark.parametrize(("first", "second"), [(RAW, ENCODED), (ENCODED, RAW)])
def test_the_file_is_gone_as_the_commits_say(
    first: str, second: str, checkpoint: Checkpoint, caplog: pytest.LogCaptureFixture
) -> None:
    log = removed(first, second, checkpoint)
    with caplog.at_level(logging.WARNING):
        assert paths(log) == ["part=%C3%BC/two.parquet", "part=a/three.parquet"]
    assert "as live and, spelt otherwise, as removed. It is read from the commits alone instead." in caplog.text


@pytest.mark.parametrize(("first", "second"), [(RAW, ENCODED), (ENCODED, RAW)])
def test_the_file_is_gone_as_the_tombstone_says_where_the_commits_are_gone(
    first: str, second: str, checkpoint: Checkpoint, caplog: pytest.LogCaptureFixture
) -> None:
    log = removed(first, second, checkpoint)
    forget_commits(log, 1)
    with caplog.at_level(logging.WARNING):
        assert paths(log) == ["part=%C3%BC/two.parquet", "part=a/three.parquet"]
    assert "so that the removal counts" in caplog.text
    assert len(Snapshot.at(log.store).tombstones()) == 1


def test_a_file_that_was_added_again_is_live_as_the_commits_say(checkpoint: Checkpoint) -> None:
    log = memory_log()
    log.begin(file := add(RAW, part="é"))
    log.commit(remove(replace(file, path=ENCODED)))
    log.commit(file)
    checkpoint(log)
    assert paths(log) == [RAW]


def test_a_file_that_was_added_again_after_the_checkpoint_is_live(checkpoint: Checkpoint) -> None:
    log = removed(RAW, ENCODED, checkpoint)
    log.commit(add(RAW, part="é"))
    for _ in range(2):
        assert RAW in paths(log)
        forget_commits(log, 1)


def test_a_tombstone_of_another_vector_is_of_another_file(checkpoint: Checkpoint, caplog: pytest.LogCaptureFixture) -> None:
    log = memory_log()
    log.begin(file := add(RAW, part="é"))
    marked = replace(file, path=ENCODED, deletion_vector=vector("a" * 20))
    log.commit(remove(file), marked)
    checkpoint(log)
    with caplog.at_level(logging.WARNING):
        assert paths(log) == [ENCODED]
    assert not caplog.text
    log.commit(remove(replace(marked, path=RAW)))
    checkpoint(log)
    for _ in range(2):
        assert paths(log) == []
        forget_commits(log, 1)


def test_tombstones_are_read_only_where_names_are_outside_of_ascii(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = memory_log()
    log.begin(gone := add("part=a%20b/one.parquet"), add("part=50%2525/two.parquet"), add("part=%25C3%25A9/three.parquet"))
    log.commit(remove(gone))
    checkpoint(log)
    monkeypatch.setattr(CheckpointReader, "removes", lambda _: pytest.fail("tombstones were read"))
    assert paths(log) == log.expected()


def test_two_older_checkpoints_that_contradict_themselves_leave_the_newest_to_decide() -> None:
    log = memory_log()
    log.begin(file := add(RAW, part="é"), add(OTHER, part="ü"))
    log.commit(remove(replace(file, path=ENCODED)))
    log.classic()
    log.commit(add("part=a/three.parquet"))
    log.classic()
    forget_commits(log, 1)
    assert paths(log) == ["part=%C3%BC/two.parquet", "part=a/three.parquet"]
