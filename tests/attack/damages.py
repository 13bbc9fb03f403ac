"""Corruption of a table's files by storage, crashes, people and programs: kinds of corruption, each with all of its cases.

A kind is a function from a table to a list of `Case`; `sample` takes some of them by seed, as many of each kind of file.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice, zip_longest
from typing import Any

from tests.attack.overlay import Damage
from tests.attack.victims import Victim, kind_of

__all__ = ["DAMAGES", "Case", "cases_of", "few_of_each_shape", "flips", "sample"]

STEP = 64
TEXT = ("commit", "compaction", "checksum", "hint", "V2 checkpoint (json)")
LINES = ("commit", "compaction", "V2 checkpoint (json)")


@dataclass(frozen=True)
class Case:
    """One damage to one table.

    Args:
        kind: of the file.
        what: a description, with the position.
        files: the changed files.
        damage: the kind of corruption.
        shape: the same for cases that are alike but for the file, or the line of it, that they hit; empty where none is like it.
    """

    kind: str
    what: str
    files: Damage = field(repr=False)
    damage: str = ""
    shape: str = ""


def truncations(victim: Victim) -> Iterator[Case]:
    """Every file cut at every 64th byte, and a byte before its end."""
    for name, data in victim.files.items():
        for end in sorted({*range(0, len(data), _step(victim, name)), max(len(data) - 1, 0)}):
            yield _case(name, f"cut at byte {end}", data[:end])


def zeros(victim: Victim) -> Iterator[Case]:
    """Every file whose tail was never written: zeros from every 64th byte on."""
    for name, data in victim.files.items():
        for end in range(0, len(data), _step(victim, name)):
            yield _case(name, f"zeros from byte {end}", data[:end] + bytes(len(data) - end))


def appended(victim: Victim) -> Iterator[Case]:
    """Every file with something behind its end."""
    for name, data in victim.files.items():
        for what, more in _TAILS.items():
            yield _case(name, f"with {what} at its end", data + more)
        yield _case(name, "twice", data + data)


def removed(victim: Victim) -> Iterator[Case]:
    """Every file gone; every commit gone with its checksum."""
    for name in victim.files:
        yield _case(name, "gone", None)
    commits = victim.of_kind("commit")
    for name in commits:
        which = "the newest commit" if name == commits[-1] else name
        yield Case("commit", f"{which} gone with its checksum", {name: None, _checksum(name): None})


def lost_lines(victim: Victim) -> Iterator[Case]:
    """Every line gone; all but one line gone; all lines from one on gone, with and without the newline before them."""
    for name in victim.of_kind(*LINES):
        lines = victim.files[name].splitlines(keepends=True)
        for number in range(len(lines)):
            yield _case(name, f"without line {number} ({_action(lines[number])})", b"".join(lines[:number] + lines[number + 1 :]))
            yield _case(name, f"only line {number} ({_action(lines[number])})", lines[number])
            yield _case(name, f"cut before line {number}", b"".join(lines[:number]))
        yield _case(name, "without its last newline", victim.files[name].rstrip(b"\n"))


def repeated_lines(victim: Victim) -> Iterator[Case]:
    """Every line twice; two lines in the other order; a line of another commit among them."""
    commits = victim.of_kind("commit")
    for name in victim.of_kind(*LINES):
        lines = victim.files[name].splitlines(keepends=True)
        for number, line in enumerate(lines):
            yield _case(name, f"line {number} ({_action(line)}) twice", b"".join([*lines[: number + 1], *lines[number:]]))
        yield _case(name, "lines in reverse", b"".join(reversed(lines)))
        for other in commits:
            for line in victim.files[other].splitlines(keepends=True):
                if other != name:
                    yield _case(name, f"with a line of {other[-12:]} ({_action(line)})", b"".join([*lines, line]))


def lost_fields(victim: Victim) -> Iterator[Case]:
    """Every member of every object, at any depth and inside of statistics, gone, null, misspelt, and of another type."""
    for name in victim.of_kind(*TEXT):
        lines = victim.files[name].splitlines()
        for number, line in enumerate(lines):
            value = json.loads(line)
            for path in _paths(value):
                place = ".".join(map(str, path))
                member = ".".join(part for part in path if isinstance(part, str))
                for what, change in _CHANGES.items():
                    changed = _Later(name, partial(_with_other_line, lines, number, value, path, change))
                    shape = f"{kind_of(name)} {member} {what}"
                    yield Case(kind_of(name), f"{name} {place} {what} in line {number}", changed, shape=shape)


def swaps(victim: Victim) -> Iterator[Case]:
    """Every two files of one kind with each other's bytes, and pairs of files of other kinds."""
    for first, second in _pairs(victim):
        files = {first: victim.files[second], second: victim.files[first]}
        yield Case(_kinds(first, second), f"{first} and {second} swapped", files)


