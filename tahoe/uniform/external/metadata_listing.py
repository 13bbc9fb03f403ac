"""A table's folder ``metadata`` at one point in time: listed once, with its newest metadata file read and verified once.

The same listing serves to detect other writers, to report the progress of the Iceberg side, and to start the next conversion.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tahoe.base.exceptions import CorruptTable, ForeignWriter, NotFound
from tahoe.base.json_values import JsonObject
from tahoe.store.log_store import LogStore
from tahoe.uniform.formats import metadata as documents
from tahoe.uniform.formats.metadata_files import FOLDER, metadata_name, metadata_number, read_metadata

_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class CurrentMetadata:
    """The newest metadata file: its number, URL and content."""

    number: int
    location: str
    document: JsonObject

    @property
    def version(self) -> int:
        """The Delta version that it was converted from."""
        return documents.converted_version(self.document)


@dataclass(frozen=True, slots=True)
class MetadataListing:
    """The content of the folder when it was listed.

    Args:
        names: the names of all files in it.
        numbers: the numbers of the files named ``v<N>.metadata.json``, by any writer, highest first.
        newest: the file with the highest number; None if there is none, or if it is not as Tahoe wrote it.
        wrong: the error that opening that file raised.
    """

    names: tuple[str, ...]
    numbers: tuple[int, ...]
    newest: CurrentMetadata | None = None
    wrong: ForeignWriter | CorruptTable | None = None

    @property
    def number(self) -> int | None:
        """The highest number of any metadata file; None if there is none."""
        return self.numbers[0] if self.numbers else None

    def current(self) -> CurrentMetadata | None:
        """Return the newest metadata file, or None. Raises `wrong` if it is set."""
        if self.wrong is not None:
            raise self.wrong
        return self.newest


def list_metadata(store: LogStore) -> MetadataListing:
    """List the folder, and read the newest metadata file if there is one."""
    attempt = 1
    while True:
        names = tuple(store.names_from(FOLDER))
        numbers = tuple(sorted(_numbers(names), reverse=True))
        if not numbers:
            return MetadataListing(names, numbers)
        try:
            return MetadataListing(names, numbers, _opened(store, numbers[0]))
        except (ForeignWriter, CorruptTable) as error:
            return MetadataListing(names, numbers, wrong=error)
        except NotFound:  # another conversion expired it after the listing
            if attempt == _ATTEMPTS:
                raise
            attempt += 1


def newest_number(store: LogStore) -> int | None:
    """Return the highest number of any metadata file by any writer, from a listing of those files alone; None if there is
    none."""
    return max(_numbers(store.names_from(FOLDER, "v")), default=None)


def newest_metadata(store: LogStore, number: int | None = None) -> CurrentMetadata | None:
    """Return the newest metadata file, or None. Raises `ForeignWriter` if it is not as Tahoe wrote it.

    Args:
        number: the file's number, if known.
    """
    number = newest_number(store) if number is None else number
    return None if number is None else _opened(store, number)


def _opened(store: LogStore, number: int) -> CurrentMetadata:
    name = metadata_name(number)
    location = f"{store.url}/{name}"
    return CurrentMetadata(number, location, read_metadata(store.get(name), location))


def _numbers(names: Iterable[str]) -> Iterator[int]:
    return (number for name in names if name.endswith(".metadata.json") and (number := metadata_number(name)) is not None)
