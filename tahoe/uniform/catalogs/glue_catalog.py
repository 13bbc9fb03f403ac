"""A table in AWS Glue: its entry is updated on condition that its version is unchanged."""

from __future__ import annotations

from typing import Any

from tahoe.base.exceptions import InvalidRequest
from tahoe.uniform.catalogs.catalog import register, translated_errors

__all__ = ["GlueCatalog"]

_LOCATION = "metadata_location"


class GlueCatalog:
    """Registers once through PyIceberg, then updates through its client with the entry's ``VersionId``, which Glue compares.

    Args:
        catalog: a `pyiceberg.catalog.glue.GlueCatalog`; its property ``glue.skip-archive`` applies here too.
        identifier: ``<database>.<table>``.
    """

    def __init__(self, catalog: Any, identifier: str) -> None:
        self._catalog = catalog
        self._identifier = identifier
        self._database, _, self._table = identifier.rpartition(".")

    @property
    def name(self) -> str:
        """The catalog and the table in it, ``<catalog>:<namespace>.<table>``."""
        return f"{self._catalog.name}:{self._identifier}"

    @property
    def swaps(self) -> bool:
        """Yes: Glue compares the version of the entry."""
        return True

    def load(self) -> str | None:
        """Return the URL of the metadata file that the entry points to; None if there is no entry."""
        with translated_errors(self.name):
            entry = self._entry()
            return None if entry is None else self._location_in(entry)

    def commit(self, old: str | None, new: str) -> bool:
        """Point to `new` if the entry still points to `old` (None: create the entry); return False if it does not."""
        with translated_errors(self.name):
            return register(self._catalog, self._identifier, new) if old is None else self._swap(old, new)

    def _swap(self, old: str, new: str) -> bool:
        from pyiceberg.catalog.glue import _construct_table_input
        from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
        from pyiceberg.serializers import FromInputFile

        entry = self._entry()
        if entry is None or self._location_in(entry) != old:
            return False
        io = self._catalog._load_file_io(location=new)
        metadata = FromInputFile.table_metadata(io.new_input(new))
        changed = _construct_table_input(self._table, new, metadata.properties, metadata, entry, old)
        try:
            self._catalog._update_glue_table(self._database, self._table, changed, entry["VersionId"])
        except (CommitFailedException, NoSuchTableError):
            return False
        return True

    def _entry(self) -> Any:
        from pyiceberg.exceptions import NoSuchTableError

        try:
            return self._catalog._get_glue_table(self._database, self._table)
        except NoSuchTableError:
            return None

    def _location_in(self, entry: Any) -> str:
        parameters = entry.get("Parameters", {})
        if parameters.get("table_type", "").lower() != "iceberg" or _LOCATION not in parameters:
            raise InvalidRequest(
                f"Glue has a table {self._identifier} that is not an Iceberg table. Choose another name in "
                "delta.universalFormat.config.iceberg.catalogs, or drop that table.",
                code="TAHOE_ICEBERG_CATALOG_NAME_TAKEN",
                catalog=self.name,
            )
        return str(parameters[_LOCATION])
