"""The status as values: of the table, and of each of its catalogs."""

from __future__ import annotations

import pytest

from tahoe.base.exceptions import StorageFailure
from tahoe.testing.uniform_log import DeltaLog
from tahoe.uniform.catalogs.pointers import PointerFailure
from tahoe.uniform.external.conversion_record import ConversionRecord, write_record
from tahoe.uniform.runtime import LastError, UniformRuntime
from tahoe.uniform.status import status_of

NAMED = {"delta.universalFormat.config.iceberg.catalogs": "c:a.b"}


@pytest.fixture
def log() -> DeltaLog:
    log = DeltaLog(configuration=NAMED)
    log.change(["a1"])
    log.convert()
    return log


def test_a_catalog_that_is_not_asked_shows_the_last_conversion_s_record(log: DeltaLog) -> None:
    location = f"{log.store.url}/metadata/v1.metadata.json"
    write_record(log.store, ConversionRecord(1, {"c:a.b": location}))
    log.change(["a2"])
    status = status_of(log.store, log.snapshot(), UniformRuntime())
    (catalog,) = status.catalogs
    assert (status.iceberg_version, status.lag_versions, status.last_error) == (1, 1, None)
    assert (catalog.metadata_location, catalog.delta_version, catalog.lag_versions, catalog.answered) == (location, 1, 1, False)


def test_a_catalog_s_error_is_also_the_table_s_unless_there_is_a_worse_one(log: DeltaLog) -> None:
    runtime = UniformRuntime()
    runtime.calls.note(log.store.url, "c:a.b", PointerFailure(1, StorageFailure("down")))
    status = status_of(log.store, log.snapshot(), runtime)
    assert status.last_error == status.catalogs[0].last_error == LastError(1, "TAHOE_STORAGE_FAILURE", "down")
    runtime.errors.put(log.store.url, LastError(1, "TAHOE_CORRUPT_TABLE", "worse"))
    assert status_of(log.store, log.snapshot(), runtime).last_error == LastError(1, "TAHOE_CORRUPT_TABLE", "worse")


def test_another_writer_is_reported_and_the_version_is_hidden(log: DeltaLog) -> None:
    log.store.put("metadata/v2.metadata.json", b"{}")
    status = status_of(log.store, log.snapshot(), UniformRuntime())
    assert status.iceberg_version is None
    assert status.last_error is not None and status.last_error.code == "TAHOE_UNIFORM_FOREIGN_WRITER"
