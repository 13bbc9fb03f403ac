"""How far the Iceberg side of a table is, as values: the table itself, and each catalog that it is kept in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tahoe.exceptions import TahoeError
from tahoe.protocol.iceberg_compat import uniform_is_enabled
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import LogStore
from tahoe.uniform.catalogs import pointers as calls
from tahoe.uniform.catalogs.pointers import Asked, Pointer, Trouble
from tahoe.uniform.convert import queue
from tahoe.uniform.formats.metadata import converted_timestamp_ms
from tahoe.uniform.formats.metadata_files import metadata_name, metadata_number
from tahoe.uniform.others.foreign import find_foreign, foreign_writer
from tahoe.uniform.others.look import Current, look_at, newest_metadata
from tahoe.uniform.others.record import ConversionRecord, read_record

__all__ = ["CatalogStatus", "LastError", "UniformStatus", "status_of"]


@dataclass(frozen=True, slots=True)
class LastError:
    """What went wrong last.

    Args:
        version: the Delta version that was to be shown.
    """

    version: int
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class CatalogStatus:
    """How far a catalog is.

    Args:
        name: ``<catalog>:<namespace>.<table>``.
        metadata_location: where it points to: its own answer, where it was asked and gave one; else what the last conversion noted. None
            where the table is not registered, as far as is known.
        delta_version: of that metadata; None where it cannot be told.
        lag_versions: how many versions that is behind the newest one.
        answered: whether it was asked and gave an answer.
        last_error: why it stays behind, as far as this process knows.
    """

    name: str
    metadata_location: str | None
    delta_version: int | None
    lag_versions: int | None
    answered: bool
    last_error: LastError | None


@dataclass(frozen=True, slots=True)
class UniformStatus:
    """How far the Iceberg side of a table is.

    Args:
        table: the table's URL.
        enabled: whether the table asks for UniForm.
        delta_version: the newest version of the Delta table.
        iceberg_version: the Delta version that readers by path see, None where there is none.
        lag_versions: how many versions it is behind; None where there is no Iceberg side.
        lag_seconds: time between the commit shown and the newest commit.
        metadata_location: what a reader by path opens.
        snapshot_id: Iceberg's id of what is shown; None for a table without snapshots.
        catalogs: those that the table's property names.
        is_converting: whether this process has a conversion of the table running or waiting.
        last_error: what went wrong last in this process, or what is wrong with the metadata or a catalog; None when all is well.
    """

    table: str
    enabled: bool
    delta_version: int
    iceberg_version: int | None
    lag_versions: int | None
    lag_seconds: float | None
    metadata_location: str | None
    snapshot_id: int | None
    catalogs: tuple[CatalogStatus, ...]
    is_converting: bool
    last_error: LastError | None


def status_of(
    store: LogStore, target: Snapshot, pointers: Sequence[Pointer], last_error: LastError | None, catalog_seconds: float | None
) -> UniformStatus:
    """The status at one moment. Reads the folder ``metadata``, its newest file and the note of the last conversion.

    Args:
        target: the newest version of the Delta table.
        pointers: of the catalogs that the table's property names.
        last_error: of the last conversion in this process.
        catalog_seconds: how long to wait for the catalogs to say where they point to; None does not ask them.
    """
    asked = Asked(() if catalog_seconds is None else pointers)
    current, record, wrong = None, ConversionRecord(), None
    answers: dict[str, str | None] = {}
    errors = calls.CALLS.troubles(store.url)
    try:
        record = read_record(store)
        look = look_at(store)
        answers, failed = asked.answers(catalog_seconds or 0.0)
        errors |= {name: Trouble(target.version, error) for name, error in failed.items()}
        findings = find_foreign(store, look, answers, record)
        if all(finding.kind == "catalog" for finding in findings):  # readers by path are not concerned
            current = look.current()
            for name, location in answers.items():
                if current is not None and location == current.location:  # it was moved after all
                    errors.pop(name, None)
        if findings:
            raise foreign_writer(store.url, findings)
    except TahoeError as error:
        wrong = _error(target.version, error)
    last_errors = {name: _error(trouble.version, trouble.error) for name, trouble in errors.items()}
    locations = {**record.catalogs, **answers}
    catalogs = tuple(
        _of_catalog(store, pointer.name, locations, current, target.version, pointer.name in answers, last_errors)
        for pointer in pointers
    )
    lag = None if current is None else max(target.version - current.version, 0)
    seconds = None
    if current is not None:
        seconds = max(target.timestamp_ms - converted_timestamp_ms(current.document) if lag else 0, 0) / 1000
    return UniformStatus(
        table=store.url,
        enabled=uniform_is_enabled(target.config.properties),
        delta_version=target.version,
        iceberg_version=current.version if current else None,
        lag_versions=lag,
        lag_seconds=seconds,
        metadata_location=current.location if current else None,
        snapshot_id=current.document.get("current-snapshot-id") if current else None,
        catalogs=catalogs,
        is_converting=queue.QUEUE.is_busy(store.url),
        last_error=wrong or last_error or next(iter(last_errors.values()), None),
    )


def _error(version: int, error: TahoeError) -> LastError:
    return LastError(version, error.code, error.message)


def _of_catalog(
    store: LogStore,
    name: str,
    locations: Mapping[str, str | None],
    current: Current | None,
    newest: int,
    answered: bool,
    errors: Mapping[str, LastError],
) -> CatalogStatus:
    location = locations.get(name)
    version = None if location is None else _version_of(store, location, current)
    lag = None if version is None else max(newest - version, 0)
    return CatalogStatus(name, location, version, lag, answered, errors.get(name))


def _version_of(store: LogStore, location: str, current: Current | None) -> int | None:
    """The Delta version of metadata; None where it is not ours, or is no longer there."""
    if current is not None and location == current.location:
        return current.version
    number = metadata_number(location)
    if number is None or location != f"{store.url}/{metadata_name(number)}":
        return None
    try:
        found = newest_metadata(store, number)
    except TahoeError:
        return None
    return None if found is None else found.version
