"""A table in an Iceberg REST catalog (Polaris, Lakekeeper, Unity Catalog, …): registered, and re-registered over itself.

The protocol's only way to point a table to a metadata file that the client wrote is ``register`` with ``overwrite``, which has no
precondition. So the pointer is read before and after, and the converter looks again for newer metadata after moving it: of two
concurrent conversions, the one that moves the pointer last sees the newer file. A server without ``overwrite`` raises an error that
names the missing capability.
"""

from __future__ import annotations

from typing import Any

from tahoe.base.exceptions import Unsupported
from tahoe.uniform.catalogs.catalog import register, translated_errors

__all__ = ["RestCatalog"]


class RestCatalog:
    """Registers through PyIceberg on every move.

    Args:
        catalog: a `pyiceberg.catalog.rest.RestCatalog`.
        identifier: ``<namespace>.<table>``; dots separate the levels of a namespace.
    """

    def __init__(self, catalog: Any, identifier: str) -> None:
        self._catalog = catalog
        self._identifier = identifier

    @property
    def name(self) -> str:
        """The catalog and the table in it, ``<catalog>:<namespace>.<table>``."""
        return f"{self._catalog.name}:{self._identifier}"

    @property
    def swaps(self) -> bool:
        """No: the caller looks for newer metadata after moving the pointer."""
        return False

    def load(self) -> str | None:
        """Return the URL of the metadata file that the entry points to; None if there is no entry."""
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        with translated_errors(self.name):
            try:
                return str(self._catalog.load_table(self._identifier).metadata_location)
            except (NoSuchTableError, NoSuchNamespaceError):
                return None

    def commit(self, old: str | None, new: str) -> bool:
        """Point to `new` if the entry still points to `old` (None: create the entry); return False if it does not."""
        if self.load() != old:
            return False
        with translated_errors(self.name):
            return self._register(new) if old is None else self._move(new)

    def _register(self, new: str) -> bool:
        from pyiceberg.exceptions import ForbiddenError

        try:
            return register(self._catalog, self._identifier, new)
        except (NotImplementedError, ForbiddenError):
            raise self._unsupported("does not allow tables to be registered (it may be read-only)") from None

    def _move(self, new: str) -> bool:
        from pyiceberg.exceptions import BadRequestError, ForbiddenError, TableAlreadyExistsError

        try:
            self._catalog.register_table(self._identifier, new, overwrite=True)
        except (NotImplementedError, BadRequestError, ForbiddenError, TableAlreadyExistsError):
            raise self._unsupported("cannot move a registered table to newer metadata (register with overwrite)") from None
        return self.load() == new

    def _unsupported(self, limitation: str) -> Unsupported:
        return Unsupported(
            f"The REST catalog of {self.name} {limitation}. Use another REST catalog, a SQL, Hive or Glue catalog, or let readers "
            "use the path; 'tahoe serve --iceberg' is a REST catalog over Delta tables that needs no registration.",
            code="TAHOE_ICEBERG_CATALOG_UNSUPPORTED",
            catalog=self.name,
        )
