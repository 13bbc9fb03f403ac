"""The `Catalog` protocol, a pointer to the newest metadata, and the functions that all kinds of catalogs share.

A pointer only moves forward, from one of Tahoe's metadata files to another. `path_catalog` is the pointer of readers by path;
`catalog_entries` has the other kinds of catalogs, `configured` loads them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from tahoe.base.exceptions import ForeignWriter, StorageFailure, TahoeError
from tahoe.uniform.formats.metadata_files import FOLDER, metadata_number

PATH = "path"
"""The name of the pointer for readers by path."""

_ATTEMPTS = 8


class Catalog(Protocol):
    """A pointer to the newest metadata file of one table."""

    @property
    def name(self) -> str:
        """The catalog's name for the status and for messages; without credentials."""

    @property
    def swaps(self) -> bool:
        """Whether `commit` compares and moves atomically. If not, the caller looks for newer metadata after moving the pointer."""

    def load(self) -> str | None:
        """Return the URL of the metadata file that the catalog points to; None if it does not know the table."""

    def commit(self, old: str | None, new: str) -> bool:
        """Point to `new` if the pointer is still `old` (None: register the table); return False if it is not."""


@contextmanager
def translated_errors(name: str) -> Iterator[None]:
    """Convert a catalog's errors to Tahoe's, by type alone: their text may contain secrets.

    Args:
        name: the catalog's name, for the message.
    """
    try:
        yield
    except TahoeError:
        raise
    except Exception as error:  # noqa: BLE001 - any error of a catalog's library becomes a StorageFailure
        raise StorageFailure(
            f"The catalog {name} failed ({type(error).__name__}); its pointer was not moved, as far as is known. "
            "Run table.uniform.sync() later.",
            catalog=name,
        ) from None  # the error itself must not be shown as the context


def advance(catalog: Catalog, location: str, root_url: str, *, take_over: bool = False, is_known: bool = False) -> None:
    """Point a catalog to `location`, unless it already points to newer metadata of Tahoe's.

    Args:
        root_url: the table's URL.
        take_over: also replace metadata of another writer in the table's own folder, and restore a dropped entry.
        is_known: the table was registered before: a missing entry means that somebody dropped it.

    Raises:
        ForeignWriter: the catalog points to metadata that is not Tahoe's, or no longer to the table; the pointer is not moved.
        StorageFailure: others moved the pointer on every attempt.
    """
    number = metadata_number(location) or 0
    for _ in range(_ATTEMPTS):
        old = catalog.load()
        if old is None and is_known and not take_over:
            raise _external_writer_error(catalog, root_url, "no longer has the table: somebody has dropped the entry")
        if old is not None:
            ours = old.rpartition("/")[0] == f"{root_url}/{FOLDER}"
            shown_number = metadata_number(old)
            if not ours or (shown_number is None and not take_over):
                raise _external_writer_error(
                    catalog,
                    root_url,
                    f"points to {old}, which UniForm of table {root_url} did not write: another writer has committed through the "
                    "catalog, or the name belongs to another table. Drop the entry from the catalog (keep its files)",
                )
            if shown_number is not None and shown_number >= number:
                return
        if catalog.commit(old, location):
            return
    raise StorageFailure(
        f"The catalog {catalog.name} was changed by others {_ATTEMPTS} times in a row; its pointer was not moved to {location}. "
        "Run table.uniform.sync() later.",
        code="TAHOE_ICEBERG_CATALOG_BUSY",
        catalog=catalog.name,
    )


def _external_writer_error(catalog: Catalog, root_url: str, problem: str) -> ForeignWriter:
    return ForeignWriter(
        f"The catalog {catalog.name} {problem}. To point it to the table again, run table.uniform.sync(rebuild=True).",
        catalog=catalog.name,
        table=root_url,
    )
