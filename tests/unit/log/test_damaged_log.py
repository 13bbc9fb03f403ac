"""A damaged log gives the right state or a precise error, never another state: every kind of file, damaged in every way."""

from __future__ import annotations

import logging
import re
import uuid

import pytest

from tahoe.exceptions import CorruptTable, NotFound, TahoeError
from tahoe.expr.tree.predicate import Column, Comparison, Literal
from tahoe.log.checkpoints.checkpoint_writer import write_checkpoint
from tahoe.log.checkpoints.footer_check import fault_in_footer
from tahoe.log.files.live_files import add_files
from tahoe.log.files.paths import LAST_CHECKPOINT, checkpoint_name, checksum_name, commit_name
from tahoe.log.replay import replay_files, replay_state, replay_tombstones, scan_files
from tahoe.log.segment import segment_for
from tahoe.protocol.actions import DomainMetadata, SetTransaction
from tahoe.protocol.config import TableConfig
from tahoe.schema.types import PrimitiveType
from tests.unit.log.logs import DAMAGES, SCHEMA, Log, add, memory_log, remove

ALL_IDS = Comparison(">=", Column(("id",)), Literal(-1, PrimitiveType("long")))

# What may be damaged, by the kind of checkpoint that the table has; a name of None stands for what `_table` wrote last.
KINDS = {
    "the first commit": ("classic", commit_name(0)),
    "a commit before the checkpoint": ("classic", commit_name(4)),
    "the checkpoint's own commit": ("classic", commit_name(10)),
    "a commit after the checkpoint": ("classic", commit_name(11)),
    "the newest commit": ("classic", commit_name(12)),
    "a classic checkpoint": ("classic", None),
    "a part of a multi-part checkpoint": ("multi-part", None),
    "a JSON checkpoint": ("json", None),
    "a Parquet V2 checkpoint": ("parquet", None),
    "a V2 checkpoint under a classic name": ("v2-classic", None),
    "a sidecar": ("sidecar", None),
    "the hint": ("classic", LAST_CHECKPOINT),
    "the newest checksum": ("classic", checksum_name(12)),
    "the checkpoint's checksum": ("classic", checksum_name(10)),
    "a compaction": ("compaction", None),
    "a commit under a compaction": ("compaction", commit_name(4)),
}
CHECKPOINTS = {kind for kind in KINDS if "checkpoint" in kind and "commit" not in kind} | {"a sidecar"}
NOT_NEEDED = CHECKPOINTS | {"the hint", "a compaction", "a commit before the checkpoint", "the first commit"}


def _table(kind: str) -> tuple[Log, str]:
    """Versions 0 to 12, a checkpoint at 10, a checksum each; and the name of the file that `kind` is about."""
    log = memory_log()
    files = [add(f"f{i}", size=100 + i, low=i, high=i + 5) for i in range(40)]
    log.begin(*files[:3], SetTransaction("stream", 0), DomainMetadata("mine", "{}"))
    target = ""
    for version in range(1, 13):
        transaction = SetTransaction("stream", version)
        log.commit(files[2 * version + 1], files[2 * version + 2], remove(files[version]), transaction)
        log.checksum()
        if version == 10:
            target = _checkpoint(log, kind)
    return log, log.compaction(2, 9) if kind == "compaction" else target


def _checkpoint(log: Log, kind: str) -> str:
    match kind:
        case "classic":
            log.hint()
            return log.classic()
        case "multi-part":
            log.hint(parts=3)
            return log.multi_part(3)[1]
        case "json" | "parquet":
            return log.v2(kind)[-1]
        case "v2-classic":
            return log.v2("parquet", classic_name=True)[-1]
        case "sidecar":
            return log.v2("parquet")[0]
    return ""


def _outcome(log: Log) -> object:
    segment = segment_for(log.store)
    state = replay_state(log.store, segment)
    scanned = scan_files(log.store, segment_for(log.store), ALL_IDS, SCHEMA, ("part",))
    files = [_comparable(table) for table in (replay_files(log.store, segment), scanned)]
    assert files[0] == files[1]
    return segment.version, files[0], state.protocol, state.metadata, dict(state.transactions), dict(state.domains)


def _comparable(table: object) -> list[object]:
    return sorted((a.path, a.size, tuple(a.partition_values.items()), a.stats) for a in add_files(table))


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_gives_the_right_state_or_a_precise_error(kind: str, damage: str) -> None:
    log, last_written = _table(KINDS[kind][0])
    truth = _outcome(log)
    name = KINDS[kind][1] or last_written
    damaged = DAMAGES[damage](log.store.get(name))
    if damaged is None:
        log.store.delete(name)
    else:
        log.store.put(name, damaged)
    try:
        found = _outcome(log)
    except TahoeError as error:
        assert kind not in NOT_NEEDED or (kind == "the first commit" and damage == "deleted"), "the log is whole without it"
        _assert_precise(error, log)
    else:
        assert found == truth


