"""The entry of one table in a PyIceberg catalog: SQL, AWS Glue, REST or Hive metastore. A kind of catalog reads its entry and moves it.

PyIceberg itself moves a pointer only together with metadata that it writes. So a table is registered once through PyIceberg, and then
each kind moves the entry with the means of its catalog.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Any

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.uniform.catalogs.catalog import translated_errors

_LOCATION = "metadata_location"
_PREVIOUS = "previous_metadata_location"
_LONGEST_PARAMETER = 4000
"""Characters; the limit of older Hive metastores for a parameter. Longer properties appear in the metadata file only."""


class CatalogEntry(ABC):
    """The entry of one table, a `tahoe.uniform.catalogs.catalog.Catalog`.

    Args:
        catalog: an instance of a PyIceberg catalog class.
        identifier: ``<namespace>.<table>``; dots separate the levels of a namespace.
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
        """Whether the catalog compares and moves atomically."""
        return True

    def load(self) -> str | None:
        """Return the URL of the metadata file that the entry points to; None if there is no entry."""
        with translated_errors(self.name):
            return self._location()

    def commit(self, old: str | None, new: str) -> bool:
        """Point to `new` if the entry still points to `old` (None: create the entry); return False if it does not."""
        with translated_errors(self.name):
            return self._register(new) if old is None else self._swap(old, new)

    @abstractmethod
    def _location(self) -> str | None: ...

    @abstractmethod
    def _swap(self, old: str, new: str) -> bool: ...

    def _register(self, new: str) -> bool:
        """Create the entry, and its namespace if necessary; return False if the name is taken."""
        from pyiceberg.exceptions import NamespaceAlreadyExistsError, TableAlreadyExistsError

        with suppress(NamespaceAlreadyExistsError):
            self._catalog.create_namespace(self._namespace)
        try:
            self._catalog.register_table(self._identifier, new)
        except TableAlreadyExistsError:
            return False
        return True

    def _location_in(self, parameters: dict[str, str], catalog: str) -> str:
        if parameters.get("table_type", "").lower() != "iceberg" or _LOCATION not in parameters:
            raise InvalidRequest(
                f"{catalog} has a table {self._identifier} that is not an Iceberg table. Choose another name in "
                "delta.universalFormat.config.iceberg.catalogs, or drop that table.",
                code="TAHOE_ICEBERG_CATALOG_NAME_TAKEN",
                catalog=self.name,
            )
        return str(parameters[_LOCATION])


class SqlCatalog(CatalogEntry):
    """A PyIceberg SQL catalog (SQLite, PostgreSQL, …): the row is updated on condition that it is unchanged."""

    def _location(self) -> str | None:
        from sqlalchemy import text

        with self._catalog.engine.connect() as connection:
            location = connection.execute(text(_SELECT), self._key()).scalar()
        return None if location is None else str(location)

    def _key(self) -> dict[str, str]:
        return {"catalog": self._catalog.name, "namespace": self._namespace, "table": self._table}

    def _swap(self, old: str, new: str) -> bool:
        from sqlalchemy import text

        with self._catalog.engine.begin() as connection:
            return bool(connection.execute(text(_UPDATE), {**self._key(), "old": old, "new": new}).rowcount == 1)


class GlueCatalog(CatalogEntry):
    """AWS Glue: the entry is updated through PyIceberg's client on condition that its ``VersionId``, which Glue compares, is unchanged.

    PyIceberg's property ``glue.skip-archive`` applies here too.
    """

    def _location(self) -> str | None:
        return self._location_of(self._entry())

    def _swap(self, old: str, new: str) -> bool:
        from pyiceberg.catalog.glue import _construct_table_input
        from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
        from pyiceberg.serializers import FromInputFile

        entry = self._entry()
        if self._location_of(entry) != old:
            return False
        io = self._catalog._load_file_io(location=new)
        metadata = FromInputFile.table_metadata(io.new_input(new))
        changed = _construct_table_input(self._table, new, metadata.properties, metadata, entry, old)
        try:
            self._catalog._update_glue_table(self._namespace, self._table, changed, entry["VersionId"])
        except (CommitFailedException, NoSuchTableError):
            return False
        return True

    def _entry(self) -> Any:
        from pyiceberg.exceptions import NoSuchTableError

        try:
            return self._catalog._get_glue_table(self._namespace, self._table)
        except NoSuchTableError:
            return None

    def _location_of(self, entry: Any) -> str | None:
        return None if entry is None else self._location_in(entry.get("Parameters", {}), "Glue")


