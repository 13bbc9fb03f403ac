"""The embedded checksum of a commit: every reader detects every change of the file's bytes, without a further request."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from tahoe.base.exceptions import CorruptTable
from tahoe.log.files.commit_checksum import fault_in_commit_checksum, has_commit_checksum, with_commit_checksum
from tahoe.log.files.commits import parse_commit, read_commit
from tahoe.log.files.paths import commit_name
from tahoe.log.replay import LogReader
from tahoe.log.segment import segment_for
from tahoe.protocol.actions import Action, CommitInfo
from tahoe.testing.log_builder import METADATA, PROTOCOL, Log, add, memory_log, remove, vector

URL = "memory://m/t"
ACTIONS: Sequence[Action] = (
    CommitInfo({"operation": "TEST ö", "operationParameters": {"predicate": '"tahoe.seal":"1.000000000001.00000000"}}'}}),
    PROTOCOL,
    METADATA,
    add("ü", part="ß"),
)


def test_a_sealed_commit_is_read_as_it_was_written() -> None:
    data = with_commit_checksum(3, ACTIONS)
    info, *others = parse_commit(commit_name(3), data, URL)
    assert tuple(others) == tuple(ACTIONS[1:]) and data.endswith(b"\n") and has_commit_checksum(data)
    assert isinstance(info, CommitInfo) and info.values["operation"] == "TEST ö"
    assert all(isinstance(json.loads(line), dict) for line in data.decode().splitlines())


def test_without_commit_info_there_is_no_seal_and_nothing_to_say() -> None:
    data = with_commit_checksum(3, ACTIONS[1:])
    assert not has_commit_checksum(data) and fault_in_commit_checksum(9, data) is None
    assert (
        has_commit_checksum(with_commit_checksum(0, [CommitInfo({})]))
        and fault_in_commit_checksum(0, with_commit_checksum(0, [CommitInfo({})])) is None
    )


def test_every_cut_of_a_sealed_commit_is_reported() -> None:
    data = with_commit_checksum(3, ACTIONS)
    for end in range(len(data)):
        with pytest.raises(CorruptTable, match=commit_name(3)):
            parse_commit(commit_name(3), data[:end], URL)


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.soak)])
def test_every_flipped_bit_of_a_sealed_commit_is_reported_or_changes_nothing(step: int) -> None:
    data = with_commit_checksum(3, ACTIONS)
    count = 0
    for bit in range(0, len(data) * 8, step):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            actual = parse_commit(commit_name(3), bytes(flipped), URL)
        except CorruptTable as error:
            count += commit_name(3) in error.message
        else:
            assert tuple(actual[1:]) == tuple(ACTIONS[1:]) and b'"tahoe.seal":"' not in flipped.split(b"\n")[0][-60:]
    assert count * step > 7.9 * (len(data) - len('"tahoe.seal":"'))


@pytest.mark.parametrize("end", ["a line more", "a line twice", "a line less", "no line break", "lines in another order"])
def test_lines_that_come_go_or_move_are_reported(end: str) -> None:
    first, *others = with_commit_checksum(3, ACTIONS).splitlines(keepends=True)
    damaged = {
        "a line more": [first, *others, b'{"txn":{"appId":"a","version":1}}\n'],
        "a line twice": [first, *others, others[-1]],
        "a line less": [first, *others[:-1]],
        "no line break": [first, *others[:-1], others[-1].rstrip(b"\n")],
        "lines in another order": [first, *reversed(others)],
    }[end]
    with pytest.raises(CorruptTable, match=commit_name(3)):
        parse_commit(commit_name(3), b"".join(damaged), URL)


def _sealed_log(versions: int) -> Log:
    log = memory_log()
    for version in range(versions):
        head = (PROTOCOL, METADATA) if version == 0 else ()
        log.store.put(
            commit_name(version), with_commit_checksum(version, [CommitInfo({"txnId": f"t{version}"}), *head, add(f"f{version}")])
        )
    return log


@pytest.mark.parametrize("into", range(5))
@pytest.mark.parametrize("of", range(5))
def test_a_commit_copied_over_another_is_reported_by_both_versions(of: int, into: int) -> None:
    log = _sealed_log(5)
    log.store.put(commit_name(into), log.store.get(commit_name(of)))
    if of == into:
        assert len(log.live()) == 5
        return
    with pytest.raises(CorruptTable, match=f"{commit_name(into)}.*version {of}") as caught:
        log.live()
    assert caught.value.facts["version"] == into


def test_commits_that_are_read_by_column_are_compared_with_their_seals_too() -> None:
    log = memory_log()
    log.store.put(
        commit_name(0), with_commit_checksum(0, [CommitInfo({}), PROTOCOL, METADATA, *(add(f"f{i}") for i in range(2_000))])
    )
    log.store.put(commit_name(1), with_commit_checksum(1, [CommitInfo({}), add("last")]))
    data = log.store.get(commit_name(0))
    assert len(data) > 256 << 10 and LogReader(log.store, segment_for(log.store)).files().num_rows == 2_001
    log.store.put(commit_name(0), data.replace(b'"path":"f1000"', b'"path":"f100o"'))
    with pytest.raises(CorruptTable, match=commit_name(0)):
        LogReader(log.store, segment_for(log.store)).files()


def test_a_commit_that_lost_all_but_its_first_line_does_not_give_deleted_rows_again() -> None:
    log = _sealed_log(2)
    old = add("f1")
    actions = [CommitInfo({"txnId": "t2"}), remove(old), add("f1", deletion_vector=vector("v", 5))]
    whole = with_commit_checksum(2, actions)
    log.store.put(commit_name(2), whole.splitlines(keepends=True)[0])
    with pytest.raises(CorruptTable, match=commit_name(2)):
        read_commit(log.store, 2)
