"""`check()` reports and never raises, for any contents of a table; sound tables give no findings; and its cost is proportional to the log."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tahoe import Table
from tahoe.base.exceptions import CorruptTable, NotFound, TahoeError
from tahoe.base.progress import Reported
from tahoe.log.files import commits as reader
from tahoe.ops.check import log_replay
from tahoe.ops.check.rules import live_file_rules
from tahoe.ops.check.subjects import replayed_log
from tahoe.ops.check.table_check import TableCheck, Violation, check_table
from tahoe.protocol.dv import z85_encode
from tahoe.store.local_store import LocalLogStore
from tahoe.store.log_store import Entry
from tests.cleaned_logs import start_at_the_checkpoint

pytestmark = pytest.mark.damages_tables

VECTORS = {"delta.enableDeletionVectors": "true"}
DEEP = "[" * 100_000


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Commits, a checkpoint, checksums, partitions with odd values, a vector: a table with one of everything."""
    root = tmp_path_factory.mktemp("sound") / "table"
    schema = pa.schema([("id", pa.int64()), ("part", pa.string())])
    table = Table.create(root, schema, partition_by=["part"], properties=VECTORS)
    for start in range(0, 40, 10):
        table.append(pa.table({"id": range(start, start + 10), "part": [f"a b%{start}"] * 10}, schema=schema))
        if start == 10:
            table.checkpoint()
    table.delete("id = 3")
    assert check_table(LocalLogStore(root), deep=True) == []
    return root


@pytest.fixture(scope="module", params=["from version 0", "from a checkpoint"])
def sound(whole: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """The same table, and the same after the first commits were cleaned away."""
    if request.param == "from version 0":
        return whole
    root = Path(shutil.copytree(whole, tmp_path_factory.mktemp("cleaned") / "table"))
    start_at_the_checkpoint(root)
    assert check_table(LocalLogStore(root), deep=True) == []
    return root


@pytest.fixture
def root(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "table"))


def commits(root: Path) -> list[Path]:
    return sorted((root / "_delta_log").glob("*.json"))


def change_add(**changes: Any) -> Callable[[Path], None]:
    """Change members of the last `add` of the log, the one with the vector."""

    def change(root: Path) -> None:
        actions = [json.loads(line) for line in commits(root)[-1].read_text().splitlines()]
        for action in actions:
            if "add" in action:
                for name, value in changes.items():
                    if callable(value):
                        value(action["add"])
                    else:
                        action["add"][name] = value
        commits(root)[-1].write_text("".join(json.dumps(action) + "\n" for action in actions))

    return change


def change_vector(**changes: Any) -> Callable[[Path], None]:
    return change_add(vector=lambda add: add["deletionVector"].update(changes))


def append_line(text: str) -> Callable[[Path], None]:
    return lambda root: commits(root)[-1].write_text(commits(root)[-1].read_text() + text + "\n")


