"""Commits are read exactly or refused precisely, one by one and many at once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tahoe.base.exceptions import CorruptTable, NotFound
from tahoe.log.files import json_columns
from tahoe.log.files.commits import parse_commit, read_commit, read_commits
from tahoe.log.files.json_columns import read_columns
from tahoe.log.files.paths import commit_name
from tahoe.log.segment import TailFile
from tahoe.log.tail import _newest_of_actions
from tahoe.protocol.actions import AddFile, CommitInfo, SetTransaction
from tahoe.store.log_store import Entry
from tahoe.testing.log_builder import METADATA, PROTOCOL, add, lines, memory_log, remove

NAME = commit_name(3)
URL = "memory://m/t"
ADD = '{"add":{"path":"a","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true%s}}'


def _parse(text: str | bytes) -> tuple[Any, ...]:
    return parse_commit(NAME, text if isinstance(text, bytes) else text.encode(), URL)


RIGHT = {
    "without a line break at its end": ADD % "",
    "with Windows line breaks": (ADD % "") + "\r\n" + '{"commitInfo":{}}\r\n',
    "with a byte order mark": "\ufeff" + ADD % "",
    "with blank lines": "\n\n  \n" + (ADD % "") + "\n\n",
    "with blanks inside": (ADD % "").replace(":", " : ").replace(",", " , "),
    "with an unknown member": ADD % ',"newMember":{"deep":[1,2,{"x":null}]}',
    "with an unknown action": '{"later":{"x":1}}\n' + ADD % "",
    "with null members": ADD % ',"stats":null,"tags":null,"deletionVector":null,"baseRowId":null',
    "with an escaped path": (ADD % "").replace('"a"', '"\\u0061"'),
    "with a very deep unknown action": '{"deep":' + "[" * 900 + "]" * 900 + "}\n" + ADD % "",
    "with the greatest number": ADD % ',"baseRowId":9223372036854775807',
    "with the least number": (ADD % "").replace('"modificationTime":1', '"modificationTime":-9223372036854775808'),
    "with an unknown member that no case makes a known one": ADD % ',"partition_values":{"p":"1"}',
}


@pytest.mark.parametrize("case", RIGHT)
def test_a_commit_is_read_right(case: str) -> None:
    actual = [action for action in _parse(RIGHT[case]) if isinstance(action, AddFile)]
    assert [(a.path, a.size, a.data_change) for a in actual] == [("a", 1, True)]


WRONG = {
    "no JSON": "neither",
    "a cut line": (ADD % "")[:40],
    "two objects in a line": (ADD % "") * 2,
    "an array": "[1]",
    "a number": "5",
    "a text": '"add"',
    "an action that is no object": '{"add":5}',
    "a number beyond 64 bits": ADD % ',"baseRowId":9223372036854775808',
    "a fraction for a number": ADD % ',"baseRowId":1.0',
    "a text for a flag": (ADD % "").replace("true", '"false"'),
    "a flag for a number": (ADD % "").replace('"size":1', '"size":true'),
    "a number for a path": (ADD % "").replace('"a"', "7"),
    "an object for statistics": ADD % ',"stats":{"numRecords":1}',
    "a member given twice": ADD % ',"size":2',
    "no path": (ADD % "").replace('"path":"a",', ""),
    "no size": (ADD % "").replace('"size":1,', ""),
    "half a surrogate pair": (ADD % "").replace('"a"', '"\\ud800"'),
    "a number for a partition value": (ADD % "").replace("{},", '{"p":1},'),
    "a vector without its size": ADD % ',"deletionVector":{"storageType":"u","pathOrInlineDv":"x","cardinality":1}',
    "a depth of 50,000 in an unknown member": ADD % (',"deep":' + '{"a":' * 50_000 + "1" + "}" * 50_000),
    "a depth of 100,000": '{"a":' * 100_000,
}


@pytest.mark.parametrize("case", WRONG)
def test_a_commit_is_refused_by_name_and_line(case: str) -> None:
    with pytest.raises(CorruptTable) as caught:
        _parse('{"commitInfo":{}}\n' + WRONG[case])
    assert NAME in caught.value.message and "line 2" in caught.value.message and URL in caught.value.message
    assert caught.value.facts == {"table": URL, "file": NAME, "version": 3}


@pytest.mark.parametrize("body", [b"", b"\n\n", b"\0" * 64, b"\xff\xfe", (ADD % "").encode() + b"\n" + b"\0" * 64])
def test_bytes_that_are_no_commit_are_refused(body: bytes) -> None:
    with pytest.raises(CorruptTable, match=NAME):
        _parse(body)


@pytest.fixture(params=[None, 1, 300])
def piece_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits are read as columns in one piece, line by line, or a few lines at a time."""
    if request.param is not None:
        monkeypatch.setattr(json_columns, "_PIECE_BYTES", request.param)


