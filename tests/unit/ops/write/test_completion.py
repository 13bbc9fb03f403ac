"""Identity columns through `Table`: writers without values get values, each once, beside any concurrent writer."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

from tahoe import Table
from tahoe.base.exceptions import ConcurrentAppendException, InvalidRequest, MetadataChangedException, TahoeError, Unsupported
from tahoe.ops.rows.insert import WriteOptions, stage_write
from tahoe.ops.tables.alter import stage_sync_identity
from tahoe.ops.write.completion import refuse_incomplete
from tahoe.protocol.column_values.identity import identity_metadata
from tahoe.schema.types import PrimitiveType, StructField, StructType
from tahoe.txn.transaction import Operation

LONG, STRING = PrimitiveType("long"), PrimitiveType("string")
MARK = "delta.identity.highWaterMark"
ALWAYS, BY_DEFAULT = identity_metadata(10, -3, allow_explicit=False), identity_metadata(1, 1, allow_explicit=True)


def rows(**columns):
    return pa.table(columns)


@pytest.fixture(params=["none", "name"])
def table(request, tmp_path):
    fields = (StructField("i.d", LONG, False, ALWAYS), StructField("k", LONG, True, BY_DEFAULT), StructField("s", STRING))
    schema = StructType(fields if request.param == "name" else (StructField("id", LONG, False, ALWAYS), *fields[1:]))
    properties = {"delta.columnMapping.mode": request.param, "delta.dataSkippingNumIndexedCols": "0"}
    return Table.create(tmp_path / "t", schema, properties=properties)


def marks(table):
    return [column.metadata.get(MARK) for column in table.schema()][:2]


def test_rows_without_the_columns_are_numbered_and_the_mark_moves(table):
    assert "identityColumns" in table.snapshot().config.features
    assert marks(table) == [None, None]
    table.append(rows(s=["a", "b"]))
    table.append(rows(s=["c"], k=[77]))
    table.append(pa.table({"s": ["d", "e"]}).to_reader(max_chunksize=1))
    actual = table.to_arrow().sort_by("s").to_pydict()
    assert list(actual.values()) == [[10, 7, 4, 1, -2], [1, 2, 77, 3, 4], ["a", "b", "c", "d", "e"]]
    assert marks(table) == [-2, 4]
    assert table.check() == []


def test_an_append_of_no_row_moves_nothing(table):
    table.append(pa.table({"s": pa.array([], pa.string())}))
    assert marks(table) == [None, None]


def test_values_of_its_own_only_for_a_column_by_default(table):
    name = table.schema().names[0]
    with pytest.raises(InvalidRequest) as caught:
        table.append(pa.table({name: [1], "s": ["x"]}))
    assert caught.value.code == "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED"
    for act in (lambda: table.update({f"`{name}`": "1"}), lambda: table.update({"k": "1"})):
        with pytest.raises(InvalidRequest) as caught:
            act()
        assert caught.value.code == "DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED"
    assert table.version() == 0


def test_writers_at_once_never_give_one_value_twice(table):
    def write(number):
        for _ in range(60):
            try:
                return Table(table.url).append(rows(s=[str(number)] * 3))
            except MetadataChangedException:
                continue
        raise AssertionError("never won")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(8)))
    actual = table.to_arrow()
    for place in (0, 1):
        assert len(actual.column(place).unique()) == len(actual) == 24


def test_only_who_numbers_rows_conflicts_with_who_numbers_rows(table):
    table.append(rows(s=["a", "b"]))
    deleting, numbering, giving = table.begin(), table.begin(), table.begin()
    numbered = stage_write(numbering, rows(s=["d"]), WriteOptions())
    table.append(rows(s=["c"]))
    giving.enforces = deleting.enforces = numbering.enforces
    table.commit(giving, Operation("WRITE"))  # it numbers nothing
    before = marks(table)
    with pytest.raises(MetadataChangedException):
        table.commit(numbering, numbered)
    assert marks(table) == before
    table.delete("s = 'a'")
    assert marks(table) == before


@pytest.mark.parametrize("properties", [{}, {"delta.enableChangeDataFeed": "true"}, {"delta.enableDeletionVectors": "true"}])
def test_merge_numbers_inserted_rows_and_the_feed_shows_the_same(tmp_path, properties):
    twice = StructField("twice", LONG, True, {"delta.generationExpression": "id * 2"})
    schema = StructType(
        (StructField("id", LONG, False, ALWAYS), StructField("k", LONG, True, BY_DEFAULT), StructField("s", STRING), twice)
    )
    table = Table.create(tmp_path / "t", schema, properties=properties)
    table.append(rows(s=["a", "b"]))
    merge = table.merge(rows(s=["b", "x", "y", "z"]), "target.s = source.s").when_matched_update({"s": "'B'"})
    merge = merge.when_not_matched_insert({"s": "source.s", "k": "99"}, condition="source.s = 'y'")
    merge.when_not_matched_insert({"s": "source.s"}).execute()
    actual = {row["s"]: row for row in table.to_arrow().to_pylist()}
    assert {s: row["id"] for s, row in actual.items() if s in ("a", "B")} == {"a": 10, "B": 7}
    assert sorted(row["id"] for row in actual.values()) == [-2, 1, 4, 7, 10]
    assert (actual["y"]["k"], {actual["x"]["k"], actual["z"]["k"]}) == (99, {3, 4})
    assert all(row["twice"] == 2 * row["id"] for row in actual.values())
    assert marks(table) == [-2, 4]
    if "delta.enableChangeDataFeed" in properties:
        changes = [row for row in table.changes(2, 2).to_pylist() if row["_change_type"] == "insert"]
        assert sorted((row["s"], row["id"], row["k"]) for row in changes) == sorted(
            (row["s"], row["id"], row["k"]) for s, row in actual.items() if s in "xyz"
        )


def test_all_columns_of_merge_but_the_numbered(table):
    name = table.schema().names[0]
    table.merge(rows(s=["n"], k=[5]), "target.s = source.s").when_not_matched_insert_all().execute()
    assert table.to_arrow().to_pylist() == [{name: 10, "k": 5, "s": "n"}]
    updating = table.merge(rows(s=["n"], k=[6]), "target.s = source.s").when_matched_update_all()
    with pytest.raises(InvalidRequest, match="IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED"):
        updating.execute()


def test_marks_survive_restore_clone_and_replaced_rows(table, tmp_path):
    table.append(rows(s=["a", "b"]))
    table.append(rows(s=["c"]))
    table.clone(tmp_path / "clone")
    table.restore(version=1)
    table.append(rows(s=["d"]))
    assert sorted(table.to_arrow().column(0).to_pylist()) == [1, 7, 10]
    table.overwrite(rows(s=["e"]))
    assert table.to_arrow().column(0).to_pylist() == [-2]
    clone = Table(tmp_path / "clone")
    clone.append(rows(s=["f"]))
    assert min(clone.to_arrow().column(0).to_pylist()) == 1


def test_sync_identity_reads_the_rows(table):
    name = table.schema().names[0]
    assert table.sync_identity("k") == 0  # no rows, no mark
    table.append(rows(s=["a"], k=[41]))
    assert table.sync_identity("k") == 2
    assert marks(table) == [10, 41]
    table.delete("k = 41")
    table.append(rows(s=["b"], k=[8]))
    assert table.sync_identity("k") == table.version()
    assert marks(table)[1] == 41
    table.sync_identity("k", may_lower=True)
    assert marks(table)[1] == 8
    table.append(rows(s=["c"]))
    assert sorted(table.to_arrow().column("k").to_pylist()) == [8, 9]
    with pytest.raises(InvalidRequest) as caught:
        table.sync_identity("s")
    assert caught.value.code == "DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN"
    with pytest.raises(TahoeError) as caught:
        table.change_column(f"`{name}`", nullable=True)
    assert caught.value.code == "DELTA_IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED"
    with pytest.raises(TahoeError) as caught:
        table.replace_columns(table.schema())
    assert caught.value.code == "DELTA_IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED"


def test_a_row_that_appears_while_sync_identity_looks_is_a_conflict(tmp_path):
    table = Table.create(tmp_path / "t", StructType((StructField("k", LONG, True, BY_DEFAULT), StructField("s", STRING))))
    table.append(rows(s=["a"], k=[5]))
    transaction = table.begin()
    operation = stage_sync_identity(transaction, transaction.existing(), ("k",))
    Table(table.url).append(rows(s=["x"], k=[9]))
    with pytest.raises(ConcurrentAppendException):
        table.commit(transaction, operation)


def test_a_stream_that_reads_goes_on_when_marks_move(table):
    table.append(rows(s=["a"]))
    (first,) = table.tail()
    table.append(rows(s=["b"]))
    (second,) = table.tail(position=first.position)
    assert [batch.to_arrow()["s"].to_pylist() for batch in (first, second)] == [["a"], ["b"]]


def test_who_cannot_number_says_so(table):
    with pytest.raises(Unsupported) as caught:
        refuse_incomplete(table.snapshot().config, ["s", "K"], "Somebody", "Do otherwise.")
    assert caught.value.code == "TAHOE_COLUMN_NOT_FILLED_IN"


@pytest.mark.parametrize("nested", [False, True])
def test_identity_where_no_writer_can_fill_it_in_is_refused(tmp_path, nested):
    column = StructField("id", LONG, True, ALWAYS)
    schema = StructType((StructField("s", StructType((column,))), StructField("x", LONG))) if nested else StructType((column,))
    if nested:
        with pytest.raises(Unsupported, match="identityColumns"):
            Table.create(tmp_path / "t", schema)
    else:
        assert Table.create(tmp_path / "t", schema).snapshot().protocol.writer_features


def test_the_iceberg_side_has_the_rows_and_one_schema_however_far_the_marks_move(tmp_path):
    schema = StructType((StructField("id", LONG, False, ALWAYS), StructField("s", STRING, True, {"CURRENT_DEFAULT": "'new'"})))
    properties = {
        "delta.feature.allowColumnDefaults": "supported",
        "delta.enableIcebergCompatV2": "true",
        "delta.universalFormat.enabledFormats": "iceberg",
    }
    table = Table.create(tmp_path / "t", StructType((*schema, StructField("n", LONG))), properties=properties)
    for number in range(3):
        table.append(rows(n=[number]))
    table.uniform.sync()
    newest = max((tmp_path / "t" / "metadata").glob("*.metadata.json"))
    assert len(json.loads(newest.read_text())["schemas"]) == 1
    actual = StaticTable.from_metadata(str(newest)).scan().to_arrow().sort_by("n").to_pydict()
    assert actual == {"id": [10, 7, 4], "s": ["new"] * 3, "n": [0, 1, 2]}
