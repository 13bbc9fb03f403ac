"""A table in an Iceberg REST catalog (Polaris, Lakekeeper, Unity Catalog, …): registered, and registered again over itself.

The protocol has no way to move a table to a metadata file that the client wrote but ``register`` with ``overwrite``, and that names
nothing that it expects. So the pointer is looked at before and after, and the converter looks once more for newer metadata when
it has moved one: of two conversions that meet, the one that moves the pointer last sees the newer file. A server
without ``overwrite`` is refused by name.
"""

from __future__ import annotations

from typing import Any

from tahoe.exceptions import Unsupported
from tahoe.uniform.catalogs.catalog import answering, registered

__all__ = ["RestCatalog"]


class RestCatalog:
    """Registered through PyIceberg, the first time and every time.

    Args:
        catalog: a `pyiceberg.catalog.rest.RestCatalog`.
        identifier: ``<namespace>.<table>``; a namespace of several levels has dots in it.
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
        """No: whoever moved the pointer looks for newer metadata."""
        return False

    def load(self) -> str | None:
        """The URL of the metadata file that the entry points to; None where there is no entry."""
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        with answering(self.name):
            try:
                return str(self._catalog.load_table(self._identifier).metadata_location)
            except (NoSuchTableError, NoSuchNamespaceError):
                return None

    def commit(self, old: str | None, new: str) -> bool:
        """Point to `new` if the entry still points to `old` (None: make the entry); False where it does not."""
        if self.load() != old:
            return False
        with answering(self.name):
            return self._register(new) if old is None else self._move(new)

    def _register(self, new: str) -> bool:
        from pyiceberg.exceptions import ForbiddenError

        try:
            return registered(self._catalog, self._identifier, new)
        except (NotImplementedError, ForbiddenError):
            raise self._cannot("does not let a table be registered (it may be for reading only)") from None

    def _move(self, new: str) -> bool:
        from pyiceberg.exceptions import BadRequestError, ForbiddenError, TableAlreadyExistsError

        try:
            self._catalog.register_table(self._identifier, new, overwrite=True)
        except (NotImplementedError, BadRequestError, ForbiddenError, TableAlreadyExistsError):
            raise self._cannot("does not let a registered table be moved to newer metadata (register with overwrite)") from None
        return self.load() == new

    def _cannot(self, what: str) -> Unsupported:
        return Unsupported(
            f"The REST catalog of {self.name} {what}. Use a catalog that does, a SQL, Hive or Glue catalog, or let readers go by path; "
            "'tahoe serve --iceberg' is a REST catalog over Delta tables that needs no registration.",
            code="TAHOE_ICEBERG_CATALOG_UNSUPPORTED",
            catalog=self.name,
        )
