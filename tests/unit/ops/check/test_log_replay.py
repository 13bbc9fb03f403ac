"""`check()` applies the rules of reading to each commit and checksum, also to commits without embedded checksums."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tahoe import Table
from tahoe.base.exceptions import CorruptTable
from tahoe.log.files.live_files import files_table
from tahoe.ops.check import log_replay
from tahoe.ops.check.log_replay import LogReplay, difference, file_texts
from tahoe.ops.check.table_check import check_table
from tahoe.protocol.actions import AddFile
from tahoe.store.local_store import LocalLogStore
from tahoe.testing.log_builder import add, memory_log

pytestmark = pytest.mark.damages_tables

SCHEMA = pa.schema([("id", pa.int64())])
TIMED = {"delta.enableInCommitTimestamps": "true", "delta.enableChangeDataFeed": "true"}


def commit(root: Path, version: int) -> Path:
    return root / "_delta_log" / f"{version:020d}.json"


def checksum(root: Path, version: int) -> Path:
    return commit(root, version).with_suffix(".crc")


@pytest.fixture
def foreign(tmp_path: Path) -> Callable[..., Path]:
    """Makes a table of six versions as another writer leaves it: no embedded checksums, and no checksums unless asked for."""

    def made(properties: dict[str, str] | None = None, *, checksums: bool = False) -> Path:
        root = tmp_path / "t"
        table = Table.create(root, SCHEMA, properties=properties)
        for number in range(5):
            table.append(pa.table({"id": [number]}, schema=SCHEMA))
        for path in sorted((root / "_delta_log").glob("*.json")):
            path.write_text(re.sub(r',"tahoe.seal":"[^"]*"', "", path.read_text()))
        if not checksums:
            for path in (root / "_delta_log").glob("*.crc"):
                path.unlink()
        assert check_table(LocalLogStore(root)) == []
        return root

    return made


def swap(one: Path, other: Path) -> None:
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)


def change_info(path: Path, **values: Any) -> None:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if "commitInfo" in line:
            line["commitInfo"] = {name: value for name, value in {**line["commitInfo"], **values}.items() if value is not None}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


IMITATIONS = [
    (add("f", partition_values={"p": "x\0q=y"}), add("f", partition_values={"p": "x", "q": "y"})),
    (add("f", partition_values={"p": "x\0q\1y"}), add("f", partition_values={"p": "x", "q": "y"})),
    (add("f", partition_values={"p": "x=y"}), add("f", partition_values={"p=x": "y"})),
    (add("f", partition_values={"p": "\0"}), add("f", partition_values={"p": "\x020"})),
    (add("f\0u"), add("f%00u")),
]


@pytest.mark.parametrize(("commits_file", "checkpoint_file"), IMITATIONS)
def test_a_file_cannot_imitate_the_text_of_another(commits_file: AddFile, checkpoint_file: AddFile) -> None:
    log = memory_log()
    log.begin(commits_file)
    replay = LogReplay(log.store)
    replay._begin(complete=True)
    replay._put(replay._key(commits_file), log_replay._text_of(commits_file), 100, None)
    for file, differs in ((commits_file, False), (checkpoint_file, True)):
        wrong = difference("the checkpoint", file_texts(files_table([file])), replay.live or {}, log.store.url)
        assert (wrong is not None) == differs, (file, wrong)


def findings(root: Path) -> list[tuple[str, int | None]]:
    return [(item.code, item.version) for item in check_table(LocalLogStore(root))]


def test_swapped_commits_of_another_writer_are_reported_by_their_read_versions(foreign: Callable[..., Path]) -> None:
    root = foreign()
    swap(commit(root, 2), commit(root, 3))
    assert ("commit", 2) in findings(root)
    with pytest.raises(CorruptTable, match="not in its place"):
        Table(root).to_arrow()


def test_a_copied_commit_is_reported_once(foreign: Callable[..., Path]) -> None:
    root = foreign()
    change_info(commit(root, 2), readVersion=None)
    commit(root, 3).write_bytes(commit(root, 2).read_bytes())
    assert [item for item in findings(root) if item[0] == "commit"] == [("commit", 3)]


def test_a_copied_commit_without_a_transaction_id_is_reported_by_its_bytes(foreign: Callable[..., Path]) -> None:
    root = foreign()
    change_info(commit(root, 2), readVersion=None, txnId=None)
    commit(root, 4).write_bytes(commit(root, 2).read_bytes())
    assert ("commit", 4) in findings(root)


def test_a_checksum_of_another_transaction_is_reported(foreign: Callable[..., Path]) -> None:
    root = foreign(checksums=True)
    change_info(commit(root, 4), txnId="another")
    assert ("checksum", 4) in findings(root)


def test_a_checksum_that_lists_other_files_is_reported(foreign: Callable[..., Path]) -> None:
    root = foreign(checksums=True)
    said = json.loads(checksum(root, 3).read_text())
    adds = [json.loads(line)["add"] for v in (1, 2, 3) for line in commit(root, v).read_text().splitlines() if '"add"' in line]
    own = {"tahoe.crc32", "tahoe.version"}
    said = {name: value for name, value in said.items() if name not in own}
    checksum(root, 3).write_text(json.dumps({**said, "allFiles": adds}))
    assert findings(root) == []
    adds[0]["path"] = "another.parquet"
    checksum(root, 3).write_text(json.dumps({**said, "allFiles": adds}))
    assert findings(root) == [("checksum", 3)]


def test_a_commit_that_lost_its_time_is_reported_and_its_changes_are_not_shown(foreign: Callable[..., Path]) -> None:
    root = foreign(TIMED)
    text = commit(root, 3).read_text()
    commit(root, 3).write_text(text.partition("\n")[2])
    assert ("commit", 3) in findings(root)
    with pytest.raises(CorruptTable) as raised:
        Table(root).changes(2, 4)
    assert raised.value.code == "DELTA_MISSING_COMMIT_TIMESTAMP"


def test_a_commit_whose_time_does_not_come_first_is_reported_and_its_changes_are_not_shown(foreign: Callable[..., Path]) -> None:
    root = foreign(TIMED)
    first, _, rest = commit(root, 3).read_text().partition("\n")
    commit(root, 3).write_text(f"{rest}{first}\n")
    assert findings(root) == [("commit", 3)]
    with pytest.raises(CorruptTable) as raised:
        Table(root).changes(2, 4)
    assert raised.value.code == "DELTA_MISSING_COMMIT_TIMESTAMP"
