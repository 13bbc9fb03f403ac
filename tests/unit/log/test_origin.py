"""An error about contents of the log names the table, the version, and the file of the log."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tahoe import Table
from tahoe.base.exceptions import TahoeError
from tahoe.log.files.paths import commit_name
from tahoe.protocol.actions import AddFile, Metadata
from tahoe.testing.log_builder import METADATA, PROTOCOL, Log, add, memory_log

# A changed bit in a commit without checksums: valid JSON, with another word in it.
WRONG_WORDS = {
    "a schema that is no JSON": (b'\\"name\\":\\"id\\"', b'\\"name\\"z\\"id\\"'),
    "a member of a column": (b'\\"nullable\\":true', b'\\"nqllable\\":true'),
    "a type": (b'\\"long\\"', b'\\"lonc\\"'),
    "a partition column": (b'"partitionColumns":["part"]', b'"partitionColumns":["paru"]'),
    "a format": (b'"provider":"parquet"', b'"provider":"pcrquet"'),
    "a reader version": (b'"minReaderVersion":3', b'"minReaderVersion":9'),
    "a path that is none": (b'"path":"first"', b'"path":"fi%02rst\\\\"'),
    "a path with a broken escape": (b'"path":"first"', b'"path":"first%-"'),
    "a path outside": (b'"path":"first"', b'"path":"../rst"'),
    "a partition value's name": (b'"partitionValues":{"part"', b'"partitionValues":{"pbrt"'),
    "the name of an action": (b'{"protocol":', b'{"pRotocol":'),
    "the name of an action that is none": (b'{"protocol":', b'{"pzotocol":'),
}


def _log() -> Log:
    """Versions 0 to 3; version 0 says all that the cases change."""
    log = memory_log()
    log.begin(add("first", part="a"))
    for number in range(3):
        log.commit(add(f"more-{number}", part="a"))
    return log


def _change(log: Log, name: str, case: str) -> None:
    right, wrong = WRONG_WORDS[case]
    whole = log.store.get(name)
    assert right in whole, whole
    log.store.put(name, whole.replace(right, wrong, 1))


def _assert_named(log: Log, table: Table, file: str, version: int) -> None:
    with pytest.raises(TahoeError) as caught:
        table.to_arrow()
    message = caught.value.message
    assert log.store.url in message and file in message, message
    assert str(version) in message.replace(log.store.url, ""), message


@pytest.mark.parametrize("case", WRONG_WORDS)
def test_a_wrong_word_in_a_commit_is_reported_with_the_commit(case: str) -> None:
    log = _log()
    _change(log, commit_name(0), case)
    _assert_named(log, Table(log.store.url, store=log.store), commit_name(0), 0 if "action" in case else 3)


@pytest.mark.parametrize("case", ["a member of a column", "a type", "a partition column"])
def test_a_wrong_word_in_a_commit_that_an_open_handle_reads_is_reported_with_the_commit(case: str) -> None:
    log = _log()
    table = Table(log.store.url, store=log.store)
    assert table.version() == 3
    log.commit(METADATA)
    _change(log, commit_name(4), case)
    with pytest.raises(TahoeError) as caught:
        table.version()
    assert commit_name(4) in caught.value.message and "ersion 4" in caught.value.message


WRONG_ACTIONS: dict[str, tuple[Metadata, AddFile]] = {
    "a type": (replace(METADATA, schema_string=METADATA.schema_string.replace("long", "lonc")), add("first")),
    "a schema that is no JSON": (replace(METADATA, schema_string="{"), add("first")),
    "a path that is none": (METADATA, add("first%-")),
    "a partition value's name": (METADATA, add("first", partition_values={"pbrt": "a"})),
}


@pytest.mark.parametrize("case", WRONG_ACTIONS)
def test_a_wrong_word_of_a_checkpoint_is_reported_with_the_checkpoint(case: str) -> None:
    log = _log()
    name = log.classic([PROTOCOL, *WRONG_ACTIONS[case]])
    log.store.delete(commit_name(0))
    _assert_named(log, Table(log.store.url, store=log.store), name, 3)


def test_a_schema_of_a_checkpoint_that_is_none_is_read_from_the_commits() -> None:
    log = _log()
    log.classic([PROTOCOL, *WRONG_ACTIONS["a schema that is no JSON"]])
    assert log.state().metadata == METADATA
