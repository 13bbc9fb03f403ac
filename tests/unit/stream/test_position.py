"""Positions: delta-spark's JSON in both directions, invalid positions, and ordering."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tahoe.base.exceptions import InvalidRequest
from tahoe.stream.position import (
    BASE_INDEX,
    METADATA_CHANGE_INDEX,
    POST_METADATA_CHANGE_INDEX,
    EventTime,
    Position,
    check_moves_on,
)

INDEXES = st.integers(0, 10**12) | st.sampled_from([BASE_INDEX, METADATA_CHANGE_INDEX, POST_METADATA_CHANGE_INDEX])


def text(**members: object) -> str:
    content = {"sourceVersion": 1, "reservoirId": "a", "reservoirVersion": 3, "index": 4, "isStartingVersion": False}
    return json.dumps({name: value for name, value in {**content, **members}.items() if value is not ...})


@given(st.text(), st.integers(0, 2**40), INDEXES, st.booleans())
def test_a_position_survives_its_text(table_id: str, version: int, index: int, initial: bool) -> None:
    position = Position(table_id, version, index, initial)
    assert Position.parse(str(position)) == position


@given(st.text(), st.integers(0, 2**40), st.text(), st.integers(-(2**62), 2**62))
def test_a_position_in_time_survives_its_text_which_delta_spark_refuses(
    table_id: str, version: int, column: str, micros: int
) -> None:
    position = Position(table_id, version, BASE_INDEX, True, EventTime(column, micros))
    assert Position.parse(str(position)) == position
    # Its newest format version is 3, and it refuses every greater one.
    assert json.loads(str(position))["sourceVersion"] == 1000


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        (Position("a", 3), (1, -1, False)),
        (Position("a", 3, 0, True), (1, 0, True)),
        (Position("a", 3, METADATA_CHANGE_INDEX), (3, -20, False)),
        (Position("a", 3, POST_METADATA_CHANGE_INDEX), (3, -19, False)),
    ],
)
def test_the_text_matches_delta_spark_s(position: Position, expected: tuple[int, int, bool]) -> None:
    version, index, initial = expected
    assert str(position) == (
        f'{{"sourceVersion":{version},"reservoirId":"a","reservoirVersion":3,"index":{index},'
        f'"isStartingVersion":{str(initial).lower()}}}'
    )


def test_the_base_index_is_read_in_both_versions() -> None:
    assert Position.parse(text(index=-1)).index == BASE_INDEX
    assert Position.parse(text(sourceVersion=3, index=-100)).index == BASE_INDEX


@pytest.mark.parametrize(
    ("stored", "code"),
    [
        (text(sourceVersion=0), "DELTA_INVALID_SOURCE_VERSION"),
        (text(sourceVersion=2), "DELTA_INVALID_SOURCE_VERSION"),
        (text(sourceVersion=4), "DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION"),
        (text(sourceVersion=1000, index=-1, isStartingVersion=True), "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        (text(sourceVersion=1000, index=-1, eventTimeColumn="t", eventTimeMicros=1), "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        (
            text(sourceVersion=1000, isStartingVersion=True, eventTimeColumn="t", eventTimeMicros=1),
            "DELTA_INVALID_SOURCE_OFFSET_FORMAT",
        ),
        (text(sourceVersion=1001), "DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION"),
        (text(sourceVersion="1"), "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        (text(sourceVersion=3, index=-1), "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        (text(index=-7), "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        (text(index=2**63 - 1 - 100), "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        (text(index=True), "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        (text(index=1.5), "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        (text(reservoirVersion=-1), "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        (text(reservoirVersion=2**64), "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        (text(reservoirId=...), "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        (text(isStartingVersion=0), "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        ("[1]", "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        ("{", "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
    ],
)
def test_an_invalid_position_is_refused(stored: str, code: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        Position.parse(stored)
    assert caught.value.code == code


def test_positions_are_ordered_by_version_and_index() -> None:
    order = [
        Position("a", 1, 5),
        Position("a", 2),
        Position("a", 2, METADATA_CHANGE_INDEX),
        Position("a", 2, 0),
        Position("a", 2, 7),
    ]
    assert sorted(set(order)) == order
    assert order[0] <= order[0] and not order[0] < order[0]


def test_positions_in_two_tables_have_no_order() -> None:
    with pytest.raises(InvalidRequest) as caught:
        _ = Position("a", 1) < Position("b", 1)
    assert caught.value.code == "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"


@pytest.mark.parametrize(
    "following", [Position("a", 4, 9), Position("a", 5), Position("a", 5, 1), Position("a", 5, 3, is_initial_snapshot=True)]
)
def test_a_stream_does_not_go_back(following: Position) -> None:
    with pytest.raises(InvalidRequest, match="rows would come twice"):
        check_moves_on(Position("a", 5, 2), following)


def test_a_stream_may_stay_or_advance() -> None:
    check_moves_on(Position("a", 5, 2), Position("a", 5, 2))
    check_moves_on(Position("a", 5, 2, is_initial_snapshot=True), Position("a", 5, 3, is_initial_snapshot=True))
    check_moves_on(Position("a", 5, 2, is_initial_snapshot=True), Position("a", 6))
