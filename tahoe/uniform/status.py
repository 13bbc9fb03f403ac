"""The status: how far the Iceberg side of a table is, as values, looked up at one moment. `handle` is what users ask for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tahoe.exceptions import TahoeError
from tahoe.protocol.iceberg_compat import uniform_is_enabled
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import LogStore
from tahoe.uniform.catalogs.pointers import Asked, Trouble
from tahoe.uniform.formats.metadata import converted_timestamp_ms
from tahoe.uniform.formats.metadata_files import metadata_name, metadata_number
from tahoe.uniform.others.foreign import find_foreign, foreign_writer, has_ours
from tahoe.uniform.others.look import Current, look_at, newest_metadata
from tahoe.uniform.others.record import ConversionRecord, read_record
from tahoe.uniform.runtime import LastError, UniformRuntime

__all__ = ["CatalogStatus", "UniformStatus", "status_of"]


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


def status_of(store: LogStore, target: Snapshot, runtime: UniformRuntime, catalog_seconds: float | None = None) -> UniformStatus:
    """The status at one moment. Reads the folder ``metadata``, its newest file and the note of the last conversion.

    Args:
        target: the newest version of the Delta table.
        catalog_seconds: how long to wait for the catalogs to say where they point to; None does not ask them.
    """
    pointers = runtime.pointers(store.url, target.metadata.configuration)
    seen = _look(store, target, runtime, Asked(() if catalog_seconds is None else pointers), catalog_seconds or 0.0)
    current = seen.current
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
        catalogs=tuple(_of_catalog(store, pointer.name, seen, target.version) for pointer in pointers),
        is_converting=runtime.queue.is_busy(store.url),
        last_error=seen.wrong or runtime.errors.get(store.url) or next(iter(seen.catalog_errors.values()), None),
    )


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a look at the Iceberg side showed.

    Args:
        current: what readers by path see; None where there is nothing, or another writer has changed it.
        locations: by catalog, where it points to, as far as is known.
        answered: the catalogs that were asked and gave an answer.
        wrong: what is wrong with the Iceberg side.
    """

    current: Current | None
    locations: Mapping[str, str | None]
    answered: Collection[str]
    catalog_errors: Mapping[str, LastError]
    wrong: LastError | None


def _look(store: LogStore, target: Snapshot, runtime: UniformRuntime, asked: Asked, catalog_seconds: float) -> _Seen:
    current, record, wrong = None, ConversionRecord(), None
    answers: dict[str, str | None] = {}
    errors = runtime.calls.troubles(store.url)
    try:
        record = read_record(store)
        look = look_at(store)
        answers, failed = asked.answers(catalog_seconds)
        errors |= {name: Trouble(target.version, error) for name, error in failed.items()}
        findings = find_foreign(store, look, answers, record)
        if all(finding.kind == "catalog" for finding in findings):  # readers by path are not concerned
            current = look.current()
            for name, location in answers.items():
                if current is not None and location == current.location:  # it was moved after all
                    errors.pop(name, None)
        if findings:
            raise foreign_writer(store.url, findings, has_ours=has_ours(store, look, record))
    except TahoeError as error:
        wrong = _error(target.version, error)
    catalog_errors = {name: _error(trouble.version, trouble.error) for name, trouble in errors.items()}
    return _Seen(current, {**record.catalogs, **answers}, answers.keys(), catalog_errors, wrong)


def _error(version: int, error: TahoeError) -> LastError:
    return LastError(version, error.code, error.message)


def _of_catalog(store: LogStore, name: str, seen: _Seen, newest: int) -> CatalogStatus:
    location = seen.locations.get(name)
    version = None if location is None else _version_of(store, location, seen.current)
    lag = None if version is None else max(newest - version, 0)
    return CatalogStatus(name, location, version, lag, name in seen.answered, seen.catalog_errors.get(name))


def _version_of(store: LogStore, location: str, current: Current | None) -> int | None:
    """The Delta version of metadata; None where it is not ours, or is no longer there."""
    if current is not None and location == current.location:
        return current.version
    number = metadata_number(location)
    if number is None or location != f"{store.url}/{metadata_name(number)}":
        return None
    try:
        named = newest_metadata(store, number)
    except TahoeError:
        return None
    return None if named is None else named.version
