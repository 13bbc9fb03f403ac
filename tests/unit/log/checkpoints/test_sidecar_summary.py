"""The summary of a sidecar is read back as written, and an impossible summary is ignored."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import pyarrow as pa
import pytest

from tahoe.log.checkpoints.sidecar_summary import SidecarSummary, columns_of, summary_of
from tahoe.protocol.actions import SidecarFile

SUMMARY = SidecarSummary(7, "ab", 3, 0, 300, 1, True, 0)


def sidecar(tags: dict[str, str] | None) -> SidecarFile:
    return SidecarFile("s.parquet", 1, 2, tags)


def test_it_comes_back_from_the_tags() -> None:
    assert summary_of(sidecar(SUMMARY.tags())) == SUMMARY and SUMMARY.rows == 3
    assert summary_of(sidecar(SUMMARY.tags() | {"other": "x"})) == SUMMARY
    assert summary_of(sidecar(None)) is None and summary_of(sidecar({"other": "x"})) is None


@pytest.mark.parametrize(
    "wrong", [{"adds": "3"}, {"adds": True}, {"adds": -1}, {"plain": 1}, {"more": 1}, {"columns": None}, {"bytes": 1.0}]
)
def test_words_of_another_kind_are_none(wrong: dict[str, Any]) -> None:
    (name,) = SUMMARY.tags()
    assert summary_of(sidecar({name: json.dumps(asdict(SUMMARY) | wrong)})) is None


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, "1"])
def test_text_that_is_no_summary_is_none(text: str) -> None:
    (name,) = replace(SUMMARY, adds=1).tags()
    assert summary_of(sidecar({name: text})) is None


def test_columns_have_one_name_each() -> None:
    first, other = pa.struct([("path", pa.string())]), pa.struct([("path", pa.string()), ("size", pa.int64())])
    assert columns_of(first) == columns_of(pa.struct([("path", pa.string())])) != columns_of(other)