def copies(victim: Victim) -> Iterator[Case]:
    """Every file with the bytes of another of its kind, and of some of other kinds."""
    for first, second in _pairs(victim):
        yield Case(_kinds(first, second), f"{second} over {first}", {first: victim.files[second]})
        yield Case(_kinds(first, second), f"{first} over {second}", {second: victim.files[first]})


def moved_with_checksums(victim: Victim) -> Iterator[Case]:
    """Two commits swapped together with their checksums; one of both over the other's."""
    commits = victim.of_kind("commit")
    for number, first in enumerate(commits):
        for second in commits[number + 1 :]:
            both = [
                (first, second),
                *[(a, b) for a, b in [(_checksum(first), _checksum(second))] if {a, b} <= victim.files.keys()],
            ]
            swapped = {a: victim.files[b] for a, b in both} | {b: victim.files[a] for a, b in both}
            yield Case("commit", f"{first} and {second} swapped with their checksums", swapped)
            yield Case("commit", f"{second} over {first} with its checksum", {a: victim.files[b] for a, b in both})
            yield Case("commit", f"{first} over {second} with its checksum", {b: victim.files[a] for a, b in both})


def flips(victim: Victim, chance: random.Random, each: int) -> Iterator[Case]:
    """One bit of one file the other way round, `each` times for each kind of file."""
    for kind in victim.kinds():
        names = victim.of_kind(kind)
        for _ in range(each):
            name = chance.choice(names)
            data = victim.files[name]
            bit = chance.randrange(8 * len(data))
            flipped = bytearray(data)
            flipped[bit // 8] ^= 1 << bit % 8
            yield replace(_case(name, f"bit {bit % 8} of byte {bit // 8} flipped", bytes(flipped)), damage="flipped")


def cases_of(damage: str, victim: Victim) -> list[Case]:
    """All cases of one kind of damage."""
    return [replace(case, damage=damage) for case in DAMAGES[damage](victim)]


DAMAGES: dict[str, Callable[[Victim], Iterable[Case]]] = {
    "truncated": truncations,
    "zeros": zeros,
    "appended": appended,
    "removed": removed,
    "lost lines": lost_lines,
    "repeated lines": repeated_lines,
    "lost fields": lost_fields,
    "swapped": swaps,
    "copied": copies,
    "moved": moved_with_checksums,
}
"""All kinds of damage but the flipped bits, which are drawn and not counted up."""


def sample(cases: Iterable[Case], chance: random.Random, most: int | None) -> list[Case]:
    """At most so many of these cases, of every kind of file by turns; all of them for None."""
    actual = list(cases)
    if most is None or len(actual) <= most:
        return actual
    chance.shuffle(actual)
    by_kind: dict[str, list[Case]] = defaultdict(list)
    for case in actual:
        by_kind[case.kind].append(case)
    turns = zip_longest(*by_kind.values())
    return list(islice((case for turn in turns for case in turn if case is not None), most))


def few_of_each_shape(cases: Iterable[Case], victim: Victim, chance: random.Random) -> list[Case]:
    """The cases without most of those that are alike: of each shape the first, the last and one between, by chance; of files that are
    damaged in another table too, one by chance."""
    alike: dict[str, list[Case]] = defaultdict(list)
    for number, case in enumerate(cases):
        alike[case.shape or str(number)].append(case)
    chosen: list[Case] = []
    for members in alike.values():
        if len(members) > 1 and members[0].kind in victim.damaged_elsewhere:
            chosen.append(chance.choice(members))
        else:
            between = [chance.choice(members[1:-1])] if len(members) > 2 else []
            chosen += [members[0], *between, *members[1:][-1:]]
    return chosen


class _Later(Mapping[str, bytes | None]):
    """One file whose new contents are made when somebody asks for them: of thousands of cases a sample takes a few."""

    def __init__(self, name: str, make: Callable[[], bytes]) -> None:
        self._name, self._make = name, make

    @cached_property
    def _data(self) -> bytes:
        return self._make()

    def __getitem__(self, name: str) -> bytes:
        if name != self._name:
            raise KeyError(name)
        return self._data

    def __iter__(self) -> Iterator[str]:
        return iter((self._name,))

    def __len__(self) -> int:
        return 1


def _step(victim: Victim, name: str) -> int:
    """Bytes from one place of damage to the next; more in files such as another table has them too, and which are damaged there."""
    return STEP * 8 if kind_of(name) in victim.damaged_elsewhere else STEP


def _case(name: str, what: str, data: bytes | None) -> Case:
    return Case(kind_of(name), f"{name} {what}", {name: data})


_TAILS = {
    "64 zeros": bytes(64),
    "garbage": b"\x8f\x02garbage\x00\xff" * 7,
    "a newline": b"\n",
    "half a line": b'{"add":{"path":"half',
    "an unknown action": b'{"unheard":{}}\n',
}


def _with_other_line(
    lines: Sequence[bytes], number: int, value: Any, path: _Path, change: Callable[[dict[str, Any], str], None]
) -> bytes:
    """The lines, one of which has one member of its JSON `value` changed."""
    text = json.dumps(_changed(value, path, change), separators=(",", ":"), ensure_ascii=False).encode()
    return b"\n".join([*lines[:number], text, *lines[number + 1 :]]) + b"\n"


def _action(line: bytes) -> str:
    return next(iter(json.loads(line)), "")


def _kinds(first: str, second: str) -> str:
    kinds = sorted({kind_of(first), kind_of(second)})
    return " and ".join(kinds)


def _checksum(commit: str) -> str:
    return commit.replace(".json", ".crc")


def _pairs(victim: Victim) -> Iterator[tuple[str, str]]:
    """All pairs of files of one kind, and for each two kinds the pair of their last files."""
    kinds = victim.kinds()
    for number, kind in enumerate(kinds):
        names = victim.of_kind(kind)
        pairs = [(first, second) for position, first in enumerate(names) for second in names[position + 1 :]]
        yield from (pair for pair in pairs if victim.files[pair[0]] != victim.files[pair[1]])
        for other in kinds[number + 1 :]:
            yield names[-1], victim.of_kind(other)[-1]


_Path = tuple[str | int, ...]


def _paths(value: Any, before: _Path = ()) -> Iterator[_Path]:
    """The ways to all members of a JSON value; text that is itself JSON is entered."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            value = json.loads(value)
        except ValueError:
            return
    if isinstance(value, dict):
        for key, member in value.items():
            yield (*before, key)
            yield from _paths(member, (*before, key))
    elif isinstance(value, list):
        for number, member in enumerate(value):
            yield from _paths(member, (*before, number))


def _changed(value: Any, path: _Path, change: Callable[[dict[str, Any], str], None]) -> Any:
    """The value with one member changed."""
    if isinstance(value, str):
        return json.dumps(_changed(json.loads(value), path, change), separators=(",", ":"), ensure_ascii=False)
    key, *rest = path
    if isinstance(value, list):
        assert isinstance(key, int)
        return [_changed(item, tuple(rest), change) if number == key else item for number, item in enumerate(value)]
    assert isinstance(key, str)
    actual = dict(value)
    if rest:
        actual[key] = _changed(actual[key], tuple(rest), change)
    else:
        change(actual, key)
    return actual


def _lose(members: dict[str, Any], key: str) -> None:
    del members[key]


def _forget(members: dict[str, Any], key: str) -> None:
    members[key] = None


def _misspell(members: dict[str, Any], key: str) -> None:
    members[key.swapcase() or "?"] = members.pop(key)


def _retype(members: dict[str, Any], key: str) -> None:
    members[key] = {"str": -1, "int": "x", "bool": "x", "dict": [], "list": {}, "NoneType": 7}.get(
        type(members[key]).__name__, "x"
    )


_CHANGES: dict[str, Callable[[dict[str, Any], str], None]] = {
    "gone": _lose,
    "null": _forget,
    "misspelt": _misspell,
    "of another type": _retype,
}