@pytest.mark.usefixtures("piece_bytes")
@pytest.mark.parametrize("case", [*RIGHT, *WRONG])
def test_columns_give_the_same_as_exact_reading_or_leave_it_to_it(case: str) -> None:
    good = lines([PROTOCOL, METADATA, add("x"), add("y", part=None), remove(add("z"))])
    bodies = [good, (RIGHT | WRONG)[case].encode(), lines([CommitInfo({"a": 1}), add("last", tags={"t": "1"})])]
    names = [commit_name(version) for version in range(3)]
    columns = read_columns(names, bodies, URL)
    if columns is None:
        return
    assert case in RIGHT, "what is wrong must be left to exact reading"
    store = memory_log().store
    files = [TailFile(i, i, Entry(name, 1, 1)) for i, name in enumerate(names)]
    exact = _newest_of_actions(store, files, bodies)
    assert columns.adds.drop_columns("partitionValues").equals(exact.adds.drop_columns("partitionValues"))
    assert columns.removes.equals(exact.removes)


@pytest.mark.usefixtures("piece_bytes")
@pytest.mark.parametrize(
    "values",
    [
        [{"p": "1"}, {"p": None}, {"p": ""}],
        [{"p": "2020-01-01", "q": "x"}, {"p": None, "q": "2020-01-01 10:00:00"}, {"q": None, "p": "z"}],
        [{}, {}, {}],
        [{"a.b": "1", "ü": '"\\'}, {"a.b": None, "ü": "\n"}, {"a.b": "3", "ü": "4"}],
    ],
)
def test_columns_give_partition_values_as_they_are(values: list[dict[str, str | None]]) -> None:
    files = [add(f"f{i}", partition_values=each, tags={f"t{i}": "1"}) for i, each in enumerate(values)]
    columns = read_columns([commit_name(0)], [lines(files)], URL)
    assert columns is not None
    assert [dict(each) for each in columns.adds.column("partitionValues").to_pylist()] == values
    assert columns.adds.column("tags").to_pylist() == [[(f"t{i}", "1")] for i in range(len(values))]


@pytest.mark.usefixtures("piece_bytes")
def test_lines_and_duplicates_are_those_of_the_commit_however_it_is_cut() -> None:
    bodies = [
        lines([CommitInfo({}), add("a"), SetTransaction("x", 1), add("b")]),
        lines([SetTransaction("x", 2), remove(add("a"))]),
    ]
    names = [commit_name(version) for version in range(2)]
    columns = read_columns(names, bodies, URL)
    assert columns is not None
    assert (columns.add_rows.to_pylist(), columns.add_files.to_pylist()) == ([0, 2], [0, 0])
    assert (columns.remove_rows.to_pylist(), columns.remove_files.to_pylist()) == ([4], [1])
    assert columns.others == (SetTransaction("x", 1), SetTransaction("x", 2))
    twice = lines([SetTransaction("x", 1), add("a"), add("b"), SetTransaction("x", 2)])
    assert read_columns(names, [bodies[0], twice], URL) is None


def test_a_commit_that_is_not_in_the_log_is_not_found() -> None:
    with pytest.raises(NotFound, match=commit_name(7)) as caught:
        read_commit(memory_log().store, 7)
    assert caught.value.code == "DELTA_VERSION_NOT_FOUND"


def test_a_commit_of_one_very_long_line_is_read() -> None:
    stats = json.dumps({"numRecords": 1, "x": "y" * 30_000_000})
    file = add("a", stats=stats)
    body = lines([file])
    assert parse_commit(NAME, body, URL) == (file,)


def test_a_commit_read_action_by_action_has_the_actions_and_the_errors_of_one_read_at_once() -> None:
    store = memory_log().store
    store.put(commit_name(0), lines([PROTOCOL, METADATA, add("a")]))
    store.put(commit_name(1), lines([add("b"), add("b")]))
    assert [(version, tuple(actions)) for version, actions in read_commits(store, [0])] == [(0, read_commit(store, 0))]
    ((_, actions),) = read_commits(store, [1])
    assert next(actions) == add("b")
    with pytest.raises(CorruptTable, match="more than one file action"):
        next(actions)
