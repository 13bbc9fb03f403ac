"""A table in a Hive metastore, in Iceberg's representation: parameters of an external table, changed under the metastore's lock."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from tahoe.base.exceptions import InvalidRequest
from tahoe.uniform.catalogs.catalog import translated_errors

__all__ = ["HiveCatalog"]

_LOCATION = "metadata_location"
_PREVIOUS = "previous_metadata_location"
_LONGEST_PARAMETER = 4000
"""Characters; older metastores' limit for a parameter. Longer properties appear in the metadata file only."""


class HiveCatalog:
    """Moves the pointer as Iceberg's own Hive catalog does: lock, check, alter, unlock.

    The alteration also names the expected value (``expected_parameter_key``), which metastores check from Hive 4 on; older metastores
    ignore it and rely on the lock. Columns follow the table's schema, so that Hive's own tools show it.
    Args:
        catalog: a `pyiceberg.catalog.hive.HiveCatalog`. With a metastore of Hive 2, ``hive.hive2-compatible = true`` must be among
            its properties for tables with timestamps.
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
        """Yes: by the metastore's lock."""
        return True

    def load(self) -> str | None:
        """Return the URL of the metadata file that the entry points to; None if there is no entry."""
        from hive_metastore.ttypes import NoSuchObjectException

        with translated_errors(self.name), _client_of(self._catalog) as client:
            try:
                return self._location_in(client.get_table(self._database, self._table))
            except NoSuchObjectException:
                return None

    def commit(self, old: str | None, new: str) -> bool:
        """Point to `new` if the entry still points to `old` (None: create the entry); return False if it does not."""
        with translated_errors(self.name):
            return self._register(new) if old is None else self._swap(old, new)

    def _register(self, new: str) -> bool:
        from hive_metastore.ttypes import AlreadyExistsException, Database

        entry = self._entry(new)
        with _client_of(self._catalog) as client:
            with suppress(AlreadyExistsException):
                client.create_database(Database(self._database, parameters={}))
            try:
                client.create_table(entry)
            except AlreadyExistsException:
                return False
        return True

    def _swap(self, old: str, new: str) -> bool:
        from hive_metastore.ttypes import LockState, MetaException, NoSuchObjectException, UnlockRequest
        from pyiceberg.exceptions import WaitingForLockException

        entry = self._entry(new)
        with _client_of(self._catalog) as client:
            lock = client.lock(self._catalog._create_lock_request(self._database, self._table))
            try:
                if lock.state == LockState.WAITING:
                    self._catalog._wait_for_lock(self._database, self._table, lock.lockid, client)
                current = client.get_table(self._database, self._table)
                if self._location_in(current) != old:
                    return False
                current.sd = entry.sd
                current.parameters = {**current.parameters, **entry.parameters, _PREVIOUS: old}
                client.alter_table_with_environment_context(self._database, self._table, current, _expected_location(old))
            except (NoSuchObjectException, WaitingForLockException):
                return False
            except MetaException as error:
                if "has been modified" in str(error.message):  # the expected parameter differed
                    return False
                raise
            finally:
                client.unlock(UnlockRequest(lockid=lock.lockid))
        return True

    def _entry(self, location: str) -> Any:
        """Return the metastore's description of the table with this metadata file."""
        from pyiceberg.serializers import FromInputFile
        from pyiceberg.table import StagedTable

        io = self._catalog._load_file_io(location=location)
        metadata = FromInputFile.table_metadata(io.new_input(location))
        staged = StagedTable((self._database, self._table), metadata, location, io, self._catalog)
        entry = self._catalog._convert_iceberg_into_hive(staged)
        entry.parameters = {key: value for key, value in entry.parameters.items() if len(value) <= _LONGEST_PARAMETER}
        return entry

    def _location_in(self, entry: Any) -> str:
        parameters = entry.parameters or {}
        if parameters.get("table_type", "").lower() != "iceberg" or _LOCATION not in parameters:
            raise InvalidRequest(
                f"The Hive metastore has a table {self._identifier} that is not an Iceberg table. Choose another name in "
                "delta.universalFormat.config.iceberg.catalogs, or drop that table.",
                code="TAHOE_ICEBERG_CATALOG_NAME_TAKEN",
                catalog=self.name,
            )
        return str(parameters[_LOCATION])


def _client_of(catalog: Any) -> Any:
    """Create a connection for each use: PyIceberg's client has a single one, which is not thread-safe."""
    return type(catalog)._create_hive_client(catalog.properties)


def _expected_location(old: str) -> Any:
    from hive_metastore.ttypes import EnvironmentContext

    return EnvironmentContext(
        properties={"DO_NOT_UPDATE_STATS": "true", "expected_parameter_key": _LOCATION, "expected_parameter_value": old}
    )