class RestCatalog(CatalogEntry):
    """An Iceberg REST catalog (Polaris, Lakekeeper, Unity Catalog, …): registered, and re-registered over itself on every move.

    The protocol's only way to point a table to a metadata file that the client wrote is ``register`` with ``overwrite``, which has no
    precondition. So the pointer is read before and after, and the converter looks again for newer metadata after moving it: of two
    concurrent conversions, the one that moves the pointer last sees the newer file. A server without ``overwrite`` raises an error that
    names the missing capability.
    """

    @property
    def swaps(self) -> bool:
        """No: the caller looks for newer metadata after moving the pointer."""
        return False

    def commit(self, old: str | None, new: str) -> bool:
        """Point to `new` if the entry still points to `old`, as was read just before; return False if it does not."""
        return self.load() == old and super().commit(old, new)

    def _location(self) -> str | None:
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        try:
            return str(self._catalog.load_table(self._identifier).metadata_location)
        except (NoSuchTableError, NoSuchNamespaceError):
            return None

    def _register(self, new: str) -> bool:
        from pyiceberg.exceptions import ForbiddenError

        try:
            return super()._register(new)
        except (NotImplementedError, ForbiddenError):
            raise self._unsupported("does not allow tables to be registered (it may be read-only)") from None

    def _swap(self, old: str, new: str) -> bool:
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


class HiveCatalog(CatalogEntry):
    """A Hive metastore: moves the pointer as Iceberg's own Hive catalog does: lock, check, alter, unlock.

    The alteration also names the expected value (``expected_parameter_key``), which metastores check from Hive 4 on; older metastores
    ignore it and rely on the lock. Columns follow the table's schema, so that Hive's own tools show it. With a metastore of Hive 2,
    ``hive.hive2-compatible = true`` must be among the catalog's properties for tables with timestamps.
    """

    def _location(self) -> str | None:
        from hive_metastore.ttypes import NoSuchObjectException

        with _client_of(self._catalog) as client:
            try:
                return self._location_in(client.get_table(self._namespace, self._table).parameters or {}, "The Hive metastore")
            except NoSuchObjectException:
                return None

    def _register(self, new: str) -> bool:
        from hive_metastore.ttypes import AlreadyExistsException, Database

        entry = self._entry(new)
        with _client_of(self._catalog) as client:
            with suppress(AlreadyExistsException):
                client.create_database(Database(self._namespace, parameters={}))
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
            lock = client.lock(self._catalog._create_lock_request(self._namespace, self._table))
            try:
                if lock.state == LockState.WAITING:
                    self._catalog._wait_for_lock(self._namespace, self._table, lock.lockid, client)
                current = client.get_table(self._namespace, self._table)
                if self._location_in(current.parameters or {}, "The Hive metastore") != old:
                    return False
                current.sd = entry.sd
                current.parameters = {**current.parameters, **entry.parameters, _PREVIOUS: old}
                client.alter_table_with_environment_context(self._namespace, self._table, current, _expected_location(old))
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
        staged = StagedTable((self._namespace, self._table), metadata, location, io, self._catalog)
        entry = self._catalog._convert_iceberg_into_hive(staged)
        entry.parameters = {key: value for key, value in entry.parameters.items() if len(value) <= _LONGEST_PARAMETER}
        return entry


def _client_of(catalog: Any) -> Any:
    """Create a connection for each use: PyIceberg's client has a single one, which is not thread-safe."""
    return type(catalog)._create_hive_client(catalog.properties)


def _expected_location(old: str) -> Any:
    from hive_metastore.ttypes import EnvironmentContext

    return EnvironmentContext(
        properties={"DO_NOT_UPDATE_STATS": "true", "expected_parameter_key": _LOCATION, "expected_parameter_value": old}
    )


_WHERE = "WHERE catalog_name = :catalog AND table_namespace = :namespace AND table_name = :table"
_SELECT = f"SELECT metadata_location FROM iceberg_tables {_WHERE}"
_UPDATE = (
    f"UPDATE iceberg_tables SET metadata_location = :new, previous_metadata_location = :old {_WHERE} AND metadata_location = :old"
)
