"""The options of a stream reader."""

from __future__ import annotations

from typing import Any

import pytest

from tahoe.base.exceptions import InvalidRequest
from tahoe.stream.admission import MOST_FILES, Limits
from tahoe.stream.source_options import SourceOptions


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"starting_version": 1, "starting_timestamp_ms": 1}, "DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET"),
        ({"starting_version": -1}, "DELTA_ILLEGAL_OPTION"),
        ({"starting_version": "newest"}, "DELTA_ILLEGAL_OPTION"),
        ({"max_files_per_trigger": 0}, "DELTA_ILLEGAL_OPTION"),
        ({"max_bytes_per_trigger": 0}, "DELTA_ILLEGAL_OPTION"),
        ({"exclude_regex": "("}, "DELTA_REGEX_OPT_SYNTAX_ERROR"),
    ],
)
def test_contradictory_options_are_refused(options: dict[str, Any], code: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        SourceOptions(**options)
    assert caught.value.code == code


def test_a_batch_has_a_thousand_files_by_default() -> None:
    assert SourceOptions().limits == Limits(MOST_FILES) == Limits(1000)
    assert SourceOptions(max_bytes_per_trigger=7).limits == Limits(None, 7)
    assert SourceOptions(max_files_per_trigger=3, max_bytes_per_trigger=7).limits == Limits(3, 7)


@pytest.mark.parametrize(
    ("options", "deletes", "changes"),
    [
        ({}, False, False),
        ({"ignore_deletes": True}, True, False),
        ({"ignore_changes": True}, True, True),
        ({"ignore_file_deletion": True}, True, True),
        ({"skip_change_commits": True}, True, True),
    ],
)
def test_options_allow_deletes_and_changes(options: dict[str, Any], deletes: bool, changes: bool) -> None:
    asked = SourceOptions(**options)
    assert (asked.allows_deletes, asked.allows_changes) == (deletes, changes)


def test_a_file_is_excluded_if_its_path_matches() -> None:
    assert SourceOptions(exclude_regex="day=2").excludes("day=2/part-1.parquet")
    assert not SourceOptions(exclude_regex="day=2").excludes("day=3/part-1.parquet")
    assert not SourceOptions().excludes("anything")
