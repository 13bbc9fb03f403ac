"""The catalogs that a table is kept in next to its own folder: SQL, Hive metastore, Glue or REST, each kind in a module of its own.

Which catalogs those are is a table property, ``delta.universalFormat.config.iceberg.catalogs``: a comma-separated list
of ``<catalog>:<namespace>.<table>``. The property holds names alone. How to reach a catalog, credentials included, is PyIceberg's
configuration on the machine that converts (``~/.pyiceberg.yaml`` or ``PYICEBERG_CATALOG__…``), never the table's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from tahoe.exceptions import InvalidRequest, NotFound, Unsupported
from tahoe.uniform.catalogs.catalog import Catalog, answering

__all__ = ["CATALOGS_KEY", "NamedCatalog", "adapted", "catalog_names", "named_catalog"]

CATALOGS_KEY = "delta.universalformat.config.iceberg.catalogs"
_NAMED = re.compile(r"([^:,\s]+):([^:,\s]+\.[^:,\s]+)")


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