def _assert_precise(error: TahoeError, log: Log) -> None:
    assert isinstance(error, CorruptTable | NotFound)
    assert log.store.url in error.message
    assert re.search(r"_delta_log/\d{20}\.", error.message), error.message
    assert re.search(r"version|commit", error.message)
    assert re.search(r"[Rr]estore|[Dd]elete", error.message), "the message must name a remedy"
    assert error.facts["table"] == log.store.url
    assert error.code.startswith("DELTA_")


@pytest.mark.parametrize("damage", sorted(set(DAMAGES) - {"deleted"}))
def test_a_damaged_checkpoint_without_the_commits_before_it_is_an_error_that_names_it(damage: str) -> None:
    log, name = _table("classic")
    truth = _outcome(log)
    for version in range(10):
        log.store.delete(commit_name(version))
    log.store.put(name, DAMAGES[damage](log.store.get(name)) or b"")
    try:
        found = _outcome(log)
    except CorruptTable as error:
        _assert_precise(error, log)
        assert (error.facts["file"], error.facts["version"]) == (name, 10)  # noqa: PT017 - either outcome may be right
    else:
        assert found == truth


def test_a_damaged_checkpoint_falls_back_to_an_older_one_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    log = memory_log()
    log.begin(add("a"))
    log.commit(add("b"))
    log.classic()
    log.commit(add("c"))
    newer = log.classic()
    log.commit(add("d"))
    log.store.delete(commit_name(0))
    log.store.put(newer, b"PAR1")
    with caplog.at_level(logging.WARNING):
        assert sorted(a.path for a in log.live()) == ["a", "b", "c", "d"]
    assert newer in caplog.text and "the checkpoint of version 1" in caplog.text


def test_a_second_checkpoint_of_the_same_version_takes_the_place_of_a_damaged_one() -> None:
    log = memory_log()
    log.begin(add("a"))
    log.commit(add("b"))
    log.v2("parquet")
    log.store.put(log.classic(), b"no Parquet")
    log.store.delete(commit_name(0))
    assert sorted(a.path for a in log.live()) == ["a", "b"]


@pytest.mark.parametrize("witness", ["hint", "size", "checksum"])
def test_a_checkpoint_that_is_valid_and_short_is_found_out(witness: str) -> None:
    log = memory_log()
    log.begin(*(add(f"f{i}") for i in range(9)))
    log.commit(add("last"))
    if witness == "hint":
        log.hint()
    elif witness == "size":
        log.hint(numOfAddFiles=None)
    else:
        log.checksum()
    log.classic([*log.others.values(), *list(log.versions[-1].values())[:4]])
    assert sorted(a.path for a in log.live()) == log.expected()
    log.store.delete(commit_name(0))
    with pytest.raises(CorruptTable, match=r"0001\.checkpoint\.parquet"):
        log.live()


@pytest.mark.parametrize("tag", ["numOfAddFiles", "sidecarNumActions", "sidecarSizeInBytes"])
@pytest.mark.parametrize("form", ["json", "parquet"])
def test_a_v2_checkpoint_that_its_own_tags_contradict_is_not_used(form: str, tag: str, caplog: pytest.LogCaptureFixture) -> None:
    log = memory_log()
    log.begin(add("a"), add("b"))
    log.v2(form, **{tag: "3"})
    assert sorted(a.path for a in log.live()) == ["a", "b"]
    assert tag in caplog.text


@pytest.mark.parametrize("witness", ["hint", "checksum", "nobody"])
def test_a_checkpoint_that_holds_a_file_twice_is_found_out(witness: str) -> None:
    log = memory_log()
    log.begin(*(add(f"f{i}") for i in range(9)))
    log.commit(add("last"))
    if witness == "hint":
        log.hint()
    elif witness == "checksum":
        log.checksum()
    log.classic([*log.others.values(), *log.versions[-1].values(), add("f3")])
    assert sorted(a.path for a in log.live()) == log.expected()


def test_a_checkpoint_with_another_size_of_a_file_is_found_out_by_its_checksum() -> None:
    log = memory_log()
    log.begin(add("a"), add("b"))
    log.checksum()
    log.classic([*log.others.values(), add("a"), add("b", size=7)])
    log.commit(add("c"))
    assert sorted(a.size for a in log.live()) == [100, 100, 100]


