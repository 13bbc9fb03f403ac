"""Where readers find the newest metadata: a pointer that is moved forward, never back, and only from one file of ours to another.

PathCatalog    ``metadata/version-hint.text``, for readers that go by path; always
NamedCatalog   one of PyIceberg's configuration: SQL, Hive metastore, Glue or REST, each in a module of its own

Which catalogs a table is kept in is a table property, ``delta.universalFormat.config.iceberg.catalogs``: a comma-separated list
of ``<catalog>:<namespace>.<table>``. The property holds names alone. How to reach a catalog, credentials included, is PyIceberg's
configuration on the machine that converts (``~/.pyiceberg.yaml`` or ``PYICEBERG_CATALOG__…``), never the table's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, Protocol

from tahoe.exceptions import InvalidRequest, NotFound, StorageFailure, TahoeError, Unsupported
from tahoe.store.log_store import LogStore
from tahoe.uniform.convert.manifest_folder import FOLDER
from tahoe.uniform.others.guard import ForeignWriter

__all__ = [
    "Catalog",
    "NamedCatalog",
    "PATH",
    "PathCatalog",
    "adapted",
    "advance",
    "answering",
    "catalog_names",
    "metadata_name",
    "metadata_number",
    "named_catalog",
    "registered",
]

PATH = "path"
"""The name of the pointer of readers that go by path."""

CATALOGS_KEY = "delta.universalformat.config.iceberg.catalogs"
_METADATA = re.compile(r"v(\d+)\.metadata\.json")
_NAMED = re.compile(r"([^:,\s]+):([^:,\s]+\.[^:,\s]+)")
_ATTEMPTS = 8


class Catalog(Protocol):
    """A pointer to the newest metadata file of one table."""

    @property
    def name(self) -> str:
        """For the status and for messages; without credentials."""

    @property
    def swaps(self) -> bool:
        """Whether `commit` compares and moves in one step. Where it does not, whoever moved the pointer looks for newer metadata."""

    def load(self) -> str | None:
        """The URL of the metadata file that the catalog points to, None where it does not know the table."""

    def commit(self, old: str | None, new: str) -> bool:
        """Point to `new` if the pointer is still `old` (None: register the table); False where it is not."""


def metadata_name(number: int) -> str:
    """The store name of a metadata file."""
    return f"{FOLDER}/v{number}.metadata.json"


def metadata_number(location: str) -> int | None:
    """The number of a metadata file of ours, by its URL or name; None for another kind of file."""
    found = _METADATA.fullmatch(location.rpartition("/")[2])
    return int(found[1]) if found else None


def catalog_names(configuration: Mapping[str, str]) -> list[str]:
    """The catalogs that the table's property names. Raises `InvalidRequest` for text that names none."""
    text = next((value for key, value in configuration.items() if key.lower() == CATALOGS_KEY), "")
    names = [part.strip() for part in text.split(",") if part.strip()]
    for name in names:
        if not _NAMED.fullmatch(name):
            raise InvalidRequest(
                f"The table property {CATALOGS_KEY} names '{name}', which is not <catalog>:<namespace>.<table>.",
                property=CATALOGS_KEY,
            )
    return names


def named_catalog(name: str) -> NamedCatalog:
    """The catalog ``<catalog>:<namespace>.<table>``, reached as PyIceberg's configuration says. Nothing is asked of it yet."""
    found = _NAMED.fullmatch(name)
    if found is None:
        raise InvalidRequest(f"'{name}' names no table in a catalog. Write <catalog>:<namespace>.<table>.", catalog=name)
    return NamedCatalog(found[1], found[2])


def adapted(catalog: Any, identifier: str) -> Catalog:
    """The pointer of one table in a PyIceberg catalog.

    Args:
        catalog: an instance of PyIceberg's catalog class.
        identifier: ``<namespace>.<table>``.

    Raises:
        Unsupported: a kind of catalog whose pointer Tahoe cannot move.
    """
    # By the names of modules: importing a class would need the libraries of every kind.
    for module in (parent.__module__ for parent in type(catalog).__mro__):
        if module == "pyiceberg.catalog.sql":
            from tahoe.uniform.catalogs.sql_catalog import SqlCatalog

            return SqlCatalog(catalog, identifier)
        if module == "pyiceberg.catalog.hive":
            from tahoe.uniform.catalogs.hive_catalog import HiveCatalog

            return HiveCatalog(catalog, identifier)
        if module == "pyiceberg.catalog.glue":
            from tahoe.uniform.catalogs.glue_catalog import GlueCatalog

            return GlueCatalog(catalog, identifier)
        if module.startswith("pyiceberg.catalog.rest"):
            from tahoe.uniform.catalogs.rest_catalog import RestCatalog

            return RestCatalog(catalog, identifier)
    raise Unsupported(
        f"Iceberg catalogs of the kind {type(catalog).__name__} are not supported by this version of Tahoe; "
        "use a SQL, Hive, Glue or REST catalog, or let readers go by path.",
        catalog=identifier,
    )


@contextmanager
def answering(name: str) -> Iterator[None]:
    """A catalog's errors as Tahoe's, by their kind alone: their text may hold what is secret.

    Args:
        name: the catalog's, for the message.
    """
    try:
        yield
    except TahoeError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a catalog's library raises becomes a StorageFailure
        raise StorageFailure(
            f"The catalog {name} failed ({type(error).__name__}); its pointer was not moved, as far as is known. "
            "Run table.uniform.sync() later.",
            catalog=name,
        ) from None  # the error itself must not be shown as the context


