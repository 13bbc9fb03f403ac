"""Where readers find the newest metadata: a pointer that is moved forward, never back, and only from one file of ours to another.

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

from tahoe.exceptions import InvalidRequest, NotFound, StorageFailure, Unsupported
from tahoe.store.log_store import LogStore
from tahoe.uniform.guard import ForeignWriter
from tahoe.uniform.layout import FOLDER

__all__ = [
    "Catalog",
    "PathCatalog",
    "SqlCatalog",
    "advance",
    "catalog_names",
    "metadata_name",
    "metadata_number",
    "named_catalog",
]

CATALOGS_KEY = "delta.universalformat.config.iceberg.catalogs"
_METADATA = re.compile(r"v(\d+)\.metadata\.json")
_NAMED = re.compile(r"([^:,\s]+):([^:,\s]+\.[^:,\s]+)")
_ATTEMPTS = 8


class Catalog(Protocol):
    """A pointer to the newest metadata file of one table."""

    @property
    def name(self) -> str:
        """For the status and for messages; without credentials."""

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


def named_catalog(name: str) -> Catalog:
    """The catalog ``<catalog>:<namespace>.<table>``, reached as PyIceberg's configuration says."""
    found = _NAMED.fullmatch(name)
    if found is None:
        raise InvalidRequest(f"'{name}' names no table in a catalog. Write <catalog>:<namespace>.<table>.", catalog=name)
    return SqlCatalog(_loaded(found[1]), found[2])


@cache
def _loaded(name: str) -> Any:
    """PyIceberg's catalog of that name; kept, with its connections, for the life of the process."""
    try:
        from pyiceberg.catalog import load_catalog
    except ImportError as error:
        raise Unsupported("Iceberg catalogs need PyIceberg: pip install 'tahoe-delta[iceberg]'.", catalog=name) from error
    try:
        return load_catalog(name)
    except ValueError:
        # Not `from error`: PyIceberg's message may hold the catalog's URI, and that a password.
        raise NotFound(
            f"PyIceberg's configuration does not say how to reach the catalog '{name}'. "
            "Describe it in ~/.pyiceberg.yaml or in PYICEBERG_CATALOG__… variables.",
            code="TAHOE_ICEBERG_CATALOG_NOT_CONFIGURED",
            catalog=name,
        ) from None


def advance(catalog: Catalog, location: str, root_url: str, *, take_over: bool = False) -> None:
    """Point a catalog to `location`, unless it points to newer metadata of ours already.

    Args:
        root_url: the table's URL.
        take_over: also from metadata in the table's own folder that another writer left.

    Raises:
        ForeignWriter: the catalog points to metadata that is not ours; the pointer is left alone.
        StorageFailure: others moved the pointer again and again.
    """
    number = metadata_number(location) or 0
    for _ in range(_ATTEMPTS):
        old = catalog.load()
        if old is not None:
            ours = old.rpartition("/")[0] == f"{root_url}/{FOLDER}"
            found = metadata_number(old)
            if not ours or (found is None and not take_over):
                raise ForeignWriter(
                    f"The catalog {catalog.name} points to {old}, which UniForm of table {root_url} did not write: another "
                    "writer has committed through the catalog, or the name belongs to another table. Drop the entry from the "
                    "catalog (keep its files), then run table.uniform.sync().",
                    catalog=catalog.name,
                    table=root_url,
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


class PathCatalog:
    """Readers that go by path: ``metadata/version-hint.text`` holds the number of the newest metadata file.

    The hint is only a hint: what decides is the metadata file's name, which is put if absent. It never moves backward but for two
    conversions that end in the same moment, and the next one puts that right.
    """

    def __init__(self, store: LogStore) -> None:
        self._store = store

    @property
    def name(self) -> str:
        return "path"

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


class SqlCatalog:
    """A table in a PyIceberg SQL catalog: registered once through PyIceberg, then moved by compare-and-swap on its row.

    PyIceberg itself could move the pointer only by writing metadata of its own.

    Args:
        catalog: a `pyiceberg.catalog.sql.SqlCatalog`; another kind is `Unsupported`.
        identifier: ``<namespace>.<table>``.
    """

    def __init__(self, catalog: Any, identifier: str) -> None:
        from pyiceberg.catalog.sql import SqlCatalog as PyIcebergSqlCatalog

        if not isinstance(catalog, PyIcebergSqlCatalog):
            raise Unsupported(
                f"Iceberg catalogs of the kind {type(catalog).__name__} are not supported by this version of Tahoe; "
                "use a SQL catalog, or let readers go by path.",
                catalog=identifier,
            )
        self._catalog = catalog
        self._identifier = identifier
        self._namespace, _, self._table = identifier.rpartition(".")

    @property
    def name(self) -> str:
        return f"{self._catalog.name}:{self._identifier}"

    def load(self) -> str | None:
        from sqlalchemy import text

        with self._answering(), self._catalog.engine.connect() as connection:
            found = connection.execute(text(_SELECT), self._key()).scalar()
        return None if found is None else str(found)

    def commit(self, old: str | None, new: str) -> bool:
        with self._answering():
            return self._register(new) if old is None else self._swap(old, new)

    def _key(self) -> dict[str, str]:
        return {"catalog": self._catalog.name, "namespace": self._namespace, "table": self._table}

    def _register(self, location: str) -> bool:
        from pyiceberg.exceptions import NamespaceAlreadyExistsError, TableAlreadyExistsError

        with suppress(NamespaceAlreadyExistsError):
            self._catalog.create_namespace(self._namespace)
        try:
            self._catalog.register_table(self._identifier, location)
        except TableAlreadyExistsError:
            return False
        return True

    def _swap(self, old: str, new: str) -> bool:
        from sqlalchemy import text

        with self._catalog.engine.begin() as connection:
            return bool(connection.execute(text(_UPDATE), {**self._key(), "old": old, "new": new}).rowcount == 1)

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """The database's errors as Tahoe's, by their kind: their text may hold what is secret."""
        from sqlalchemy.exc import SQLAlchemyError

        try:
            yield
        except SQLAlchemyError as error:
            raise StorageFailure(
                f"The catalog {self.name} failed ({type(error).__name__}); its pointer was not moved. Run table.uniform.sync() later.",
                catalog=self.name,
            ) from None


_WHERE = "WHERE catalog_name = :catalog AND table_namespace = :namespace AND table_name = :table"
_SELECT = f"SELECT metadata_location FROM iceberg_tables {_WHERE}"
_UPDATE = (
    f"UPDATE iceberg_tables SET metadata_location = :new, previous_metadata_location = :old {_WHERE} AND metadata_location = :old"
)