def test_a_checkpoint_that_a_writer_made_without_protocol_is_refused_even_where_commits_have_one() -> None:
    log = memory_log()
    log.begin(add("a"))
    log.commit(add("b"))
    log.classic([a for name, a in log.others.items() if name[0] != "protocol"] + list(log.versions[-1].values()))
    with pytest.raises(CorruptTable, match="protocol") as caught:
        log.state()
    assert caught.value.code == "DELTA_STATE_RECOVER_ERROR"


@pytest.mark.parametrize("missing", ["protocol", "metaData"])
def test_a_log_without_protocol_or_metadata_is_refused(missing: str) -> None:
    log = memory_log()
    log.begin()
    kept = [line for line in log.store.get(commit_name(0)).splitlines(keepends=True) if f'"{missing}"'.encode() not in line]
    log.store.put(commit_name(0), b"".join(kept))
    with pytest.raises(CorruptTable, match=missing) as caught:
        log.state()
    assert caught.value.code == "DELTA_STATE_RECOVER_ERROR"


def test_a_checksum_of_another_transaction_is_not_believed(caplog: pytest.LogCaptureFixture) -> None:
    log = memory_log()
    log.begin(add("a"))
    log.checksum(numFiles=7, txnId="someone else's")
    with caplog.at_level(logging.WARNING):
        assert [a.path for a in log.live()] == ["a"]
    assert "another transaction" in caplog.text


@pytest.mark.parametrize("changes", [{"numFiles": 7}, {"tableSizeBytes": 1}])
def test_a_checksum_that_the_files_contradict_is_an_error(changes: dict[str, int]) -> None:
    log = memory_log()
    log.begin(add("a"))
    log.checksum(**changes)
    with pytest.raises(CorruptTable, match=re.escape(checksum_name(0))):
        log.live()


def test_a_lost_line_without_files_is_found_out_by_the_checksum() -> None:
    log = memory_log()
    log.begin(add("a"), SetTransaction("stream", 5))
    log.checksum()
    log.store.put(commit_name(0), DAMAGES["without its last line"](log.store.get(commit_name(0))) or b"")
    with pytest.raises(CorruptTable, match="stream"):
        log.state()


def test_a_checksum_beyond_the_newest_commit_shows_that_commits_were_lost() -> None:
    log = memory_log()
    log.begin(add("a"))
    log.commit(add("b"))
    log.checksum()
    log.store.delete(commit_name(1))
    with pytest.raises(CorruptTable, match=re.escape(commit_name(1))) as caught:
        log.live()
    assert caught.value.facts["version"] == 1
    assert [a.path for a in log.live(0)] == ["a"]


def _with_our_checkpoint() -> tuple[Log, str]:
    log = memory_log()
    log.begin(*(add(f"{uuid.UUID(int=i)}", low=i, high=i + 5) for i in range(50)))
    log.commit(add("more"))
    segment = segment_for(log.store)
    state, files = replay_state(log.store, segment), replay_files(log.store, segment)
    config = TableConfig(state.protocol, state.metadata, log.store.url)
    write_checkpoint(log.store, 1, state, files, replay_tombstones(log.store, segment), config, now_ms=2_000)
    return log, checkpoint_name(1)


def _flipped(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ (1 << position % 8)]) + data[position + 1 :]


def test_every_flipped_bit_in_our_own_checkpoint_is_survived() -> None:
    log, name = _with_our_checkpoint()
    whole, truth = log.store.get(name), _outcome(log)
    for position in range(4, len(whole), max(1, len(whole) // 150)):
        log.store.put(name, _flipped(whole, position))
        assert _outcome(log) == truth


def test_a_footer_of_which_arrow_would_die_is_refused() -> None:
    """Arrow ends the process for a column chunk whose type is not the schema's, and for one that is not there."""
    log, name = _with_our_checkpoint()
    log.store.delete(LAST_CHECKPOINT)  # nobody vouches for the footer
    whole, truth = log.store.get(name), _outcome(log)
    length = int.from_bytes(whole[-8:-4], "little")
    assert fault_in_footer(whole[-8 - length : -8]) is None
    faults = set()
    for position in range(len(whole) - 8 - length, len(whole) - 8, 5):
        flipped = _flipped(whole, position)
        fault = fault_in_footer(flipped[-8 - length : -8])
        if fault is not None and "column" in fault and fault.split()[-1] not in faults:
            faults.add(fault.split()[-1])
            log.store.put(name, flipped)
            assert _outcome(log) == truth
        if len(faults) == 3:
            return
    raise AssertionError(f"only {faults} were met")


@pytest.mark.parametrize("footer", [b"", b"\x15", b"\x29\xfc\xff\xff\xff\x0f", b"\x19" * 5_000, b"\xff" * 50, bytes(range(256))])
def test_bytes_that_are_no_footer_are_told(footer: bytes) -> None:
    assert fault_in_footer(footer) is not None
