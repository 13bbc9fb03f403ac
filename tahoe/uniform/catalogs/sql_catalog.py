"""A table in a PyIceberg SQL catalog (SQLite, PostgreSQL, …): its row is updated by compare-and-swap."""

from __future__ import annotations

from typing import Any

from tahoe.uniform.catalogs.catalog import register, translated_errors

__all__ = ["SqlCatalog"]


class SqlCatalog:
    """Registers once through PyIceberg, then updates the row on condition that it is unchanged.

    PyIceberg itself moves a pointer only together with metadata that it writes.

    Args:
        catalog: a `pyiceberg.catalog.sql.SqlCatalog`.
        identifier: ``<namespace>.<table>``.
    """

    def __init__(self, catalog: Any, identifier: str) -> None:
        self._catalog = catalog
        self._identifier = identifier
        self._namespace, _, self._table = identifier.rpartition(".")

    @property
    def name(self) -> str:
        """The catalog and the table in it, ``<catalog>:<namespace>.<table>``."""
        return f"{self._catalog.name}:{self._identifier}"

    @property
    def swaps(self) -> bool:
        """Yes: one statement compares and moves."""
        return True

    def load(self) -> str | None:
        """Return the URL of the metadata file that the entry points to; None if there is no entry."""
        from sqlalchemy import text

        with translated_errors(self.name), self._catalog.engine.connect() as connection:
            location = connection.execute(text(_SELECT), self._key()).scalar()
        return None if location is None else str(location)

    def commit(self, old: str | None, new: str) -> bool:
        """Point to `new` if the entry still points to `old` (None: create the entry); return False if it does not."""
        with translated_errors(self.name):
            return register(self._catalog, self._identifier, new) if old is None else self._swap(old, new)

    def _key(self) -> dict[str, str]:
        return {"catalog": self._catalog.name, "namespace": self._namespace, "table": self._table}

    def _swap(self, old: str, new: str) -> bool:
        from sqlalchemy import text

        with self._catalog.engine.begin() as connection:
            return bool(connection.execute(text(_UPDATE), {**self._key(), "old": old, "new": new}).rowcount == 1)


_WHERE = "WHERE catalog_name = :catalog AND table_namespace = :namespace AND table_name = :table"
_SELECT = f"SELECT metadata_location FROM iceberg_tables {_WHERE}"
_UPDATE = (
    f"UPDATE iceberg_tables SET metadata_location = :new, previous_metadata_location = :old {_WHERE} AND metadata_location = :old"
)