def registered(catalog: Any, identifier: str, location: str) -> bool:
    """Whether the table is now registered in a catalog of PyIceberg's, its namespace made where there is none; False where the name
    is taken."""
    from pyiceberg.exceptions import NamespaceAlreadyExistsError, TableAlreadyExistsError

    with suppress(NamespaceAlreadyExistsError):
        catalog.create_namespace(identifier.rpartition(".")[0])
    try:
        catalog.register_table(identifier, location)
    except TableAlreadyExistsError:
        return False
    return True


@cache
def _loaded(name: str) -> Any:
    """PyIceberg's catalog of that name; kept, with its connections, for the life of the process."""
    try:
        from pyiceberg.catalog import load_catalog
        from pyiceberg.exceptions import NotInstalledError
    except ImportError as error:
        raise Unsupported("Iceberg catalogs need PyIceberg: pip install 'tahoe-delta[iceberg]'.", catalog=name) from error
    with answering(name):
        try:
            return load_catalog(name)
        except NotInstalledError as error:
            raise Unsupported(
                f"The catalog '{name}' needs a library that is not installed. Install tahoe-delta[hive] for a Hive metastore, "
                "tahoe-delta[glue] for AWS Glue.",
                catalog=name,
            ) from error
        except ValueError:
            # Not `from error`: PyIceberg's message may hold the catalog's URI, and that a password.
            raise NotFound(
                f"PyIceberg's configuration does not say how to reach the catalog '{name}'. "
                "Describe it in ~/.pyiceberg.yaml or in PYICEBERG_CATALOG__… variables.",
                code="TAHOE_ICEBERG_CATALOG_NOT_CONFIGURED",
                catalog=name,
            ) from None


def advance(catalog: Catalog, location: str, root_url: str, *, take_over: bool = False, is_known: bool = False) -> None:
    """Point a catalog to `location`, unless it points to newer metadata of ours already.

    Args:
        root_url: the table's URL.
        take_over: also from metadata in the table's own folder that another writer left, and where the entry was dropped.
        is_known: the table was registered before: where the catalog has no entry any more, somebody has dropped it.

    Raises:
        ForeignWriter: the catalog points to metadata that is not ours, or not to the table any more; it is left alone.
        StorageFailure: others moved the pointer again and again.
    """
    number = metadata_number(location) or 0
    for _ in range(_ATTEMPTS):
        old = catalog.load()
        if old is None and is_known and not take_over:
            raise _foreign(catalog, root_url, "no longer knows the table: somebody has dropped the entry")
        if old is not None:
            ours = old.rpartition("/")[0] == f"{root_url}/{FOLDER}"
            found = metadata_number(old)
            if not ours or (found is None and not take_over):
                raise _foreign(
                    catalog,
                    root_url,
                    f"points to {old}, which UniForm of table {root_url} did not write: another writer has committed through the "
                    "catalog, or the name belongs to another table. Drop the entry from the catalog (keep its files)",
                )
            if found is not None and found >= number:
                return
        if catalog.commit(old, location):
            return
    raise StorageFailure(
        f"The catalog {catalog.name} was changed by others {_ATTEMPTS} times in a row; its pointer was not moved to {location}. "
        "Run table.uniform.sync() later.",
        catalog=catalog.name,
    )


def _foreign(catalog: Catalog, root_url: str, what: str) -> ForeignWriter:
    return ForeignWriter(
        f"The catalog {catalog.name} {what}. To have it point to the table again, run table.uniform.sync(rebuild=True).",
        catalog=catalog.name,
        table=root_url,
    )


class PathCatalog:
    """Readers that go by path: ``metadata/version-hint.text`` holds the number of the newest metadata file.

    The hint is only a hint: what decides is the metadata file's name, which is put if absent. It may move backward for a moment
    where two conversions end together; the one that wrote it last then sees the newer file and puts that right.
    """

    def __init__(self, store: LogStore) -> None:
        self._store = store

    @property
    def name(self) -> str:
        return PATH

    @property
    def swaps(self) -> bool:
        return False

    def load(self) -> str | None:
        number = self._number()
        return None if number is None else f"{self._store.url}/{metadata_name(number)}"

    def commit(self, old: str | None, new: str) -> bool:
        if self.load() != old:
            return False
        self._store.put(_HINT, str(metadata_number(new)).encode())
        return True

    def _number(self) -> int | None:
        try:
            text = self._store.get(_HINT).decode().strip()
        except NotFound:
            return None
        return int(text) if text.isdecimal() else None


_HINT = f"{FOLDER}/version-hint.text"


class NamedCatalog:
    """A table in a catalog of PyIceberg's configuration, which is reached when it is asked: one that cannot be holds up no other.

    Args:
        catalog: its name in the configuration.
        identifier: ``<namespace>.<table>``.
    """

    def __init__(self, catalog: str, identifier: str) -> None:
        self._catalog = catalog
        self._identifier = identifier

    @property
    def name(self) -> str:
        return f"{self._catalog}:{self._identifier}"

    @property
    def swaps(self) -> bool:
        return self._adapted().swaps

    def load(self) -> str | None:
        return self._adapted().load()

    def commit(self, old: str | None, new: str) -> bool:
        return self._adapted().commit(old, new)

    def _adapted(self) -> Catalog:
        return adapted(_loaded(self._catalog), self._identifier)
