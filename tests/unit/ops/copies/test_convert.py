"""CONVERT TO DELTA without Spark: Parquet files become a table where they are."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tahoe.api.table import Table
from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.exceptions import CorruptTable, InvalidRequest, NotFound
from tahoe.store.log_store import LogStore
from tahoe.store.object_store import open_store
from tahoe.testing.faulty_store import FaultyStore
from tests.variant_values import apart, decoded

ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "b", None]})


@pytest.fixture
def store() -> LogStore:
    return open_store(f"memory://{SYSTEM_CLOCK.uuid()}/folder")


def put(store: LogStore, name: str, rows: pa.Table = ROWS) -> None:
    sink = io.BytesIO()
    pq.write_table(rows, sink)
    store.put(name, sink.getvalue())


def of(store: LogStore) -> Table:
    return Table(store.url, store=store)


def test_files_of_several_schemas_and_folders(store):
    put(store, "day=2026-03-01/a.parquet")
    put(store, "day=2026-03-02/x/b.parquet", ROWS.append_column("more", pa.array([1, 2, 3])))
    put(store, "day=__HIVE_DEFAULT_PARTITION__/name with space%.parquet")
    for hidden in ("_SUCCESS", "_temporary/day=2026-03-09/c.parquet", ".crc/d", "day=2026-03-01/_metadata"):
        store.put(hidden, b"no Parquet")
    table = of(store)
    planned = table.convert_to_delta({"day": "date"}, dry_run=True)
    assert planned.version is None and planned.files == 3 and not table.exists()
    assert "would make a table of 3 files" in str(planned) and "partitioned by day" in str(planned)
    done = table.convert_to_delta({"day": "date"}, properties={"team": "me"})
    assert (done.version, done.files) == (0, 3)
    assert str(table.schema()) == "struct<id:long,name:string,more:long,day:date>"
    assert table.to_arrow().num_rows == 9 and table.to_arrow(filter="day = '2026-03-02' and more = 2").num_rows == 1
    assert table.check(deep=True) == []
    assert table.snapshot().metadata.configuration == {"team": "me"}
    commit = table.history()[0]
    parameters = {"numFiles": "3", "partitionedBy": '["day"]', "collectStats": "true", "sourceFormat": "parquet"}
    assert (commit["operation"], commit["operationParameters"]) == ("CONVERT", parameters)
    assert commit["operationMetrics"] == {"numConvertedFiles": "3"}
    table.delete("id = 1")
    assert table.to_arrow().num_rows == 6


def test_statistics_come_of_the_footers_or_not_at_all(store):
    put(store, "a.parquet")
    of(store).convert_to_delta(statistics=True)
    (stats,) = of(store).files()["stats"].to_pylist()
    assert json.loads(stats)["numRecords"] == 3 and json.loads(stats)["maxValues"]["id"] == 3
    other = open_store(f"memory://{SYSTEM_CLOCK.uuid()}/folder")
    put(other, "a.parquet")
    of(other).convert_to_delta(statistics=False)
    assert of(other).files()["stats"].to_pylist() == [None]
    assert of(other).to_arrow(filter="id = 2").num_rows == 1


def test_a_column_that_is_in_the_files_too_has_the_type_and_value_of_the_folder(store):
    put(store, "id=7/a.parquet", pa.table({"id": ["x"], "name": ["a"]}))
    of(store).convert_to_delta({"id": "long"})
    assert str(of(store).schema()) == "struct<id:long,name:string>"
    assert of(store).to_arrow().to_pylist() == [{"id": 7, "name": "a"}]


def test_an_existing_table_stays_unchanged(store):
    put(store, "a.parquet")
    assert of(store).convert_to_delta().version == 0
    again = of(store).convert_to_delta({"no": "date"})
    assert again.was_delta and again.version is None and "already" in str(again)
    assert of(store).version() == 0


def test_of_two_that_convert_side_by_side_one_finds_a_table(store):
    put(store, "a.parquet")

    class Slow(FaultyStore):
        def put_if_absent(self, name, data):
            if name.endswith(f"{0:020}.json") and not of(store).exists():
                of(store).convert_to_delta()
            return super().put_if_absent(name, data)

    done = of(Slow(store)).convert_to_delta()
    assert done.was_delta and of(store).version() == 0


def test_folders_that_cannot_become_a_table_are_refused_and_nothing_is_written(store):
    with pytest.raises(NotFound) as caught:
        of(store).convert_to_delta()
    assert caught.value.code == "DELTA_EMPTY_DIRECTORY"
    put(store, "a.parquet")
    with pytest.raises(InvalidRequest) as refused:
        of(store).convert_to_delta(properties={"delta.columnMapping.mode": "name"})
    assert refused.value.code == "DELTA_CONVERSION_UNSUPPORTED_COLUMN_MAPPING"
    with pytest.raises(InvalidRequest) as refused:
        of(store).convert_to_delta(statistics=False, properties={"delta.enableRowTracking": "true"})
    assert refused.value.code == "DELTA_CONVERT_TO_DELTA_ROW_TRACKING_WITHOUT_STATS"
    put(store, "b.parquet", pa.table({"a b": [1]}))
    with pytest.raises(InvalidRequest) as refused:
        of(store).convert_to_delta()
    assert refused.value.code == "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"
    store.put("b.parquet", b"PAR1 but no more")
    with pytest.raises(CorruptTable, match=r"b\.parquet"):
        of(store).convert_to_delta()
    put(store, "b.parquet", pa.table({}))
    store.delete("a.parquet")
    with pytest.raises(InvalidRequest) as refused:
        of(store).convert_to_delta()
    assert refused.value.code == "DELTA_FAILED_INFER_SCHEMA"
    assert not of(store).exists()


def test_row_ids_are_given_where_the_table_tracks_rows(store):
    put(store, "a.parquet")
    put(store, "b.parquet")
    of(store).convert_to_delta(properties={"delta.enableRowTracking": "true"})
    assert sorted(of(store).to_arrow(row_ids=True)["_row_id"].to_pylist()) == list(range(6))


def test_the_log_of_a_stream_says_which_files_count(store):
    for name in ("a", "b", "c", "stray"):
        put(store, f"{name}.parquet")

    def batch(number: str, *changes: tuple[str, str]) -> None:
        lines = [
            json.dumps({"path": f"{store.url}/{name}.parquet", "size": store.head(f"{name}.parquet").size, "isDir": False,
                        "modificationTime": 1, "blockReplication": 1, "blockSize": 1, "action": action})
            for name, action in changes
        ]  # fmt: skip
        store.put(f"_spark_metadata/{number}", "\n".join(["v1", *lines]).encode())

    batch("0", ("a", "add"))
    batch("9.compact", ("a", "add"), ("b", "add"))
    batch("10", ("c", "add"), ("a", "delete"))
    done = of(store).convert_to_delta()
    assert sorted(of(store).files()["path"].to_pylist()) == ["b.parquet", "c.parquet"] and done.files == 2


def test_a_log_of_a_stream_that_cannot_be_read_is_refused(store):
    put(store, "a.parquet")
    store.put("_spark_metadata/0", b"v2\n")
    with pytest.raises(CorruptTable, match="version v2"):
        of(store).convert_to_delta()
    assert of(store).convert_to_delta(use_stream_log=False).files == 1


def test_files_may_hold_variants_taken_apart(store):
    note = '{"type":"struct","fields":[{"name":"v","type":"variant","nullable":true,"metadata":{}}]}'
    trees = [("int64", 7), None, ("string", "x")]
    array = apart(trees, "int64", ())
    put(
        store,
        "a.parquet",
        pa.table([array], schema=pa.schema([("v", array.type)], {"org.apache.spark.sql.parquet.row.metadata": note})),
    )
    table = of(store)
    table.convert_to_delta()
    assert {"variantType", "variantShredding"} <= table.snapshot().protocol.reader_features
    shown = table.to_arrow()["v"].to_pylist()
    assert [None if item is None else decoded(item["metadata"], item["value"]) for item in shown] == trees
    assert table.check(deep=True, strict=True) == []
