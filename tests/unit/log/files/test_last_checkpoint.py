"""The hint is written with its checksum, and a damaged one is none."""

from __future__ import annotations

import json
import logging
from dataclasses import replace

import pytest

from tahoe.log.files.last_checkpoint import (
    LastCheckpoint,
    canonical_json,
    checksum_of_json,
    parse_last_checkpoint,
    read_last_checkpoint,
    write_last_checkpoint,
)
from tahoe.log.files.paths import LAST_CHECKPOINT
from tahoe.store.object_store import open_store


def test_a_written_hint_is_read_and_its_checksum_matches(memory_url: str) -> None:
    store = open_store(memory_url)
    assert read_last_checkpoint(store) is None
    hint = LastCheckpoint(version=7, size=3)
    write_last_checkpoint(store, hint)
    assert read_last_checkpoint(store) == replace(hint, checksummed=True)
    value = json.loads(store.get(LAST_CHECKPOINT))
    assert value["checksum"] == checksum_of_json(value) and len(value["checksum"]) == 32


def test_a_damaged_hint_is_none_and_that_is_logged(memory_url: str, caplog: pytest.LogCaptureFixture) -> None:
    store = open_store(memory_url)
    write_last_checkpoint(store, LastCheckpoint(version=7, size=3))
    store.put(LAST_CHECKPOINT, store.get(LAST_CHECKPOINT).replace(b"7", b"8", 1))
    with caplog.at_level(logging.WARNING):
        assert read_last_checkpoint(store) is None
    assert LAST_CHECKPOINT in caplog.text


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{",
        '{"size": 1}',
        '{"version": -1, "size": 1}',
        '{"version": "1", "size": 1}',
        '{"version": 1, "version": 2, "size": 1}',
    ],
)
def test_invalid_hints_are_refused(text: str) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        parse_last_checkpoint(text.encode())


def test_the_canonical_form_does_not_depend_on_order_or_on_the_checksum_itself() -> None:
    first = {"b": [1, "x y"], "a": {"d": None, "c": True}, "checksum": "old"}
    other = {"a": {"c": True, "d": None}, "b": [1, "x y"]}
    assert canonical_json(first) == canonical_json(other) and checksum_of_json(first) == checksum_of_json(other)
    assert checksum_of_json({"a": 1}) != checksum_of_json({"a": "1"})
