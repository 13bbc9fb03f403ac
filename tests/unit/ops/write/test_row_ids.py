"""Rows keep their ids through UPDATE, MERGE and rewritten files, compared with a model: row id and version of each key."""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tahoe.api.table import Table
from tahoe.log.files.commits import read_commit
from tahoe.log.replay import add_files
from tahoe.protocol.actions import CommitInfo
from tahoe.protocol.row_tracking import materialized_columns

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string()), ("v", pa.int64())])
MODES = {
    "vectors": {"delta.enableDeletionVectors": "true"},
    "rewrite": {},
    "mapped": {"delta.columnMapping.mode": "id", "delta.enableDeletionVectors": "true"},
    "feed": {"delta.enableChangeDataFeed": "true"},
}


@pytest.fixture(params=MODES)
def table(request, tmp_path) -> Table:
    made = Table.create(
        tmp_path, SCHEMA, partition_by=["part"], properties={"delta.enableRowTracking": "true", **MODES[request.param]}
    )
    made.append(rows(range(10), "a"))
    made.append(rows(range(10, 20), "b"))
    return made


def rows(ids, part: str, v: int = 0) -> pa.Table:
    ids = list(ids)
    return pa.table({"id": ids, "part": [part] * len(ids), "v": [v] * len(ids)}, schema=SCHEMA)


def tracked(table: Table, version: int | None = None) -> dict[int, tuple[int, int]]:
    actual = Table(table.url).to_arrow(columns=["id"], row_ids=True, version=version)
    result = {row["id"]: (row["_row_id"], row["_row_commit_version"]) for row in actual.to_pylist()}
    assert len({row_id for row_id, _ in result.values()}) == actual.num_rows
    return result


def preserved(table: Table) -> str:
    (info,) = [action for action in read_commit(table.store, table.version()) if isinstance(action, CommitInfo)]
    return info.values["tags"]["delta.rowTracking.preserved"]


def test_an_update_keeps_ids_and_gives_its_version_to_the_rows_that_it_changes_alone(table):
    before = tracked(table)
    table.update({"v": "v + 1"}, "id in (3, 4, 15)")
    assert tracked(table) == {id: (row, 3 if id in (3, 4, 15) else version) for id, (row, version) in before.items()}
    table.update({"v": "v + 1"}, "id = 4")
    assert tracked(table)[4] == (before[4][0], 4)
    assert tracked(table)[3] == (before[3][0], 3)
    assert preserved(table) == "true"
    assert tracked(table, version=2) == before
    assert table.check() == []


def test_rows_that_move_to_another_partition_keep_their_ids(table):
    before = tracked(table)
    table.update({"part": "'b'"}, "id = 1")
    assert tracked(table)[1] == (before[1][0], 3)


def test_a_delete_leaves_the_other_rows_as_they_were(table):
    table.update({"v": "7"}, "id < 3")
    before = tracked(table)
    table.delete("id in (2, 5)")
    assert tracked(table) == {id: actual for id, actual in before.items() if id not in (2, 5)}
    assert preserved(table) == "true"
    assert table.check() == []


def test_a_merge_keeps_ids_of_updated_rows_and_numbers_inserted_ones(table):
    before = tracked(table)
    source = pa.concat_tables([rows([2, 30], "a", 9), rows([12, 31], "b", 9)])
    table.merge(source, "target.id = source.id").when_matched_update_all().when_not_matched_insert_all().execute()
    after = tracked(table)
    assert {id: after[id] for id in before} == {
        id: (row, 3 if id in (2, 12) else version) for id, (row, version) in before.items()
    }
    assert {after[id][1] for id in (30, 31)} == {3}
    assert min(after[id][0] for id in (30, 31)) > max(row for row, _ in before.values())
    assert preserved(table) == "true"
    assert table.check() == []


def test_replacing_some_rows_leaves_the_others_their_ids(table):
    before = tracked(table)
    table.overwrite(rows([3, 40], "a", 9), replace_where="id = 3 or id = 40")
    after = tracked(table)
    assert {id: actual for id, actual in after.items() if id not in (3, 40)} == {
        id: actual for id, actual in before.items() if id != 3
    }
    assert {after[id][1] for id in (3, 40)} == {3}
    assert preserved(table) == "true"


def test_the_columns_of_ids_are_hidden_and_have_no_statistics(table):
    table.update({"v": "5"}, "id = 3")
    names = materialized_columns(table.snapshot().config)
    assert table.to_arrow().column_names == ["id", "part", "v"]
    written = [add for add in add_files(table.snapshot().files()) if add.default_row_commit_version == 3]
    assert written
    for add in written:
        assert names.row_id not in add.stats and names.row_commit_version not in add.stats
        with table.store.open_input(add.path) as file:
            assert {names.row_id, names.row_commit_version} <= set(pq.read_schema(file).names)


def test_random_histories_keep_every_id(table):
    chance = random.Random(5)
    expected = tracked(table)
    for _ in range(12):
        version = table.version() + 1
        low = chance.randrange(40)
        meant = f"id >= {low} and id < {low + chance.randint(1, 8)}"
        chosen = [id for id in expected if eval(meant, {"id": id})]
        kind = chance.choice(["update", "delete", "merge", "append"])
        if kind == "append":
            table.append(rows([100 + version], "c"))
        elif kind == "merge":
            ids = sorted({chance.randrange(40) for _ in range(4)})
            source = rows(ids, "d", version)
            table.merge(source, "target.id = source.id").when_matched_update(
                {"v": "source.v"}
            ).when_not_matched_insert_all().execute()
            expected |= {id: (expected[id][0], version) for id in ids if id in expected}
        elif kind == "update" and chosen:
            table.update({"v": "v + 1"}, meant)
            expected |= {id: (expected[id][0], version) for id in chosen}
        elif chosen:
            table.delete(meant)
            expected = {id: actual for id, actual in expected.items() if id not in chosen}
        actual = tracked(table)
        fresh = {id: value for id, value in actual.items() if id not in expected}
        assert {id: value for id, value in actual.items() if id in expected} == expected
        assert all(value[1] == version for value in fresh.values())
        expected = actual
    assert table.check() == []


def test_long_decimals_are_found_after_an_update(tmp_path) -> None:
    """Statistics of a file whose rows keep their ids have every digit: a rounded bound would hide rows."""
    schema = pa.schema([("id", pa.int64()), ("x", pa.decimal128(38, 10))])
    value = Decimal("999999999999999999999999959.0000000001")
    table = Table.create(tmp_path / "t", schema, properties={"delta.enableRowTracking": "true"})
    table.append(pa.table({"id": [1, 2], "x": [value, value]}, schema=schema))
    table.update({"id": "id + 10"}, "id = 1")
    assert f'"x":{value}' in "".join(add.stats or "" for add in add_files(table.files()))
    assert table.to_arrow(filter=f"x = {value}").num_rows == 2