def write(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda root: (root / "_delta_log" / name).write_bytes(content) and None


def each(pattern: str, change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def apply(root: Path) -> None:
        actual = sorted(root.glob(pattern))
        assert actual, "the attack hits something"
        for path in actual:
            path.write_bytes(change(path.read_bytes()))

    return apply


def folder_instead(pattern: str) -> Callable[[Path], None]:
    def apply(root: Path) -> None:
        path = sorted(root.glob(pattern))[-1]
        path.unlink()
        path.mkdir()

    return apply


def link_outside(root: Path) -> None:
    victim = next(root.glob("part=*/*.parquet"))
    outside = root.parent / "outside.parquet"
    shutil.move(victim, outside)
    victim.symlink_to(outside)


def without_a_beginning(root: Path) -> None:
    for path in (commits(root)[0], *root.glob("_delta_log/*.checkpoint.parquet")):
        path.unlink()


def metadata_line(schema: str) -> str:
    metadata = {"id": "x", "format": {"provider": "parquet"}, "schemaString": schema, "partitionColumns": [], "configuration": {}}
    return json.dumps({"metaData": metadata})


GARBAGE = z85_encode(b"\x64\x39\xd3\xd1" + b"\xff" * 60)
MAD_DECIMAL = '{"type":"struct","fields":[{"name":"id","type":"decimal(99,99)","nullable":true,"metadata":{}}]}'

MAD: dict[str, Callable[[Path], None]] = {
    "statistics of 100,000 brackets": change_add(stats=DEEP),
    "statistics of 100,000 objects": change_add(stats='{"a":' * 100_000 + "1" + "}" * 100_000),
    "statistics that are no object": change_add(stats="[1]"),
    "statistics of negative rows": change_add(stats='{"numRecords":-5}'),
    "statistics of infinite rows": change_add(stats='{"numRecords":1e999}'),
    "statistics whose rows are a text": change_add(stats='{"numRecords":"ten"}'),
    "statistics with half a surrogate": change_add(stats='{"numRecords":10,"minValues":{"id":"\ud800"}}'),
    "bounds of a mad type": change_add(stats='{"numRecords":10,"minValues":7,"maxValues":[],"nullCount":"x"}'),
    "a vector at an offset of 2^31": change_vector(offset=2**31),
    "a vector at an offset of 2^63": change_vector(offset=2**63),
    "a vector at a negative offset": change_vector(offset=-7),
    "a vector of negative size": change_vector(sizeInBytes=-1),
    "a vector of 2^40 bytes": change_vector(sizeInBytes=2**40),
    "a vector of 2^62 rows": change_vector(cardinality=2**62),
    "a vector of an unknown storage": change_vector(storageType="x"),
    "a vector outside": change_vector(storageType="p", pathOrInlineDv="file:///etc/passwd"),
    "a vector that is a data file": change_vector(storageType="p", pathOrInlineDv="_delta_log/00000000000000000000.json"),
    "an inline vector that is none": change_vector(storageType="i", pathOrInlineDv="hello"),
    "an inline vector of garbage": change_vector(storageType="i", pathOrInlineDv=GARBAGE, sizeInBytes=64),
    "a vector without a path": change_vector(pathOrInlineDv=""),
    "a path outside": change_add(path="../../etc/passwd"),
    "a path of another scheme": change_add(path="s3://other/bucket/file"),
    "a path with NUL": change_add(path="a\0b"),
    "a path with a broken escape": change_add(path="a%zz"),
    "a path that is empty": change_add(path=""),
    "a path with half a surrogate": change_add(path="\ud800"),
    "a path of 100,000 characters": change_add(path="x" * 100_000),
    "a negative size": change_add(size=-1),
    "a size of 2^70": change_add(size=2**70),
    "a size that is a text": change_add(size="big"),
    "no partition values": change_add(partitionValues=None),
    "partition values of numbers": change_add(partitionValues={"part": 7}),
    "no partition column's key": change_add(partitionValues={}),
    "an action of 100,000 brackets": append_line(DEEP),
    "an action twice": append_line('{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}\n' * 2),
    "an unknown protocol": append_line('{"protocol":{"minReaderVersion":99,"minWriterVersion":99}}'),
    "a schema of 100,000 brackets": append_line(metadata_line(DEEP)),
    "a schema of decimal(99,99)": append_line(metadata_line(MAD_DECIMAL)),
    "no UTF-8 in a commit": each("_delta_log/*3.json", lambda data: data + b"\xff\xfe\n"),
    "commits that are empty": each("_delta_log/*2.json", lambda data: b""),
    "commits that were cut": each("_delta_log/*4.json", lambda data: data[:-30]),
    "checksums that are no JSON": each("_delta_log/*.crc", lambda data: b"{"),
    "checksums of 100,000 brackets": each("_delta_log/*.crc", lambda data: DEEP.encode()),
    "checksums of another table": each("_delta_log/*.crc", lambda data: data.replace(b'"numFiles":', b'"numFiles":1')),
    "a checkpoint that was cut": each("_delta_log/*.checkpoint.parquet", lambda data: data[: len(data) // 2]),
    "a checkpoint that is empty": each("_delta_log/*.checkpoint.parquet", lambda data: b""),
    "a checkpoint with a flipped footer": each("_delta_log/*.checkpoint.parquet", lambda data: data[:-20] + b"\x55" + data[-19:]),
    "vectors that were cut": each("*.bin", lambda data: data[:5]),
    "vectors that are empty": each("*.bin", lambda data: b""),
    "data files that were cut": each("part=*/*.parquet", lambda data: data[:-1]),
    "data files that are empty": each("part=*/*.parquet", lambda data: b""),
    "data files of zeros": each("part=*/*.parquet", lambda data: bytes(len(data))),
    "a folder in place of a commit": folder_instead("_delta_log/*.json"),
    "a folder in place of a data file": folder_instead("part=*/*.parquet"),
    "a link out of the table": link_outside,
    "a commit in the far future": write("00000000000099999999.json", b"{}"),
    "a commit in the farthest future": write("00099999999999999999.json", b"{}"),
    "a checksum in the far future": write("00000000000099999999.crc", b"{}"),
    "a checkpoint that is not parquet": write("00000000000000000004.checkpoint.parquet", b"PAR1 no PAR1"),
    "a checkpoint of one row too many": lambda root: _checkpoint_with_a_twin(root),
    "a missing commit": lambda root: commits(root)[3].unlink(),
    "a log without a beginning": without_a_beginning,
    "swapped commits": lambda root: _swap(commits(root)[1], commits(root)[3]),
}


def _swap(one: Path, other: Path) -> None:
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)


def _checkpoint_with_a_twin(root: Path) -> None:
    (path,) = root.glob("_delta_log/*.checkpoint.parquet")
    rows = pq.read_table(path)
    pq.write_table(pa.concat_tables([rows, rows.slice(rows.num_rows - 1)]), path)


@pytest.mark.parametrize("with_its_commit", [True, False])
def test_changes_after_a_checkpoint_are_folded_into_the_state_that_it_gives(tmp_path: Path, with_its_commit: bool) -> None:
    """A `metaData` without a `protocol`, then a `protocol` without a `metaData`, then both as they are in the next checkpoint."""
    table = Table.create(tmp_path, pa.schema([("id", pa.int64()), ("part", pa.string())]), partition_by=["part"])
    table.append(pa.table({"id": [1], "part": ["a"]}))
    table.checkpoint()
    table.append(pa.table({"id": [2], "part": ["b"]}))
    start_at_the_checkpoint(tmp_path, with_its_commit=with_its_commit)
    table = Table(tmp_path)
    check = TableCheck(LocalLogStore(tmp_path))
    changes: list[Callable[[], object]] = [
        lambda: table.overwrite(pa.table({"id": [1], "other": ["a"]}), overwrite_schema=True, partition_by=["other"]),
        lambda: table.append(pa.table({"id": [2], "other": ["b"]})),
        lambda: table.set_properties({"delta.enableInCommitTimestamps": "true"}),
        lambda: table.append(pa.table({"id": [3], "other": ["c"]})),
        table.checkpoint,
    ]
    for change in changes:
        change()
        assert check.violations() == []
        assert Table(tmp_path).check(deep=True) == []
    info = [json.loads(line) for line in commits(tmp_path)[-1].read_text().splitlines()]
    commits(tmp_path)[-1].write_text("".join(json.dumps(line) + "\n" for line in info if "commitInfo" not in line))
    assert "commit" in {actual.code for actual in Table(tmp_path).check()}, "the property is in force"


def test_a_checkpoint_after_the_first_is_compared_with_it(tmp_path: Path) -> None:
    table = Table.create(tmp_path, pa.schema([("id", pa.int64())]))
    table.checkpoint()
    table.append(pa.table({"id": [1]}))
    table.checkpoint()
    commits(tmp_path)[0].unlink()
    (newest,) = tmp_path.glob("_delta_log/*1.checkpoint.parquet")
    rows = pq.read_table(newest)
    changed = [{**row, "metaData": row["metaData"] and {**row["metaData"], "id": "another"}} for row in rows.to_pylist()]
    pq.write_table(pa.Table.from_pylist(changed, schema=rows.schema), newest)
    actual = [item for item in check_table(LocalLogStore(tmp_path)) if item.code == "checkpoint"]
    assert [item.message.endswith("id differ.") for item in actual] == [True]


@pytest.mark.parametrize("attack", MAD, ids=str)
def test_whatever_a_table_holds_is_a_finding_or_one_clean_error(root: Path, attack: str) -> None:
    MAD[attack](root)
    try:
        actual = check_table(LocalLogStore(root), deep=True)
    except TahoeError as error:
        pytest.fail(f"raised {error}")
    assert actual and all(isinstance(item, Violation) and item.message and item.code for item in actual)
    assert not any("/work" in str(item.file) for item in actual)


def test_where_there_is_no_table_one_clean_error_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as caught:
        check_table(LocalLogStore(tmp_path / "nothing"), deep=True)
    assert caught.value.code == "DELTA_TABLE_NOT_FOUND"
    (tmp_path / "_delta_log").mkdir()
    with pytest.raises(NotFound):
        check_table(LocalLogStore(tmp_path))


def test_two_spellings_of_one_path_are_no_fault(root: Path) -> None:
    """A checkpoint and a `remove` may escape more than the `add` did: the file is the same."""

    def spelt_otherwise(path: str) -> str:
        return path.replace("part", "%70art", 1)

    (checkpoint,) = root.glob("_delta_log/*.checkpoint.parquet")
    rows = pq.read_table(checkpoint)
    adds = rows.column("add").combine_chunks()
    paths = pa.array([None if path is None else spelt_otherwise(path) for path in adds.field("path").to_pylist()])
    fields = [paths if field.name == "path" else adds.field(field.name) for field in adds.type]
    twins = pa.StructArray.from_arrays(fields, fields=list(adds.type), mask=adds.is_null())
    pq.write_table(rows.set_column(rows.schema.get_field_index("add"), rows.schema.field("add"), twins), checkpoint)
    actions = [json.loads(line) for line in commits(root)[-1].read_text().splitlines()]
    for action in actions:
        if "remove" in action:
            action["remove"]["path"] = spelt_otherwise(action["remove"]["path"])
    commits(root)[-1].write_text("".join(json.dumps(action) + "\n" for action in actions))
    (root / "_delta_log" / "_last_checkpoint").unlink()
    assert check_table(LocalLogStore(root), deep=True) == []


def test_a_schema_that_is_spaced_otherwise_is_the_same_schema(root: Path) -> None:
    """As the table `parsed-stats` of the Rust kernel has it in its checkpoint."""
    actions = [json.loads(line) for line in commits(root)[0].read_text().splitlines()]
    for action in actions:
        if "metaData" in action:
            action["metaData"]["schemaString"] = json.dumps(json.loads(action["metaData"]["schemaString"]), indent=1)
    commits(root)[0].write_text("".join(json.dumps(action) + "\n" for action in actions))
    assert check_table(LocalLogStore(root)) == []


def test_a_checkpoint_of_another_table_is_reported_by_its_differences(whole: Path, tmp_path: Path) -> None:
    """As the table `parquet_row_group_skipping` of the Rust kernel has it: its checkpoint was edited, its commits were not."""
    root = Path(shutil.copytree(whole, tmp_path / "table"))
    text = commits(root)[0].read_text()
    identity = next(json.loads(line)["metaData"]["id"] for line in text.splitlines() if "metaData" in line)
    commits(root)[0].write_text(re.sub(r',"tahoe.seal":"[^"]*"', "", text.replace(identity, "another")))
    actual = [item for item in check_table(LocalLogStore(root)) if item.code == "checkpoint"]
    assert len(actual) == 1, check_table(LocalLogStore(root))
    assert actual[0].message.endswith("of the commits: id differ.") and actual[0].version == 2


class Counting(LocalLogStore):
    """Counts the requests of each kind."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.requests: Counter[str] = Counter()

    def get(self, name: str) -> bytes:
        self.requests["get"] += 1
        return super().get(name)

    def head(self, name: str) -> Entry | None:
        self.requests["head"] += 1
        return super().head(name)

    def list_from(self, folder: str, start: str = "") -> list[Entry]:
        self.requests["list"] += 1
        return super().list_from(folder, start)

    def walk(self, folder: str = "") -> Iterator[Entry]:
        self.requests["list"] += 1
        return super().walk(folder)

    def open_input(self, name: str) -> pa.NativeFile:
        self.requests["open"] += 1
        return super().open_input(name)


def work_of(root: Path, commits: int, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Requests, lines parsed and files counted of a check, with a checkpoint every five commits."""
    table = Table.create(root, pa.schema([("id", pa.int64())]))
    for number in range(commits - 1):
        table.append(pa.table({"id": [number]}))
        if number % 5 == 0:
            table.checkpoint()
    store = Counting(root)
    work = store.requests

    def counted(function: Callable[..., Any], name: str) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            work[name] += 1
            return function(*arguments)

        return call

    monkeypatch.setattr(reader, "_action", counted(reader._action, "lines parsed"))
    monkeypatch.setattr(replayed_log.Totals, "count", counted(replayed_log.Totals.count, "files summed"))
    monkeypatch.setattr(log_replay, "canonical_path", counted(log_replay.canonical_path, "paths decoded"))
    assert check_table(store) == []
    monkeypatch.undo()
    return work


def test_the_work_grows_with_the_log_and_not_with_its_square(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, three = (work_of(tmp_path / str(commits), commits, monkeypatch) for commits in (40, 120))
    for kind in first | three:
        assert three[kind] <= 3.3 * first[kind] + 5, f"{kind}: {first[kind]} for 40 commits, {three[kind]} for 120"


def test_a_file_of_many_vectors_is_read_once(tmp_path: Path) -> None:
    table = Table.create(tmp_path, pa.schema([("id", pa.int64())]), properties=VECTORS)
    table.append(pa.table({"id": range(200)}), max_rows_per_file=10)
    table.delete("id % 10 = 3")
    assert table.files()["deletionVector"].null_count == 0
    assert len(list(tmp_path.glob("**/*.bin"))) == 1
    with_vectors, store = Counting(tmp_path), Counting(tmp_path)
    assert check_table(with_vectors) == []
    assert check_table(store, deep=True) == []
    assert store.requests["get"] == with_vectors.requests["get"] + 1
    assert with_vectors.requests["get"] < 20, "fewer than there are vectors"


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize(
    ("member", "changed"),
    [('\\"minValues\\":{\\"id\\":10', '\\"minValues\\":{\\"id\\":18'), ('\\"numRecords\\":10', '\\"numRecords\\":18')],
    ids=["a bound", "the number of rows"],
)
def test_footers_that_a_read_refuses_are_reported(tmp_path: Path, member: str, changed: str, deep: bool) -> None:
    """As other writers leave a table: nothing but the data file itself contradicts the statistics in the log."""
    table = Table.create(tmp_path / "t", pa.schema([("id", pa.int64())]))
    for start in (0, 10):
        table.append(pa.table({"id": range(start, start + 10)}))
    for path in (tmp_path / "t/_delta_log").glob("*.crc"):
        path.unlink()
    for path in commits(tmp_path / "t"):
        path.write_text("".join(line for line in path.read_text().splitlines(True) if "commitInfo" not in line))
    assert Table(tmp_path / "t").check(deep=deep) == []
    text = commits(tmp_path / "t")[-1].read_text()
    assert member in text
    commits(tmp_path / "t")[-1].write_text(text.replace(member, changed))
    with pytest.raises(CorruptTable, match="part-"):
        Table(tmp_path / "t").to_arrow()
    actual = Table(tmp_path / "t").check(deep=deep)
    assert [each.code for each in actual] == ["statistics" if deep else "data"]
    assert actual[0].file is not None and actual[0].file.startswith("part-")


def test_of_a_large_table_the_newest_footers_are_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(live_file_rules, "check_footer", lambda task, *_: asked.append(task.name))
    monkeypatch.setattr(live_file_rules, "MOST_FOOTERS", 2)
    assert check_table(LocalLogStore(root)) == []
    newest = Table(root).files().column("path").to_pylist()[-2:]
    assert sorted(asked) == sorted(unquote(path) for path in newest)


def test_progress_of_a_check_is_reported(root: Path) -> None:
    progress = Reported()
    check_table(LocalLogStore(root), deep=True, progress=progress)
    last = {step: (done, total) for step, done, total in progress.reports}
    commits_there = len(commits(root))
    assert last == {
        "commits checked": (commits_there, commits_there),
        "deletion vectors checked": (1, 1),
        "data files read": (4, 4),
    }


def test_checking_again_reads_only_new_files(root: Path) -> None:
    store = Counting(root)
    check = TableCheck(store)
    assert check.violations() == []
    store.requests.clear()
    Table(root).append(pa.table({"id": [100], "part": ["z"]}))
    assert check.violations() == []
    assert store.requests["get"] <= 10, "the new commit and its checksum; a snapshot's own of six commits and a hint"
