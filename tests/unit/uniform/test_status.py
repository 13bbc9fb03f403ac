"""The status as values: of the table, and of each catalog that it is kept in."""

from __future__ import annotations

import pytest

from tahoe.exceptions import StorageFailure
from tahoe.testing.uniform_log import DeltaLog
from tahoe.uniform.catalogs.pointers import Trouble
from tahoe.uniform.others.record import ConversionRecord, write_record
from tahoe.uniform.runtime import LastError, UniformRuntime
from tahoe.uniform.status import status_of

NAMED = {"delta.universalFormat.config.iceberg.catalogs": "c:a.b"}


@pytest.fixture
def log() -> DeltaLog:
    log = DeltaLog(configuration=NAMED)
    log.change(["a1"])
    log.convert()
    return log


def test_a_catalog_that_is_not_asked_shows_what_the_last_conversion_noted(log: DeltaLog) -> None:
    location = f"{log.store.url}/metadata/v1.metadata.json"
    write_record(log.store, ConversionRecord(1, {"c:a.b": location}))
    log.change(["a2"])
    found = status_of(log.store, log.snapshot(), UniformRuntime())
    (catalog,) = found.catalogs
    assert (found.iceberg_version, found.lag_versions, found.last_error) == (1, 1, None)
    assert (catalog.metadata_location, catalog.delta_version, catalog.lag_versions, catalog.answered) == (location, 1, 1, False)


def test_the_trouble_of_a_catalog_is_its_own_and_the_table_s_where_nothing_is_worse(log: DeltaLog) -> None:
    runtime = UniformRuntime()
    runtime.calls.note(log.store.url, "c:a.b", Trouble(1, StorageFailure("down")))
    found = status_of(log.store, log.snapshot(), runtime)
    assert found.last_error == found.catalogs[0].last_error == LastError(1, "TAHOE_STORAGE_FAILURE", "down")
    runtime.errors.put(log.store.url, LastError(1, "TAHOE_CORRUPT_TABLE", "worse"))
    assert status_of(log.store, log.snapshot(), runtime).last_error == LastError(1, "TAHOE_CORRUPT_TABLE", "worse")


def test_another_writer_s_hand_is_told_and_hides_what_readers_would_see(log: DeltaLog) -> None:
    log.store.put("metadata/v2.metadata.json", b"{}")
    found = status_of(log.store, log.snapshot(), UniformRuntime())
    assert found.iceberg_version is None
    assert found.last_error is not None and found.last_error.code == "TAHOE_UNIFORM_FOREIGN_WRITER"
