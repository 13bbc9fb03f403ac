"""The end of a conversion: pointers are moved to the new metadata, and unreferenced files are deleted."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from tahoe.base.exceptions import ForeignWriter, TahoeError
from tahoe.base.log_fields import about
from tahoe.store.log_store import LogStore
from tahoe.uniform.catalogs.catalog import PATH, Catalog, advance
from tahoe.uniform.catalogs.path_catalog import PathCatalog
from tahoe.uniform.catalogs.pointers import Pointer
from tahoe.uniform.convert.conversion import Conversion
from tahoe.uniform.external.conversion_record import ConversionRecord, write_record
from tahoe.uniform.external.metadata_listing import newest_metadata, newest_number
from tahoe.uniform.formats.metadata_files import metadata_number

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Publication:
    """A converted version to publish.

    Args:
        result: the conversion, whose metadata file is already in the table's folder.
        record: the record of the previous conversion, after the check for other writers.
        garbage: store names of files that only metadata before `result` references.
        take_over: also move pointers from metadata of another writer, and register again if somebody dropped the entry.
    """

    result: Conversion
    record: ConversionRecord
    garbage: Sequence[str] = ()
    take_over: bool = False


def publish(store: LogStore, pointers: Sequence[Pointer], publication: Publication, catalog_seconds: float) -> Conversion:
    """Move the pointers, then delete unreferenced files. Neither can undo the conversion.

    Args:
        catalog_seconds: how long to wait for each pointer to be moved; a slower one is moved when its catalog answers.

    Returns:
        The result, with the errors of catalogs whose pointers are out of date.
    """
    result, record = publication.result, publication.record
    errors: dict[str, TahoeError] = {}
    move = partial(_move, store=store, publication=publication)
    try:
        move(PathCatalog(store))
    except TahoeError as error:
        errors[PATH] = error
    location, take_over = result.metadata_location, publication.take_over
    moves = [(pointer, pointer.move(result.version, location, move, take_over=take_over)) for pointer in pointers]
    for pointer, future in moves:
        try:
            pointer.result(future, catalog_seconds)
        except TahoeError as error:
            errors[pointer.name] = error
    for name, why in errors.items():
        logger.error(
            "version %d of %s: the catalog %s is out of date: %s",
            result.version,
            store.url,
            name,
            why,
            extra=about(store.url, result.version, catalog=name),
        )
    # A pointer update that timed out may have succeeded since.
    registered = {
        pointer.name: registered_location for pointer in pointers if (registered_location := pointer.shown()) is not None
    }
    published = replace(
        record,
        number=max(record.number, metadata_number(location) or 0),
        catalogs={**record.catalogs, **registered},
    )
    if published != record:
        write_record(store, published)
    # Another writer's metadata in a catalog may build on ours, and reference files that ours no longer references.
    if not any(isinstance(why, ForeignWriter) for why in errors.values()):
        _delete(store, publication.garbage)
    return replace(result, catalog_errors=errors)


def _move(catalog: Catalog, store: LogStore, publication: Publication) -> None:
    """Point a catalog to the new metadata, or to newer metadata of a concurrent conversion: without compare-and-swap, that conversion's
    pointer may have been moved first."""
    location = publication.result.metadata_location
    is_known = catalog.name in publication.record.catalogs
    advance(catalog, location, store.url, take_over=publication.take_over, is_known=is_known)
    if not catalog.swaps and (newer := _newer(store, location)) is not None:
        advance(catalog, newer, store.url)


def _delete(store: LogStore, names: Sequence[str]) -> None:
    for name in names:
        try:
            store.delete(name)
        except TahoeError as error:
            logger.warning("%s/%s is unreferenced but could not be deleted: %s", store.url, name, error, extra=about(store.url))


def _newer(store: LogStore, location: str) -> str | None:
    """Return the URL of newer metadata of Tahoe's, put by a concurrent conversion; None if there is none."""
    try:
        number = newest_number(store)
        if number is None or number <= (metadata_number(location) or 0):
            return None
        current = newest_metadata(store, number)
    except TahoeError as error:
        logger.warning("%s: could not look for metadata newer than %s: %s", store.url, location, error, extra=about(store.url))
        return None
    return current.location if current is not None else None
