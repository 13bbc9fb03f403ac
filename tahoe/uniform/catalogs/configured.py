"""The catalogs in which a table is registered besides its own folder: SQL, Hive metastore, Glue or REST.

The table property ``delta.universalFormat.config.iceberg.catalogs`` lists them, as comma-separated
``<catalog>:<namespace>.<table>``. It contains names only. Addresses and credentials come from PyIceberg's
configuration on the machine that converts (``~/.pyiceberg.yaml`` or ``PYICEBERG_CATALOG__…``), never from the table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tahoe.base.exceptions import InvalidRequest, NotFound, Unsupported
from tahoe.settings.property_settings import property_text
from tahoe.uniform.catalogs.catalog import Catalog, translated_errors
from tahoe.uniform.catalogs.catalog_entries import CatalogEntry, GlueCatalog, HiveCatalog, RestCatalog, SqlCatalog

CATALOGS_KEY = "delta.universalformat.config.iceberg.catalogs"
_NAMED = re.compile(r"([^:,\s]+):([^:,\s]+\.[^:,\s]+)")
_KINDS: Mapping[str, type[CatalogEntry]] = {
    "pyiceberg.catalog.sql": SqlCatalog,
    "pyiceberg.catalog.hive": HiveCatalog,
    "pyiceberg.catalog.glue": GlueCatalog,
    "pyiceberg.catalog.rest": RestCatalog,
}
"""By the module of PyIceberg's class, or the package that has it: importing a class would need the libraries of every kind."""


def catalog_names(configuration: Mapping[str, str]) -> list[str]:
    """Return the catalogs that the table's property names. Raises `InvalidRequest` for text that is not a list of names."""
    text = property_text(configuration, CATALOGS_KEY) or ""
    names = [part.strip() for part in text.split(",") if part.strip()]
    for name in names:
        if not _NAMED.fullmatch(name):
            raise InvalidRequest(
                f"The table property {CATALOGS_KEY} names '{name}', which is not <catalog>:<namespace>.<table>.",
                code="TAHOE_ICEBERG_CATALOG_NAME",
                property=CATALOGS_KEY,
            )
    return names


def catalog_properties(name: str) -> dict[str, str]:
    """Return the properties of a catalog in PyIceberg's configuration, with any credentials; nothing without PyIceberg or such a catalog."""
    try:
        from pyiceberg.utils.config import Config
    except ImportError:
        return {}
    return {key: str(value) for key, value in (Config().get_catalog_config(name) or {}).items()}


class NamedCatalog:
    """A table in a catalog of PyIceberg's configuration, loaded at the first call, so that an unreachable catalog delays no other.

    Args:
        catalogs: loads the catalog.
        catalog: the catalog's name in the configuration.
        identifier: ``<namespace>.<table>``.
    """

    def __init__(self, catalogs: ConfiguredCatalogs, catalog: str, identifier: str) -> None:
        self._catalogs = catalogs
        self._catalog = catalog
        self._identifier = identifier

    @property
    def name(self) -> str:
        """The name in the table property, ``<catalog>:<namespace>.<table>``."""
        return f"{self._catalog}:{self._identifier}"

    @property
    def swaps(self) -> bool:
        """Whether the kind of catalog compares and moves atomically."""
        return self._adapter().swaps

    def load(self) -> str | None:
        """Return the URL of the metadata file that the entry points to; None if there is no entry."""
        return self._adapter().load()

    def commit(self, old: str | None, new: str) -> bool:
        """Point to `new` if the entry still points to `old` (None: create the entry); return False if it does not."""
        return self._adapter().commit(old, new)

    def _adapter(self) -> Catalog:
        return adapter_of(self._catalogs.loaded(self._catalog), self._identifier)


class ConfiguredCatalogs:
    """The catalogs of PyIceberg's configuration. A loaded catalog is cached with its connections."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def named(self, name: str) -> Catalog:
        """Return the catalog ``<catalog>:<namespace>.<table>`` of PyIceberg's configuration, without connecting to it."""
        parts = _NAMED.fullmatch(name)
        if parts is None:
            raise InvalidRequest(
                f"'{name}' is not a table in a catalog. Write <catalog>:<namespace>.<table>.",
                code="TAHOE_ICEBERG_CATALOG_NAME",
                catalog=name,
            )
        return NamedCatalog(self, parts[1], parts[2])

    def loaded(self, name: str) -> Any:
        """Return PyIceberg's catalog of that name."""
        # Two threads may load the same catalog at once; both then use the first. No lock is taken: loading may call the catalog, and
        # hang.
        return self._loaded.get(name) or self._loaded.setdefault(name, _load(name))

    def forget(self) -> None:
        """Clear the cache: the configuration may have changed, or the process may be a forked child that shares no connections."""
        self._loaded = {}


def adapter_of(catalog: object, identifier: str) -> Catalog:
    """Return the pointer of one table in a PyIceberg catalog.

    Args:
        catalog: an instance of a PyIceberg catalog class.
        identifier: ``<namespace>.<table>``.

    Raises:
        Unsupported: Tahoe cannot move the pointer of this kind of catalog.
    """
    for parent in type(catalog).__mro__:
        kind = _KINDS.get(".".join(parent.__module__.split(".")[:3]))
        if kind is not None:
            return kind(catalog, identifier)
    raise Unsupported(
        f"Iceberg catalogs of the kind {type(catalog).__name__} are not supported by this version of Tahoe; "
        "use a SQL, Hive, Glue or REST catalog, or let readers go by path.",
        code="TAHOE_ICEBERG_CATALOG_UNSUPPORTED",
        catalog=identifier,
    )


def _load(name: str) -> Any:
    try:
        from pyiceberg.catalog import load_catalog
        from pyiceberg.exceptions import NotInstalledError
    except ImportError as error:
        raise Unsupported(
            "Iceberg catalogs need PyIceberg: pip install 'tahoe-delta[iceberg]'.", code="TAHOE_LIBRARY_MISSING", catalog=name
        ) from error
    with translated_errors(name):
        try:
            return load_catalog(name)
        except NotInstalledError as error:
            raise Unsupported(
                f"The catalog '{name}' needs a library that is not installed. Install tahoe-delta[hive] for a Hive metastore, "
                "tahoe-delta[glue] for AWS Glue.",
                code="TAHOE_LIBRARY_MISSING",
                catalog=name,
            ) from error
        except ValueError:
            # Not `from error`: PyIceberg's message may contain the catalog's URI, and the URI a password.
            raise NotFound(
                f"PyIceberg's configuration does not say how to reach the catalog '{name}'. "
                "Configure it in ~/.pyiceberg.yaml or in PYICEBERG_CATALOG__… variables.",
                code="TAHOE_ICEBERG_CATALOG_NOT_CONFIGURED",
                catalog=name,
            ) from None
