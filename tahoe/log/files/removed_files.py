"""Actions of very many live files as columns: `LiveFiles`, their tombstones (`RemovedFiles`), their `add` actions in another commit
(`AddedFiles`), and a commit's actions with these among them.

An action as an object takes about a kilobyte, so a DELETE of a million files must not make an object of each of them. The sequences here
convert some thousand rows at a time while they are iterated over. Few files are lists and tuples of objects as everywhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar, overload

import pyarrow as pa

from tahoe.log.files.live_files import add_files, each_add_file
from tahoe.protocol.actions import Action, AddFile, RemoveFile

Item = TypeVar("Item")

_FEW = 1_000


class _Iterated(Sequence[Item]):
    """A sequence that is made for iteration: an index costs as much as the items before it."""

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | Sequence[Item]:
        if isinstance(index, slice):
            return tuple(self)[index]
        position = range(len(self))[index]
        return next(item for number, item in enumerate(self) if number == position)


@dataclass(frozen=True, slots=True, eq=False)
class LiveFiles(_Iterated[AddFile]):
    """Live files (`tahoe.log.replay.FILES_SCHEMA`)."""

    files: pa.Table

    def __len__(self) -> int:
        return int(self.files.num_rows)

    def __iter__(self) -> Iterator[AddFile]:
        return each_add_file(self.files)


@dataclass(frozen=True, slots=True, eq=False)
class RemovedFiles(_Iterated[RemoveFile]):
    """The tombstones of live files, whose rows are deleted.

    Args:
        deletion_timestamp: in milliseconds.
    """

    adds: LiveFiles
    deletion_timestamp: int

    def __len__(self) -> int:
        return len(self.adds)

    def __iter__(self) -> Iterator[RemoveFile]:
        return (add.remove(self.deletion_timestamp) for add in self.adds)


@dataclass(frozen=True, slots=True, eq=False)
class AddedFiles(_Iterated[AddFile]):
    """The `add` actions of a commit for files of another version, or of another table. No two are the same logical file.

    Args:
        change: returns the action of a file, the same each time.
    """

    files: LiveFiles
    change: Callable[[AddFile], AddFile]

    def __len__(self) -> int:
        return len(self.files)

    def __iter__(self) -> Iterator[AddFile]:
        return map(self.change, self.files)


@dataclass(frozen=True, slots=True, eq=False)
class _Joined(_Iterated[Item]):
    parts: tuple[Sequence[Item], ...]

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __iter__(self) -> Iterator[Item]:
        return chain.from_iterable(self.parts)


def adds_of(files: pa.Table) -> Sequence[AddFile]:
    """Return the `add` actions of live files: objects, or `LiveFiles` if they are many."""
    return add_files(files) if files.num_rows <= _FEW else LiveFiles(files)


def added(files: Sequence[AddFile], change: Callable[[AddFile], AddFile]) -> Sequence[AddFile]:
    """Return the `add` actions of a commit for files of another version or table: objects, or `AddedFiles` for `LiveFiles`."""
    return AddedFiles(files, change) if isinstance(files, LiveFiles) else [change(add) for add in files]


def joined(*parts: Sequence[Item]) -> Sequence[Item]:
    """Return one sequence of all items: a tuple, unless there are `RemovedFiles` or `AddedFiles` among them, which stay columns."""
    flat = tuple(each for part in parts for each in parts_of(part))
    if any(isinstance(part, _COLUMNS) for part in flat):
        return _Joined(flat)
    return tuple(chain.from_iterable(flat))


def parts_of(items: Sequence[Item]) -> tuple[Sequence[Item], ...]:
    """Return the sequences of which `joined` made one."""
    return items.parts if isinstance(items, _Joined) else (items,)


def single_actions(actions: Sequence[Action]) -> Iterable[Action]:
    """Yield the actions except `RemovedFiles` and `AddedFiles`, for readers that ignore files."""
    return chain.from_iterable(part for part in parts_of(actions) if not isinstance(part, _COLUMNS))


def adds_in(actions: Sequence[Action]) -> Sequence[AddFile]:
    """Return the `add` actions among the actions of a commit."""
    return _of_kind(actions, AddFile, AddedFiles)


def removes_in(actions: Sequence[Action]) -> Sequence[RemoveFile]:
    """Return the `remove` actions among the actions of a commit."""
    return _of_kind(actions, RemoveFile, RemovedFiles)


def _of_kind(actions: Sequence[Action], kind: type[Item], columns: type[Sequence[Item]]) -> Sequence[Item]:
    parts = (part for part in parts_of(actions) if isinstance(part, columns) or not isinstance(part, _COLUMNS))
    return joined(*(part if isinstance(part, columns) else [each for each in part if isinstance(each, kind)] for part in parts))


_COLUMNS = (RemovedFiles, AddedFiles)
