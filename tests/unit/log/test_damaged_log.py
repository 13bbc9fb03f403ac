"""A damaged log gives the right state or a precise error, never another state: every kind of file, damaged in every way."""

from __future__ import annotations

import logging
import random
import re
import uuid
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tahoe.base.exceptions import CorruptTable, NotFound, TahoeError
from tahoe.expr.tree.predicate import Column, Comparison, Literal
from tahoe.log.checkpoints.checkpoint_checksum import CHECKSUM_BYTES
from tahoe.log.checkpoints.checkpoint_writer import write_checkpoint
from tahoe.log.checkpoints.footer_check import fault_in_footer
from tahoe.log.files.commit_checksum import with_commit_checksum
from tahoe.log.files.live_files import add_files
from tahoe.log.files.paths import LAST_CHECKPOINT, checkpoint_name, checksum_name, commit_name
from tahoe.log.replay import LogReader
from tahoe.log.segment import segment_for
from tahoe.protocol.actions import CommitInfo, DomainMetadata, Protocol, SetTransaction
from tahoe.protocol.config import TableConfig
from tahoe.schema.types import PrimitiveType
from tahoe.testing.log_builder import DAMAGES, METADATA, PROTOCOL, SCHEMA, Log, add, memory_log, remove, vector

ALL_IDS = Comparison(">=", Column(("id",)), Literal(-1, PrimitiveType("long")))

# Possible corruption, by the kind of checkpoint of the table; the name None is the last file that `_table` wrote.
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
    state = LogReader(log.store, segment).state()
    scanned = LogReader(log.store, segment_for(log.store)).scan(ALL_IDS, SCHEMA, ("part",))
    files = [_comparable(table) for table in (LogReader(log.store, segment).files(), scanned)]
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
        actual = _outcome(log)
    except TahoeError as error:
        assert kind not in NOT_NEEDED or (kind == "the first commit" and damage == "deleted"), "the log is whole without it"
        _assert_precise(error, log)
    else:
        assert actual == truth


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
        actual = _outcome(log)
    except CorruptTable as error:
        _assert_precise(error, log)
        assert (error.facts["file"], error.facts["version"]) == (name, 10)  # noqa: PT017 - either outcome may be right
    else:
        assert actual == truth


def test_a_damaged_checkpoint_falls_back_to_an_older_one_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
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


def test_another_word_in_a_compaction_is_not_read_while_its_commits_are_whole() -> None:
    """Nothing vouches for a compaction: a changed bit that leaves valid JSON would be another path, partition value or bound."""
    log = memory_log()
    log.begin()
    for number in range(3):
        log.commit(add(f"file-{number}", part="a", low=number, high=number))
    name = log.compaction(1, 2)
    truth = _outcome(log)
    for right, wrong in ((b"file-1", b"fil%-1"), (b'"part":"a"', b'"part":"c"'), (b'"id\\":1', b'"id\\":9'), (b"add", b"adf")):
        whole = log.store.get(name)
        assert right in whole
        log.store.put(name, whole.replace(right, wrong))
        assert _outcome(log) == truth
        log.store.put(name, whole)


def test_a_compaction_takes_the_place_of_a_damaged_commit_and_that_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    log, compaction = _table("compaction")
    truth = _outcome(log)
    log.store.put(commit_name(4), b'{"add":{"path":"half')
    assert _outcome(log) == truth
    assert commit_name(4) in caplog.text and "compaction" in caplog.text
    log.store.put(compaction, b"{")
    with pytest.raises(CorruptTable, match=re.escape(commit_name(4))):
        log.live()


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
    remaining = [line for line in log.store.get(commit_name(0)).splitlines(keepends=True) if f'"{missing}"'.encode() not in line]
    log.store.put(commit_name(0), b"".join(remaining))
    with pytest.raises(CorruptTable, match=missing) as caught:
        log.state()
    assert caught.value.code == "DELTA_STATE_RECOVER_ERROR"


