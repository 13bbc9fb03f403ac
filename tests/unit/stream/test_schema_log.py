"""The files of a schema log: delta-spark's format read and written; errors for corrupt files and for another stream's."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tahoe.api.table import Table
from tahoe.base.exceptions import CorruptTable, InvalidRequest, TahoeError
from tahoe.protocol.actions import Metadata, Protocol
from tahoe.protocol.config import TableConfig
from tahoe.store.log_store import LogStore
from tahoe.stream.schema_log import SchemaLog, TrackedMetadata, log_folder

SCHEMA = '{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{}}]}'
BY_A = SCHEMA
CONFIG = TableConfig(Protocol(1, 2), Metadata("t", SCHEMA, ("a",), {"delta.appendOnly": "true"}), "memory://t")
OF_DELTA_SPARK = (
    "v1\n"
    '{"tableId":"t","deltaCommitVersion":3,"dataSchemaJson":'
    + json.dumps(SCHEMA)
    + ',"partitionSchemaJson":'
    + json.dumps(BY_A)
    + ","
    '"sourceMetadataPath":"file:/at/sources/0","tableConfigurations":{"delta.appendOnly":"true"},'
    '"protocolJson":"{\\"protocol\\":{\\"minReaderVersion\\":1,\\"minWriterVersion\\":2}}","previousMetadataSeqNum":0}'
)
TRACKED = TrackedMetadata("t", 3, SCHEMA, BY_A, "file:/at/sources/0", {"delta.appendOnly": "true"}, Protocol(1, 2), 0)


@pytest.fixture
def store(memory_url: str) -> LogStore:
    return Table(memory_url).store


def test_a_file_of_delta_spark_is_read_and_written_byte_for_byte() -> None:
    assert TrackedMetadata.parse(OF_DELTA_SPARK, "f") == TRACKED
    assert TRACKED.to_text() == OF_DELTA_SPARK
    assert TrackedMetadata.of(CONFIG, 3, "file:/at/sources/0").config(CONFIG) == CONFIG


def test_values_missing_from_an_old_writer_s_file_come_from_the_table() -> None:
    old = TrackedMetadata("t", 3, '{"type":"struct","fields":[]}', '{"type":"struct","fields":[]}', "s")
    assert TrackedMetadata.parse(old.to_text(), "f") == old
    read = old.config(CONFIG)
    assert (read.protocol, read.metadata.configuration) == (CONFIG.protocol, CONFIG.metadata.configuration)
    assert (read.schema.names, read.partition_columns) == ([], ())


def test_changes_of_metadata_and_of_protocol_are_distinguished() -> None:
    wider = Metadata("t", SCHEMA.replace('"a"', '"b"'))
    changed = TRACKED.with_changes(wider, None, 5, "memory://t")
    assert (changed.version, changed.protocol, changed.previous, changed.partition_columns) == (5, Protocol(1, 2), 0, ())
    assert changed.schema_string == wider.schema_string and changed.configuration == {}
    assert TRACKED.with_changes(None, Protocol(3, 7), 6, "memory://t").protocol == Protocol(3, 7)


@pytest.mark.parametrize(
    ("corruption", "message"),
    [
        (lambda text: "", "DESERIALIZE_FAILED"),
        (lambda text: "v2" + text[2:], "DESERIALIZE_FAILED"),
        (lambda text: text[:-9], "DESERIALIZE_FAILED"),
        (lambda text: "v1\n[]", "DESERIALIZE_FAILED"),
        (lambda text: text.replace('"deltaCommitVersion":3', '"deltaCommitVersion":true'), "DESERIALIZE_FAILED"),
        (lambda text: text.replace("minReaderVersion", "reader"), "DESERIALIZE_FAILED"),
        (lambda text: text.replace('{\\"protocol\\":{', '{\\"txn\\":{'), "DESERIALIZE_FAILED"),
        (lambda text: text.replace('"previousMetadataSeqNum":0', '"previousMetadataSeqNum":"0"'), "DESERIALIZE_FAILED"),
        (lambda text: text.replace('{"delta.appendOnly":"true"}', '["delta"]'), "DESERIALIZE_FAILED"),
        (lambda text: text.replace('\\"long\\"', '\\"longer\\"', 1), "PARSE_SCHEMA_FAILED"),
    ],
)
def test_a_corrupt_file_is_reported(store: LogStore, corruption: Callable[[str], str], message: str) -> None:
    store.put("0", corruption(OF_DELTA_SPARK).encode())
    with pytest.raises(CorruptTable, match="another 'schemaTrackingLocation'") as caught:
        SchemaLog(store, "memory://t")
    assert caught.value.code == f"DELTA_STREAMING_SCHEMA_LOG_{message}" and caught.value.facts["file"].endswith("/0")


def test_files_are_numbered_and_the_previous_one_is_read(store: LogStore) -> None:
    log = SchemaLog(store, "memory://t")
    assert (log.number, log.current, log.previous) == (-1, None, None)
    first, second, third = (TrackedMetadata.of(CONFIG, version, "s") for version in (1, 2, 3))
    log.add(first, replaces=True)
    log.add(first)
    assert (log.number, log.current, log.previous) == (0, first, None)
    log.add(second)
    assert log.previous == first
    log.add(third, replaces=True)  # replaces the second: its predecessor is the first
    store.put(".2.crc", b"of Hadoop")
    again = SchemaLog(store, "memory://t")
    assert (again.number, again.previous, again.current and again.current.previous) == (2, first, 0)
    store.delete("0")
    assert SchemaLog(store, "memory://t").previous is None


def test_two_streams_that_write_one_log_are_reported(store: LogStore) -> None:
    mine, same, third_log = (SchemaLog(store, "memory://t") for _ in range(3))
    entry = TrackedMetadata.of(CONFIG, 1, "file:/at/sources/0")
    mine.add(entry)
    same.add(entry)  # its own file, whose answer was lost
    with pytest.raises(InvalidRequest, match="streamingSourceTrackingId") as caught:
        third_log.add(TrackedMetadata.of(CONFIG, 1, "file:/at/sources/1"))
    assert caught.value.code == "DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT"


def test_the_folder_and_invalid_ids() -> None:
    assert log_folder("/at/s/", "t-1", None) == "/at/s/_schema_log_t-1"
    assert log_folder("s3a://b/at", "t", "x") == "s3a://b/at/_schema_log_t_x"
    for table_id, tracking_id in (("../../t", None), ("t", "../x"), ("t", "a\\b")):
        with pytest.raises(TahoeError, match="slash"):
            log_folder("/at", table_id, tracking_id)
