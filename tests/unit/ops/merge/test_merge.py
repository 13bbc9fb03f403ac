"""MERGE: every clause, the rules between them, the files read, and the files written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tahoe import Table
from tahoe.base.exceptions import ConcurrentAppendException, InvalidRequest, NotFound, SchemaMismatch, Unsupported
from tahoe.log.files.commits import read_commit
from tahoe.ops.merge import match as merge_match
from tahoe.ops.merge.clauses import MergeBuilder
from tahoe.ops.merge.merge import stage_merge
from tahoe.protocol.actions import AddCDCFile, AddFile, RemoveFile
from tahoe.schema.types import PrimitiveType, StructField, StructType

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string()), ("amount", pa.float64())])
VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
KINDS = [{}, VECTORS, FEED, {**VECTORS, **FEED}]
ON = "target.id = source.id"
Rows = dict[int | None, tuple[str | None, float | None]]


def rows(values: Rows) -> pa.Table:
    parts, amounts = [part for part, _ in values.values()], [amount for _, amount in values.values()]
    return pa.table({"id": list(values), "part": parts, "amount": amounts}, schema=SCHEMA)


def found(table: Table, **asked: Any) -> Rows:
    return {row["id"]: (row["part"], row["amount"]) for row in table.to_arrow(**asked).to_pylist()}


def last(table: Table, kind: type) -> list[Any]:
    return [action for action in read_commit(table.store, table.version()) if isinstance(action, kind)]


BEFORE: Rows = {1: ("a", 1.0), 2: ("a", 2.0), 3: ("b", 3.0), 4: ("b", 4.0), 5: ("b", None)}
NEWS = rows({2: ("a", 20.0), 4: ("a", 40.0), 6: ("c", 60.0), 7: ("a", 70.0)})


def make(path: Path, properties: dict[str, str] | None = None) -> Table:
    table = Table.create(path / "t", SCHEMA, partition_by=["part"], properties=properties)
    table.append(rows(BEFORE))
    return table


@pytest.fixture(params=KINDS, ids=["rewrite", "vectors", "rewrite-feed", "vectors-feed"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    return make(tmp_path, request.param)


def test_an_upsert_updates_matched_rows_and_inserts_the_rest(table: Table) -> None:
    outcome = table.merge(NEWS, ON).when_matched_update_all().when_not_matched_insert_all().execute()
    assert (outcome.num_updated_rows, outcome.num_inserted_rows, outcome.num_deleted_rows) == (2, 2, 0)
    assert outcome.num_affected_rows == 4
    assert found(table) == BEFORE | {2: ("a", 20.0), 4: ("a", 40.0), 6: ("c", 60.0), 7: ("a", 70.0)}
    assert found(table, version=1) == BEFORE
    assert table.check() == []


def test_of_several_clauses_the_first_whose_condition_is_true_counts(table: Table) -> None:
    outcome = (
        table.merge(NEWS, ON)
        .when_matched_delete("target.amount = 2")
        .when_matched_update({"amount": "source.amount + target.amount"}, "source.amount > 0")
        .when_matched_update({"amount": "-1"})
        .when_not_matched_insert({"id": "id", "part": "'new'"}, "id = 6")
        .when_not_matched_insert({"id": "source.id * 10", "amount": "amount"})
        .when_not_matched_by_source_update({"amount": "amount * 100"}, "id = 1")
        .when_not_matched_by_source_delete("target.amount is null")
        .execute()
    )
    assert found(table) == {1: ("a", 100.0), 3: ("b", 3.0), 4: ("b", 44.0), 6: ("new", None), 70: (None, 70.0)}
    metrics = {
        name: outcome.metrics[f"numTargetRows{name}"]
        for name in (
            "Inserted",
            "Updated",
            "MatchedUpdated",
            "NotMatchedBySourceUpdated",
            "Deleted",
            "MatchedDeleted",
            "NotMatchedBySourceDeleted",
        )
    }
    assert list(metrics.values()) == [2, 2, 1, 1, 2, 1, 1]
    assert table.check() == []


def test_the_feed_shows_every_kind_of_change(table: Table) -> None:
    table.set_properties(FEED)
    version = (
        table.merge(NEWS, ON)
        .when_matched_delete("source.id = 2")
        .when_matched_update_all()
        .when_not_matched_insert_all("id = 6")
        .when_not_matched_by_source_update({"part": "'z'"}, "id = 5")
        .execute()
        .version
    )
    changes = sorted((r["id"], r["_change_type"], r["part"], r["amount"]) for r in table.changes(version).to_pylist())
    assert changes == [
        (2, "delete", "a", 2.0),
        (4, "update_postimage", "a", 40.0),
        (4, "update_preimage", "b", 4.0),
        (5, "update_postimage", "z", None),
        (5, "update_preimage", "b", None),
        (6, "insert", "c", 60.0),
    ]


def test_a_merge_that_only_inserts_is_an_append(table: Table) -> None:
    outcome = table.merge(NEWS, ON).when_not_matched_insert_all().execute()
    assert (outcome.num_inserted_rows, outcome.metrics["numTargetRowsCopied"]) == (2, 0)
    assert (len(last(table, RemoveFile)), len(last(table, AddCDCFile))) == (0, 0)
    assert found(table) == {6: ("c", 60.0), 7: ("a", 70.0)} | BEFORE
    assert all(add.deletion_vector is None for add in last(table, AddFile))


def test_an_append_only_table_takes_inserts_and_nothing_else(tmp_path: Path) -> None:
    table = make(tmp_path, {"delta.appendOnly": "true"})
    table.merge(NEWS, ON).when_not_matched_insert_all().execute()
    with pytest.raises(InvalidRequest) as caught:
        table.merge(NEWS, ON).when_matched_delete().when_not_matched_insert_all().execute()
    assert caught.value.code == "DELTA_CANNOT_MODIFY_APPEND_ONLY"


def test_nothing_to_do_is_no_commit(table: Table) -> None:
    assert table.merge(NEWS, ON).when_matched_delete("source.id > 100").execute().version is None
    assert table.merge(NEWS.slice(0, 0), ON).when_matched_update_all().when_not_matched_insert_all().execute().version is None
    assert table.version() == 1


def test_a_source_of_no_rows_leaves_every_row_without_a_match(table: Table) -> None:
    table.merge(NEWS.slice(0, 0), ON).when_not_matched_by_source_delete("id < 3").execute()
    assert set(found(table)) == {3, 4, 5}


def test_keys_that_are_null_match_nothing(table: Table) -> None:
    nulls = rows({None: ("n", 0.0)})
    table.merge(nulls, ON).when_matched_delete().when_not_matched_insert_all().execute()
    table.merge(nulls, ON).when_matched_delete().when_not_matched_insert({"id": "9"}).execute()
    assert found(table) == BEFORE | {None: ("n", 0.0), 9: (None, None)}
    table.merge(nulls, "target.id <=> source.id").when_matched_delete().execute()
    assert found(table) == BEFORE | {9: (None, None)}


def test_floating_point_keys_match_as_on_spark(tmp_path: Path) -> None:
    values = pa.table({"x": [0.0, float("nan"), 1.0], "n": ["zero", "nan", "one"]})
    table = Table.create(tmp_path / "t", values.schema)
    table.append(values)
    source = pa.table({"x": [-0.0, float("nan")], "n": ["", ""]})
    table.merge(source, "target.x = source.x").when_matched_delete().execute()
    assert table.to_arrow()["n"].to_pylist() == ["one"]


@pytest.mark.parametrize(
    "on", ["target.id < source.id and source.id < target.id + 2", "target.id + 1 = source.id", "false", "true"]
)
def test_any_condition_may_join(tmp_path: Path, on: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_match, "PAIRS_AT_ONCE", 2)
    table = make(tmp_path)
    meant = {
        "target.id < source.id and source.id < target.id + 2": {1, 3, 5},
        "target.id + 1 = source.id": {1, 3, 5},
        "false": set(),
        "true": set(BEFORE),
    }[on]
    table.merge(NEWS, on).when_matched_delete().execute()
    assert set(found(table)) == set(BEFORE) - meant


def test_several_keys_must_all_be_equal(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.merge(NEWS, f"{ON} and target.part = source.part").when_matched_update_all().execute()
    assert found(table) == BEFORE | {2: ("a", 20.0)}


def test_a_row_that_would_change_twice_is_refused_before_anything_is_written(table: Table, tmp_path: Path) -> None:
    twice = pa.concat_tables([NEWS, NEWS.slice(0, 1)])
    names = set((tmp_path / "t").rglob("*"))
    ambiguous = [
        table.merge(twice, ON).when_matched_update_all(),
        table.merge(twice, ON).when_matched_update_all("source.id > 1").when_not_matched_insert_all(),
        table.merge(twice, ON).when_matched_delete("source.id > 1"),
        table.merge(twice, ON).when_matched_delete("source.id > 2").when_matched_update_all(),
        # Which clause takes the row does not matter, nor whether one does.
        table.merge(twice, ON).when_matched_update_all("source.id = 4"),
        table.merge(twice, ON).when_matched_delete("source.id > 100"),
        table.merge(twice, ON).when_not_matched_by_source_delete(),
        table.merge(twice, ON).when_not_matched_insert_all().when_not_matched_by_source_update({"amount": "0"}),
    ]
    for merge in ambiguous:
        with pytest.raises(InvalidRequest) as caught:
            merge.execute()
        assert caught.value.code == "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"
    assert set((tmp_path / "t").rglob("*")) == names


def test_files_in_which_no_clause_can_take_a_row_are_not_read(table: Table) -> None:
    twice = pa.concat_tables([NEWS, NEWS.slice(0, 1)])
    for build in (
        lambda merge: merge.when_matched_delete("target.amount > 100").when_matched_update_all(
            "target.amount < 0 and source.id = 4"
        ),
        lambda merge: merge.when_matched_delete("false"),
    ):
        assert build(table.merge(twice, ON)).explain().files_scanned == 0
    first = table.merge(NEWS, ON).when_matched_delete("target.part = 'b'").explain()
    assert (first.files_scanned, first.files_touched) == (1, 1)
    assert (
        table.merge(NEWS, ON).when_matched_delete("target.part = 'b'").when_not_matched_insert_all().explain().files_scanned == 2
    )


def test_a_row_may_match_twice_where_all_matched_rows_are_deleted_or_none_can_change(table: Table) -> None:
    twice = pa.concat_tables([NEWS, NEWS.slice(0, 1), NEWS.slice(2, 1)])
    assert table.merge(twice, ON).when_not_matched_insert_all("id = 7").execute().num_inserted_rows == 1
    table.delete("id = 7")
    outcome = table.merge(twice, ON).when_matched_delete().when_not_matched_insert_all("id = 6").execute()
    assert (outcome.num_deleted_rows, outcome.num_inserted_rows) == (2, 2)
    assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 3, 5, 6, 6]


@pytest.mark.parametrize(
    ("build", "code"),
    [
        (lambda merge: merge, "DELTA_MERGE_MISSING_WHEN"),
        (lambda merge: merge.when_matched_delete().when_matched_update_all(), "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION"),
        (
            lambda merge: merge.when_not_matched_insert_all().when_not_matched_insert_all("id = 1"),
            "DELTA_NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION",
        ),
        (
            lambda merge: merge.when_not_matched_by_source_delete().when_not_matched_by_source_delete(),
            "DELTA_NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION",
        ),
        (lambda merge: merge.when_not_matched_insert({"id": "target.id"}), None),
        (lambda merge: merge.when_not_matched_by_source_update({"id": "source.id"}), None),
        (lambda merge: merge.when_matched_update({"amount": "sum(source.amount)"}), None),
        (lambda merge: merge.when_matched_delete("exists (select 1)"), None),
        (lambda merge: merge.when_matched_delete("rand() < 0.5"), None),
        (lambda merge: merge.when_matched_update({"amount": "amount"}), "AMBIGUOUS_REFERENCE"),
        (lambda merge: merge.when_matched_update({"new": "source.id"}), None),
        (lambda merge: merge.when_matched_update({"amount": "1", "target.amount": "2"}), "DELTA_CONFLICT_SET_COLUMN"),
    ],
)
def test_clauses_that_break_a_rule_are_refused(tmp_path: Path, build: Any, code: str | None) -> None:
    table = make(tmp_path)
    merge: MergeBuilder = build(table.merge(NEWS, ON))
    with pytest.raises(InvalidRequest) as caught:
        merge.execute()
    assert code is None or caught.value.code == code
    assert table.version() == 1


def test_a_builder_can_be_used_again(tmp_path: Path) -> None:
    table = make(tmp_path)
    merge = table.merge(NEWS, "t.id = s.id", source_alias="s", target_alias="t")
    merge.when_matched_delete("s.id = 2").execute()
    merge.when_matched_update({"t.amount": "s.amount"}).execute()
    assert found(table) == {1: ("a", 1.0), 3: ("b", 3.0), 4: ("b", 40.0), 5: ("b", None)}


@pytest.mark.damages_tables
def test_files_that_cannot_hold_a_key_are_not_read(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.append(rows(dict.fromkeys(range(1000, 1010), ("z", 0.0))))
    (far,) = (tmp_path / "t").rglob("part=z/*.parquet")
    far.write_bytes(b"not to be read")
    table.merge(NEWS, ON).when_matched_update_all().when_not_matched_insert_all().execute()
    table.merge(NEWS, f"{ON} and target.part = 'a'").when_matched_delete().execute()
    many = rows(dict.fromkeys(range(-500, 500), ("a", 0.0)))
    table.merge(many, ON).when_matched_delete().execute()
    assert table.files().num_rows == 1


def test_a_star_without_schema_evolution_needs_every_column(tmp_path: Path) -> None:
    table = make(tmp_path)
    for merge in (
        table.merge(NEWS.drop_columns(["amount"]), ON).when_matched_update_all(),
        table.merge(NEWS.drop_columns(["amount"]), ON).when_not_matched_insert_all(),
    ):
        with pytest.raises(InvalidRequest) as caught:
            merge.execute()
        assert caught.value.code == "DELTA_MERGE_UNRESOLVED_EXPRESSION"
    more = NEWS.append_column("more", pa.array(["x"] * 4))
    table.merge(more, ON).when_matched_update_all().execute()
    assert table.schema().names == SCHEMA.names


@pytest.mark.parametrize("properties", [{}, {**VECTORS, **FEED}, {"delta.columnMapping.mode": "name"}], ids=str)
def test_a_star_with_schema_evolution_adds_columns_and_keeps_those_the_source_lacks(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    table = make(tmp_path, properties)
    more = NEWS.drop_columns(["amount"]).append_column("more", pa.array(["x", None, "y", "z"]))
    table.merge(more, ON).when_matched_update_all().when_not_matched_insert_all().with_schema_evolution().execute()
    assert table.schema().names == ["id", "part", "amount", "more"]
    assert {row["id"]: (row["part"], row["amount"], row["more"]) for row in table.to_arrow().to_pylist()} == {
        1: ("a", 1.0, None),
        2: ("a", 2.0, "x"),
        3: ("b", 3.0, None),
        4: ("a", 4.0, None),
        5: ("b", None, None),
        6: ("c", None, "y"),
        7: ("a", None, "z"),
    }
    assert table.check() == []


def test_with_schema_evolution_only_columns_that_are_assigned_to_are_added(tmp_path: Path) -> None:
    table = make(tmp_path)
    more = NEWS.append_column("one", pa.array([1, 2, 3, 4])).append_column("two", pa.array([1, 2, 3, 4]))
    merge = table.merge(more, ON).when_matched_update({"one": "source.one + 1"}).with_schema_evolution()
    merge.execute()
    assert table.schema().names == ["id", "part", "amount", "one"]
    assert {row["id"]: row["one"] for row in table.to_arrow().to_pylist() if row["one"]} == {2: 2, 4: 3}


def test_with_schema_evolution_assigned_structs_get_new_fields(tmp_path: Path) -> None:
    before = [{"id": 1, "place": {"city": "a"}}, {"id": 2, "place": None}]
    schema = pa.schema([("id", pa.int64()), ("place", pa.struct([("city", pa.string())]))])
    table = Table.create(tmp_path / "t", schema)
    table.append(pa.Table.from_pylist(before, schema))
    more = pa.table({"id": [1, 2], "place": [{"zip": 1, "city": "b"}, {"zip": 2, "city": "c"}], "note": ["x", "y"]})
    merge = table.merge(more, ON).when_matched_update({"place": "source.place"}, condition="source.id = 1")
    merge.when_matched_update({"note": "source.note"}).with_schema_evolution().execute()
    assert table.to_arrow().sort_by("id").to_pylist() == [
        {"id": 1, "place": {"city": "b", "zip": 1}, "note": None},
        {"id": 2, "place": None, "note": "y"},
    ]
    table.merge(more, ON).when_matched_update({"place.zip": "source.id * 10"}).with_schema_evolution().execute()
    assert [row["place"] for row in table.to_arrow().sort_by("id").to_pylist()] == [
        {"city": "b", "zip": 10},
        {"city": None, "zip": 20},
    ]


def test_nested_fields_evolve_too(tmp_path: Path) -> None:
    old = pa.table({"id": [1, 2], "place": [{"x": 1}, {"x": 2}]})
    table = Table.create(tmp_path / "t", old.schema)
    table.append(old)
    new = pa.table({"id": [2, 3], "place": [{"x": 20, "y": "b"}, {"x": 30, "y": "c"}]})
    table.merge(new, ON).when_matched_update_all().when_not_matched_insert_all().with_schema_evolution().execute()
    assert sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"]) == [
        {"id": 1, "place": {"x": 1, "y": None}},
        {"id": 2, "place": {"x": 20, "y": "b"}},
        {"id": 3, "place": {"x": 30, "y": "c"}},
    ]


def test_a_source_that_does_not_fit_is_reported(tmp_path: Path) -> None:
    table = make(tmp_path)
    wrong = NEWS.set_column(2, "amount", pa.array([["x"]] * 4))
    with pytest.raises(SchemaMismatch):
        table.merge(wrong, ON).when_matched_update_all().execute()
    with pytest.raises(NotFound):
        Table(tmp_path / "nothing").merge(NEWS, ON).when_matched_delete().execute()


def test_a_stream_is_read_once(tmp_path: Path) -> None:
    table = make(tmp_path, {**VECTORS, **FEED})
    stream = pa.RecordBatchReader.from_batches(NEWS.schema, iter(NEWS.to_batches(max_chunksize=1)))
    table.merge(stream, ON).when_matched_update_all().when_not_matched_insert_all().execute()
    assert len(found(table)) == 7


def test_the_history_shows_the_clauses(tmp_path: Path) -> None:
    table = make(tmp_path)
    merge = table.merge(NEWS, ON).when_matched_delete("source.id = 2").when_matched_update_all().when_not_matched_insert_all()
    merge.execute()
    (entry,) = table.history(1)
    assert entry["operation"] == "MERGE"
    assert {name: json.loads(value) for name, value in entry["operationParameters"].items()} == {
        "predicate": [ON],
        "matchedPredicates": [{"predicate": "source.id = 2", "actionType": "delete"}, {"actionType": "update"}],
        "notMatchedPredicates": [{"actionType": "insert"}],
        "notMatchedBySourcePredicates": [],
    }
    assert (entry["operationMetrics"]["numSourceRows"], entry["operationMetrics"]["numOutputRows"]) == ("4", "6")


def test_with_vectors_merges_of_different_rows_of_one_file_both_succeed(tmp_path: Path) -> None:
    table = make(tmp_path, {**VECTORS, **FEED})
    stale = Table(table.url)
    transaction = stale.begin()
    statement = stale.merge(rows({1: ("a", 10.0)}), ON).when_matched_update_all().statement
    staged = stage_merge(transaction, statement)
    table.merge(rows({2: ("a", 20.0)}), ON).when_matched_update_all().execute()
    assert staged.operation is not None
    stale.commit(transaction, staged.operation)
    assert found(table) == BEFORE | {1: ("a", 10.0), 2: ("a", 20.0)}
    assert table.check() == []


def test_an_insert_meets_a_winner_that_inserted_its_key(table: Table) -> None:
    stale = Table(table.url)
    transaction = stale.begin()
    staged = stage_merge(transaction, stale.merge(NEWS, ON).when_not_matched_insert_all().statement)
    table.append(rows({6: ("x", 0.0)}))
    assert staged.operation is not None
    with pytest.raises(ConcurrentAppendException):
        stale.commit(transaction, staged.operation)
    assert found(table) == BEFORE | {6: ("x", 0.0)}


def test_an_insert_passes_a_winner_that_inserted_other_keys(table: Table) -> None:
    stale = Table(table.url)
    transaction = stale.begin()
    staged = stage_merge(transaction, stale.merge(NEWS, ON).when_not_matched_insert_all().statement)
    table.append(rows({100: ("x", 0.0)}))
    assert staged.operation is not None
    stale.commit(transaction, staged.operation)
    assert set(found(table)) == {*BEFORE, 6, 7, 100}


def test_a_star_leaves_generated_columns_to_be_computed(tmp_path: Path) -> None:
    long = PrimitiveType("long")
    double = StructField("double", long, True, {"delta.generationExpression": "id * 2"})
    table = Table.create(tmp_path / "t", StructType((StructField("id", long), double, StructField("v", long))))
    table.append(pa.table({"id": [1, 2], "v": [1, 2]}))
    source = pa.table({"id": [2, 3], "v": [20, 30]})
    table.merge(source, ON).when_matched_update_all().when_not_matched_insert_all().execute()
    table.update({"id": "id + 10"}, "id = 1")
    assert sorted(tuple(row.values()) for row in table.to_arrow().to_pylist()) == [(2, 4, 20), (3, 6, 30), (11, 22, 1)]


def test_a_merge_is_explained_before_it_is_run(table: Table) -> None:
    merge = (
        table.merge(NEWS, ON)
        .when_matched_delete("source.id = 2")
        .when_matched_update_all()
        .when_not_matched_insert_all("id = 6")
        .when_not_matched_by_source_update({"amount": "0"}, "id = 3")
    )
    names = sorted(entry.name for entry in table.store.walk(""))
    explained = merge.explain()
    assert sorted(entry.name for entry in table.store.walk("")) == names
    assert [(item.when, item.then, item.condition, item.rows) for item in explained.clauses] == [
        ("MATCHED", "DELETE", "source.id = 2", 1),
        ("MATCHED", "UPDATE", None, 1),
        ("NOT MATCHED", "INSERT", "id = 6", 1),
        ("NOT MATCHED BY SOURCE", "UPDATE", "id = 3", 1),
    ]
    assert (explained.version, explained.files, explained.files_pruned, explained.files_scanned) == (1, 2, 0, 2)
    assert explained.files_touched == 2
    done = merge.execute()
    assert (explained.rows_deleted, explained.rows_updated, explained.rows_inserted) == (
        done.num_deleted_rows,
        done.num_updated_rows,
        done.num_inserted_rows,
    )


def test_an_explained_merge_prints_itself_and_is_plain_data(tmp_path: Path) -> None:
    table = make(tmp_path, VECTORS)
    news = pa.table({"id": [1], "part": ["a"], "amount": [9.0], "more": ["x"]})
    merge = table.merge(news, "target.id = source.id and target.part = 'a'").when_matched_update_all().with_schema_evolution()
    explained = merge.explain()
    assert str(explained).splitlines()[1:] == [
        "  source: 1 row",
        "  files: 2 in the table, 1 pruned, 1 scanned, 1 marked in deletion vectors",
        "  columns to be added: more",
        "  WHEN MATCHED THEN UPDATE: 1 row",
    ]
    assert json.loads(json.dumps(explained.to_dict()))["files_pruned"] == 1
    assert table.version() == 1


def test_explain_raises_the_errors_of_execute(table: Table) -> None:
    twice = pa.concat_tables([NEWS, NEWS])
    with pytest.raises(InvalidRequest) as caught:
        table.merge(twice, ON).when_matched_update_all().explain()
    assert caught.value.code == "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"


def test_an_update_of_everything_keeps_fields_that_the_sources_structs_lack(tmp_path: Path) -> None:
    place = pa.struct([("city", pa.string()), ("zip", pa.int32())])
    table = Table.create(tmp_path / "t", pa.schema([("id", pa.int64()), ("place", place)]))
    table.append(pa.table({"id": [1], "place": pa.array([{"city": "a", "zip": 1}], place)}))
    news = pa.table({"id": [1, 2], "place": [{"city": "x"}, {"city": "y"}]})
    merge = table.merge(news, ON).when_matched_update_all().when_not_matched_insert_all().with_schema_evolution()
    merge.execute()
    assert table.to_arrow().sort_by("id").to_pylist() == [
        {"id": 1, "place": {"city": "x", "zip": 1}},
        {"id": 2, "place": {"city": "y", "zip": None}},
    ]


def test_many_keys_prune_by_their_range_and_both_of_its_ends_match(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", pa.schema([("id", pa.int64()), ("v", pa.int64())]))
    for number in (99, 100, 1000, 1001):
        table.append(pa.table({"id": [number], "v": [0]}))
    keys = [100, *range(200, 500), 1000]
    builder = table.merge(pa.table({"id": keys, "v": [1] * len(keys)}), ON).when_matched_update_all()
    explained = builder.explain()
    assert (explained.files, explained.files_scanned) == (4, 2)
    assert builder.execute().num_updated_rows == 2
    after = table.to_arrow().to_pydict()
    assert dict(zip(after["id"], after["v"], strict=True)) == {99: 0, 100: 1, 1000: 1, 1001: 0}


INNER = pa.struct([("x", pa.int64()), ("y", pa.int64())])
OUTER = pa.struct([("a", pa.int64()), ("n", INNER)])


def test_an_update_of_everything_leaves_structs_null_that_both_sides_have_as_null(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("s", OUTER)])
    before = [{"a": 1, "n": {"x": 1, "y": 2}}, {"a": 1, "n": None}, None]
    table = Table.create(tmp_path / "t", schema)
    table.append(pa.table({"id": [1, 2, 3], "s": before}, schema=schema))
    fewer = pa.array([{"n": {"x": 9}}, {"n": None}, None], pa.struct([("n", pa.struct([("x", pa.int64())]))]))
    source = pa.table({"id": [1, 2, 3], "s": fewer})
    table.merge(source, ON).when_matched_update_all().with_schema_evolution().execute()
    assert table.to_arrow().sort_by("id")["s"].to_pylist() == [{"a": 1, "n": {"x": 9, "y": 2}}, {"a": 1, "n": None}, None]


KEYS = [
    ({"source.v": "source.v"}, False, "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
    ({"target.w": "source.w"}, True, "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
    ({"w": "source.w"}, False, "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
    ({"w": "source.w", "source.W": "source.w"}, True, "DELTA_CONFLICT_SET_COLUMN"),
    ({"s.z": "1"}, False, "FIELD_NOT_FOUND"),
    ({"s.z": "1"}, True, "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
    ({"v.z": "1"}, False, "INVALID_EXTRACT_BASE_FIELD_TYPE"),
    ({"l.x": "1"}, False, "DELTA_UNSUPPORTED_NESTED_FIELD_IN_UPDATE"),
]


@pytest.fixture
def nested(tmp_path: Path) -> Table:
    places = pa.list_(pa.struct([("x", pa.int64())]))
    schema = pa.schema([("id", pa.int64()), ("v", pa.int64()), ("s", pa.struct([("x", pa.int64())])), ("l", places)])
    table = Table.create(tmp_path / "t", schema)
    table.append(pa.table({"id": [1, 2], "v": [1, 2], "s": [{"x": 1}, None], "l": [None, []]}, schema=schema))
    return table


WIDER = pa.table({"id": [1], "v": [10], "w": [100]})


@pytest.mark.parametrize(("values", "evolving", "code"), KEYS)
def test_a_key_that_names_no_column_is_refused(nested: Table, values: dict[str, str], evolving: bool, code: str) -> None:
    merge = nested.merge(WIDER, ON)
    merge = (merge.with_schema_evolution() if evolving else merge).when_matched_update(values)
    with pytest.raises(InvalidRequest) as caught:
        merge.execute()
    assert caught.value.code == code and nested.version() == 1


def test_with_schema_evolution_a_key_may_name_a_column_of_the_source(nested: Table) -> None:
    merge = nested.merge(WIDER, ON).with_schema_evolution()
    merge.when_matched_update({"source.v": "source.v", "source.w": "source.w"}).execute()
    assert nested.to_arrow(columns=["id", "v", "w"]).sort_by("id").to_pylist() == [
        {"id": 1, "v": 10, "w": 100},
        {"id": 2, "v": 2, "w": None},
    ]


def test_a_clause_for_rows_without_a_match_adds_no_column(nested: Table) -> None:
    merge = nested.merge(WIDER, ON).with_schema_evolution()
    with pytest.raises(InvalidRequest, match="DELTA_MERGE_UNRESOLVED_EXPRESSION"):
        merge.when_matched_update_all().when_not_matched_by_source_update({"w": "1"}).execute()
    assert nested.version() == 1


def test_a_new_row_gets_whole_columns(nested: Table) -> None:
    with pytest.raises(Unsupported, match="DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION"):
        nested.merge(WIDER, ON).when_not_matched_insert({"s.x": "1"}).execute()


def test_a_table_without_columns_needs_schema_evolution(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", pa.schema([]))
    with pytest.raises(InvalidRequest, match="DELTA_MERGE_INTO_EMPTY_SCHEMA_TARGET"):
        table.merge(WIDER, "false").when_not_matched_insert_all().execute()
    table.merge(WIDER, "false").when_not_matched_insert_all().with_schema_evolution().execute()
    assert table.to_arrow().to_pylist() == WIDER.to_pylist()


@pytest.mark.parametrize("vectors", [True, False])
@pytest.mark.parametrize("feed", [True, False])
@pytest.mark.parametrize(
    "clauses",
    [
        lambda merge: merge.when_matched_update_all().when_not_matched_insert_all(),
        lambda merge: merge.when_matched_update({"amount": "t.amount + s.amount"}, "s.amount > 2").when_matched_delete(),
        lambda merge: merge.when_matched_delete("t.amount < 4").when_not_matched_by_source_update({"amount": "-1"}, "t.id > 5"),
        lambda merge: merge.when_not_matched_by_source_delete("t.id = 0").when_not_matched_insert_all(),
    ],
)
def test_a_merge_into_tiny_files_equals_one_into_large_files(
    tmp_path: Path, clauses: Any, vectors: bool, feed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = []
    for name in ("tiny", "large"):
        properties = {"delta.enableDeletionVectors": str(vectors).lower(), "delta.enableChangeDataFeed": str(feed).lower()}
        rows = pa.table({"id": range(9), "amount": range(9), "part": ["a", "b", None] * 3})
        table = Table.create(tmp_path / name, rows.schema, partition_by=["part"], properties=properties)
        for start in range(0, 9, 3):
            table.append(rows.slice(start, 3))
        table.delete("id in (1, 3)")
        if name == "large":
            monkeypatch.setattr(merge_match, "_BYTES_OF_A_TINY_FILE", 0)
        source = pa.table({"id": [2, 3, 5, 8, 40], "amount": [1, 2, 3, 4, 5], "part": ["b", "b", "c", None, "z"]})
        changed = clauses(table.merge(source, "t.id = s.id", target_alias="t", source_alias="s")).execute()
        columns = ("num_updated_rows", "num_deleted_rows", "num_inserted_rows")
        changes = table.changes(table.version()).drop_columns(["_commit_version", "_commit_timestamp"]) if feed else None
        results.append(
            (
                [getattr(changed, column) for column in columns],
                sorted(table.to_arrow().to_pylist(), key=str),
                None if changes is None else sorted(changes.to_pylist(), key=str),
                {key: value for key, value in changed.metrics.items() if not key.endswith("Ms") and "Bytes" not in key},
            )
        )
    assert results[0] == results[1]