def test_a_checksum_of_another_transaction_says_that_it_or_its_commit_is_not_in_its_place() -> None:
    log = memory_log()
    log.begin(add("a"))
    log.checksum(txnId="someone else's")
    with pytest.raises(CorruptTable, match=re.escape(checksum_name(0)) + ".*txnId someone else's"):
        log.state()


def test_where_a_seal_proves_the_commit_a_checksum_of_another_transaction_is_not_believed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = memory_log()
    log.begin(add("a"))
    log.checksum(numFiles=7, txnId="someone else's")
    log.store.put(commit_name(0), with_commit_checksum(0, [CommitInfo({"txnId": "mine"}), PROTOCOL, METADATA, add("a")]))
    with caplog.at_level(logging.WARNING):
        assert log.state().transaction_id == "mine"
        assert [a.path for a in log.live()] == ["a"]
    assert "another transaction" in caplog.text


@pytest.mark.parametrize(
    "changes",
    [
        {"numFiles": 7},
        {"tableSizeBytes": 1},
        {"numDeletedRecordsOpt": 5},
        {"numDeletionVectorsOpt": 1},
        {"allFiles": [add("b").to_json_value()]},
        {"allFiles": [add("a", part="other").to_json_value()]},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_checksum_that_the_files_contradict_is_an_error(changes: dict[str, object]) -> None:
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
    state, files = LogReader(log.store, segment).state(), LogReader(log.store, segment).files()
    config = TableConfig(state.protocol, state.metadata, log.store.url)
    write_checkpoint(log.store, 1, state, files, LogReader(log.store, segment).tombstones(), config, now_ms=2_000)
    return log, checkpoint_name(1)


def _flipped(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ (1 << position % 8)]) + data[position + 1 :]


def test_flipped_bits_in_our_own_checkpoint_are_survived() -> None:
    """20 of them, all over the file; the log is replayed for each."""
    _flip_so_many(20)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_thousands_of_flipped_bits_in_our_own_checkpoint_are_survived() -> None:
    _flip_so_many(2_000)


def _flip_so_many(most: int) -> None:
    log, name = _with_our_checkpoint()
    whole, truth = log.store.get(name), _outcome(log)
    for position in range(4, len(whole), max(1, len(whole) // most)):
        log.store.put(name, _flipped(whole, position))
        assert _outcome(log) == truth


def test_without_the_hint_the_footers_own_seal_shows_every_flipped_bit() -> None:
    log, name = _with_our_checkpoint()
    log.store.delete(LAST_CHECKPOINT)
    whole, truth = log.store.get(name), _outcome(log)
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    chance = random.Random(7)
    unseen = 0
    for position in [*range(footer - CHECKSUM_BYTES, footer), *chance.sample(range(footer, len(whole)), 100)]:
        log.store.put(name, _flipped(whole, position))
        assert _outcome(log) == truth
        unseen += _is_whole(log, name)
    assert unseen <= 8, "only a flipped bit in the embedded checksum's own magic bytes leaves the file as it is"


def _is_whole(log: Log, name: str) -> bool:
    try:
        log.files_of_checkpoint(1)
    except CorruptTable as error:
        if name in error.message:
            return False
        raise
    return True


def test_a_text_in_a_foreign_checkpoint_that_is_none_makes_an_older_one_take_its_place(caplog: pytest.LogCaptureFixture) -> None:
    """No hint refers to it and it has no checksums of its own: Arrow returns its contents, whatever they are."""
    log = memory_log()
    log.begin(add("first"), SetTransaction("stream", 1))
    log.classic()
    for version in range(1, 5):
        log.commit(add(f"file-{version}"))
    name = log.classic()
    plain = pa.BufferOutputStream()
    pq.write_table(pq.read_table(pa.BufferReader(log.store.get(name))), plain, compression="none")
    truth, whole = _outcome(log), bytes(plain.getvalue().to_pybytes())
    log.store.delete(commit_name(0))
    for text in (b"file-3", b"stream", b"a-table", b'"numRecords"'):
        assert text in whole
        log.store.put(name, whole.replace(text, b"\xe1" + text[1:]))
        with caplog.at_level(logging.WARNING):
            assert _outcome(log) == truth
        assert name in caplog.text and "checkpoint of version 0" in caplog.text


def test_the_checkpoint_of_another_version_under_this_ones_name_is_not_used() -> None:
    """As many files, as many bytes, no hint and no checksum: only the embedded checksum can detect it."""
    log, name = _with_our_checkpoint()
    first = log.store.get(name)
    log.commit(remove(add("more")), add("instead"))
    log.store.put(checkpoint_name(2), first)
    log.store.delete(LAST_CHECKPOINT)
    assert "instead" in {file.path for file in log.live()}


def test_a_footer_of_which_arrow_would_die_is_refused() -> None:
    """Arrow ends the process for a column chunk whose type is not the schema's, and for one that is not there."""
    log, name = _with_our_checkpoint()
    log.store.delete(LAST_CHECKPOINT)  # nobody vouches for the footer
    whole, truth = log.store.get(name), _outcome(log)
    length = int.from_bytes(whole[-8:-4], "little")
    assert fault_in_footer(whole[-8 - length : -8]) is None
    whole = (
        whole[: -8 - length - CHECKSUM_BYTES] + b"\0" * CHECKSUM_BYTES + whole[-8 - length :]
    )  # nor does its embedded checksum
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
def test_bytes_that_are_no_footer_are_reported(footer: bytes) -> None:
    assert fault_in_footer(footer) is not None


@pytest.mark.parametrize("checkpoint", [False, True])
def test_the_commit_that_wrote_a_vector_without_its_tail_is_reported_by_the_checksums_counters(checkpoint: bool) -> None:
    log = memory_log()
    log.begin(add("a"), add("b"))
    counts = {"numDeletedRecordsOpt": 0, "numDeletionVectorsOpt": 0}
    log.checksum(**counts)
    if checkpoint:
        log.classic()
    log.commit(remove(add("a")), add("a", deletion_vector=vector("v", 5)))
    log.checksum(numDeletedRecordsOpt=5, numDeletionVectorsOpt=1)
    assert _outcome(log)
    log.store.put(commit_name(1), log.store.get(commit_name(1)).splitlines(keepends=True)[0])
    for read in (log.live, lambda: LogReader(log.store, segment_for(log.store)).scan(ALL_IDS, SCHEMA, ("part",))):
        with pytest.raises(CorruptTable, match="numDeletedRecordsOpt 5, but the log gives 0"):
            read()


def test_a_transaction_that_expired_with_a_checkpoint_may_be_missing_from_the_log() -> None:
    remaining = replace(METADATA, configuration={"delta.setTransactionRetentionDuration": "interval 1 minutes"})
    log = memory_log()
    old = SetTransaction("old", 3, last_updated=1_000)
    log.commit(PROTOCOL, remaining, add("a"), old)
    log.checksum()
    assert log.state().transactions == {"old": old}
    log.classic([PROTOCOL, remaining, add("a")])
    assert log.state().transactions == {}
    log.checksum(setTransactions=[SetTransaction("new", 1, last_updated=1 << 60).to_json_value()])
    with pytest.raises(CorruptTable, match="new"):
        log.state()


def test_a_transaction_of_which_no_retention_is_over_may_not_be_missing_from_the_log() -> None:
    """Nor may files and domains: a checksum that counts actions missing from the commit means a truncated commit."""
    log = memory_log()
    log.begin()
    log.checksum(setTransactions=[{"appId": "spark-app-1", "version": 42, "lastUpdated": 1}], numFiles=10, tableSizeBytes=5_259)
    with pytest.raises(CorruptTable, match="spark-app-1"):
        log.state()


def _log_of(infos: list[dict[str, object]], configuration: dict[str, str] | None = None) -> Log:
    log = memory_log()
    protocol = Protocol(3, 7, frozenset(), frozenset({"inCommitTimestamp"}))
    log.commit(protocol, replace(METADATA, configuration=configuration or {}), info=False)
    for number, info in enumerate(infos):
        log.commit(CommitInfo(info), add(f"f{number}"), info=False)
    return log


def test_a_commit_that_had_read_its_own_version_is_not_in_its_place() -> None:
    assert len(_log_of([{"readVersion": 0}, {"readVersion": 0}, {"readVersion": 2}]).live()) == 3
    with pytest.raises(CorruptTable, match=re.escape(commit_name(1)) + ".*read version 1"):
        _log_of([{"readVersion": 1}, {"readVersion": 0}]).live()


def test_commits_of_one_transaction_or_with_the_same_bytes_are_copies() -> None:
    with pytest.raises(CorruptTable, match=re.escape(commit_name(3)) + ".*txnId t.*" + re.escape(commit_name(1))):
        _log_of([{"txnId": "t"}, {"txnId": "u"}, {"txnId": "t"}]).live()
    log = _log_of([{"timestamp": 1}, {"timestamp": 1}])
    assert len(log.live()) == 2
    log.store.put(commit_name(2), log.store.get(commit_name(1)))
    with pytest.raises(CorruptTable, match="same bytes"):
        log.live()


def test_in_commit_timestamps_that_do_not_increase_show_commits_out_of_their_places() -> None:
    infos: list[dict[str, object]] = [{"inCommitTimestamp": at} for at in (10, 30, 20)]
    assert len(_log_of(infos).live()) == 3, "where they are not in use, they say nothing"
    on = {"delta.enableInCommitTimestamps": "true"}
    with pytest.raises(CorruptTable, match=re.escape(commit_name(3))):
        _log_of(infos, on).state()
    in_order = [{**info, "readVersion": version} for version, info in enumerate(infos)]
    assert _log_of(in_order, on).state().in_commit_timestamp == 20, "a clock was wrong, and the commits say whom they follow"
    later = {**on, "delta.inCommitTimestampEnablementVersion": "3", "delta.inCommitTimestampEnablementTimestamp": "20"}
    assert _log_of(infos, later).state().in_commit_timestamp == 20


def test_another_time_of_the_same_transaction_in_the_checksum_is_reported_and_costs_no_rows(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = _log_of([{"txnId": "t", "inCommitTimestamp": 10}])
    log.checksum(txnId="t", inCommitTimestampOpt=11)
    with caplog.at_level(logging.WARNING):
        assert log.state().in_commit_timestamp == 10
    assert "at 10 by its commit and at 11 by its checksum" in caplog.text
    log.checksum(txnId=None, inCommitTimestampOpt=11)
    with pytest.raises(CorruptTable, match="inCommitTimestampOpt 11, but the log gives 10"):
        log.state()


def test_a_json_checkpoint_that_lost_its_first_lines_is_cut_and_an_older_one_takes_its_place() -> None:
    log = memory_log()
    log.begin(add("a"))
    log.commit(add("b"))
    truth = _outcome(log)
    name = log.v2("json", sidecars=0)[-1]
    whole = log.store.get(name).splitlines(keepends=True)
    for lines_left in range(1, len(whole)):
        log.store.put(name, b"".join(whole[-lines_left:]))
        assert _outcome(log) == truth


def test_a_checkpoint_that_names_a_sidecar_elsewhere_is_damaged_and_the_commits_take_its_place() -> None:
    log = memory_log()
    log.begin(add("a"))
    log.commit(add("b"))
    truth = _outcome(log)
    name = log.v2("json")[-1]
    whole = log.store.get(name)
    log.store.put(name, whole.replace(b"00000000-0000-0000-0000-000000000002", b"00000000/0000-0000-0000-000000000002"))
    assert log.store.get(name) != whole
    assert _outcome(log) == truth
    log.store.delete(commit_name(0))
    with pytest.raises(CorruptTable, match="names the sidecar") as caught:
        log.state()
    assert caught.value.code == "TAHOE_PATH_OUTSIDE_TABLE"
