"""The status of a table's Iceberg side as values, computed at one point in time. `handle` exposes it to users."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass

from tahoe.base.exceptions import TahoeError
from tahoe.base.html import html_pairs, html_part
from tahoe.protocol.iceberg_compat import uniform_is_enabled
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import LogStore
from tahoe.uniform.catalogs.pointers import CatalogQueries, Pointer, PointerFailure
from tahoe.uniform.external.conversion_record import ConversionRecord, read_record
from tahoe.uniform.external.external_changes import external_writer_error, find_external_changes, has_own_metadata
from tahoe.uniform.external.metadata_listing import CurrentMetadata, list_metadata, newest_metadata
from tahoe.uniform.formats.metadata import converted_timestamp_ms
from tahoe.uniform.formats.metadata_files import metadata_name, metadata_number
from tahoe.uniform.runtime import LastError, UniformRuntime


@dataclass(frozen=True, slots=True)
class CatalogStatus:
    """The status of a catalog.

    Args:
        name: ``<catalog>:<namespace>.<table>``.
        metadata_location: where the catalog points to: its own answer if it was asked and answered, else the record of the last
            conversion. None if the table is not registered, as far as is known.
        delta_version: the Delta version of that metadata; None if unknown.
        lag_versions: how many versions that is behind the newest version.
        answered: whether the catalog was asked and answered.
        last_error: why the catalog is behind, as far as this process knows.
    """

    name: str
    metadata_location: str | None
    delta_version: int | None
    lag_versions: int | None
    answered: bool
    last_error: LastError | None


@dataclass(frozen=True, slots=True)
class UniformStatus:
    """The status of the Iceberg side of a table.

    Args:
        table: the table's URL.
        enabled: whether UniForm is enabled on the table.
        delta_version: the newest version of the Delta table.
        iceberg_version: the Delta version that readers by path see; None if there is none.
        lag_versions: how many versions it is behind; None without an Iceberg side.
        lag_seconds: time between the commit shown and the newest commit.
        metadata_location: the metadata file that a reader by path opens.
        snapshot_id: Iceberg's id of the snapshot shown; None for a table without snapshots.
        catalogs: the catalogs that the table's property names.
        is_converting: whether this process has a running or queued conversion of the table.
        last_error: the last error of this process, or a problem with the metadata or a catalog; None if there is none.
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

    @property
    def facts(self) -> dict[str, object] | None:
        """The members with a plain value, for a report; None if UniForm is disabled."""
        plain: dict[str, object] = {name: value for name, value in asdict(self).items() if isinstance(value, str | int | float)}
        return plain if self.enabled else None

    def _repr_html_(self) -> str:
        return html_part(html_pairs({name: value for name, value in asdict(self).items() if value is not None}, title=self.table))


def status_of(
    store: LogStore,
    target: Snapshot,
    runtime: UniformRuntime,
    catalog_seconds: float | None = None,
    metadata_store: LogStore | None = None,
) -> UniformStatus:
    """Compute the status. Reads the folder ``metadata``, its newest file and the record of the last conversion.

    Args:
        target: the newest version of the Delta table.
        catalog_seconds: how long to wait for the catalogs to answer; None does not ask them.
        metadata_store: the storage of the Iceberg metadata; None if it is in the table's own folder.
    """
    iceberg = store if metadata_store is None else metadata_store
    pointers = runtime.pointers(store.url, target.metadata.configuration)
    observed = _observe(iceberg, target, runtime, () if catalog_seconds is None else pointers, catalog_seconds or 0.0)
    current = observed.current
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
        catalogs=tuple(_of_catalog(iceberg, pointer.name, observed, target.version) for pointer in pointers),
        is_converting=runtime.queue.is_busy(store.url),
        last_error=observed.wrong or runtime.errors.get(store.url) or next(iter(observed.catalog_errors.values()), None),
    )


@dataclass(frozen=True, slots=True)
class _Observation:
    """The observed state of the Iceberg side.

    Args:
        current: the metadata that readers by path see; None if there is none, or another writer has changed it.
        locations: catalog name → location, as far as is known.
        answered: the catalogs that were asked and answered.
        wrong: the error of the Iceberg side.
    """

    current: CurrentMetadata | None
    locations: Mapping[str, str | None]
    answered: Collection[str]
    catalog_errors: Mapping[str, LastError]
    wrong: LastError | None


def _observe(
    store: LogStore, target: Snapshot, runtime: UniformRuntime, queried: Sequence[Pointer], catalog_seconds: float
) -> _Observation:
    current, record, wrong = None, ConversionRecord(), None
    answers: dict[str, str | None] = {}
    errors = runtime.calls.failures(store.url)
    try:
        # Before the catalogs are queried: see `tahoe.uniform.convert.converter`.
        record = read_record(store)
        queries = CatalogQueries(queried)
        listing = list_metadata(store)
        answers, failed = queries.answers(catalog_seconds)
        errors |= {name: PointerFailure(target.version, error) for name, error in failed.items()}
        findings = find_external_changes(store, listing, answers, record)
        if all(finding.kind == "catalog" for finding in findings):  # readers by path are not affected
            current = listing.current()
            for name, location in answers.items():
                if current is not None and location == current.location:  # the pointer was moved after all
                    errors.pop(name, None)
        if findings:
            raise external_writer_error(store.url, findings, has_own_metadata=has_own_metadata(store, listing, record))
    except TahoeError as error:
        wrong = _error(target.version, error)
    catalog_errors = {name: _error(trouble.version, trouble.error) for name, trouble in errors.items()}
    return _Observation(current, {**record.catalogs, **answers}, answers.keys(), catalog_errors, wrong)


def _error(version: int, error: TahoeError) -> LastError:
    return LastError(version, error.code, error.message)


def _of_catalog(store: LogStore, name: str, observed: _Observation, newest: int) -> CatalogStatus:
    location = observed.locations.get(name)
    version = None if location is None else _version_of(store, location, observed.current)
    lag = None if version is None else max(newest - version, 0)
    return CatalogStatus(name, location, version, lag, name in observed.answered, observed.catalog_errors.get(name))


def _version_of(store: LogStore, location: str, current: CurrentMetadata | None) -> int | None:
    """Return the Delta version of metadata; None if it is not Tahoe's or no longer exists."""

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
