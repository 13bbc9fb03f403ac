"""MERGE on Spark: every clause, and many of them together, against the MERGE without Spark on a copy of the same table."""

from __future__ import annotations

import json
import random
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession

from tahoe import Table
from tahoe.spark.commands.merge import pairs as merge_found
from tahoe.tables import DeltaTable
from tests.spark.merges import BEFORE, FEED, IDS, MAPPED, NEWS, ON, VECTORS, reported, target, two_files


@pytest.fixture
def news(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(NEWS).alias("s")


@dataclass(frozen=True)
class Case:
    """Clauses, in the words that both builders understand, and the kind of table."""

    properties: tuple[str, ...]
    partitioned: bool
    on: str
    clauses: tuple[tuple[str, str | None, dict[str, str] | None], ...]

    def by_core(self, table: Table, news: pa.Table) -> Any:
        builder = table.merge(news, self.on, source_alias="s", target_alias="t")
        for name, condition, values in self.clauses:
            method = getattr(builder, {"Update": "when_matched_update", "UpdateAll": "when_matched_update_all", **_CORE}[name])
            arguments = [] if values is None else [values]
            builder = method(*arguments, condition=condition)
        return builder

    def by_spark(self, table: DeltaTable, source: DataFrame) -> Any:
        builder = table.merge(source, self.on)
        for name, condition, values in self.clauses:
            method = getattr(builder, {"Update": "whenMatchedUpdate", "UpdateAll": "whenMatchedUpdateAll", **_SPARK}[name])
            arguments = {} if values is None else {"values" if name == "Insert" else "set": values}
            builder = method(condition, **arguments)
        return builder


_CORE = {
    "Delete": "when_matched_delete",
    "Insert": "when_not_matched_insert",
    "InsertAll": "when_not_matched_insert_all",
    "AloneUpdate": "when_not_matched_by_source_update",
    "AloneDelete": "when_not_matched_by_source_delete",
}
_SPARK = {
    "Delete": "whenMatchedDelete",
    "Insert": "whenNotMatchedInsert",
    "InsertAll": "whenNotMatchedInsertAll",
    "AloneUpdate": "whenNotMatchedBySourceUpdate",
    "AloneDelete": "whenNotMatchedBySourceDelete",
}
_CONDITIONS = {
    "Matched": ["s.id = 2", "t.amount > 3", "s.amount is null or t.part = 'b'", "s.part <> t.part", "true"],
    "NotMatched": ["s.id = 6", "part is null", "amount > 65 and s.id is not null"],
    "Alone": ["t.id = 1", "amount is null", "part = 'b' or t.id is null"],
}
_BOTH = [
    {"amount": "s.amount + coalesce(t.amount, 0)"},
    {"part": "upper(s.part)", "place.zip": "t.id * 100", "tags": "s.tags"},
    {"t.amount": "-1", "notes": "s.notes", "place": "s.place"},
]
_ALONE = [{"amount": "amount * 10"}, {"part": "'z'", "place.city": "concat('in ', part)"}]
_NEW = [{"id": "s.id * 10", "part": "part"}, {"id": "id", "amount": "1", "place": "s.place", "tags": "tags"}]


def case(seed: int) -> Case:
    """One of many combinations, always the same for a seed."""
    chance = random.Random(seed)

    def some(kind: str, actions: list[tuple[str, list[dict[str, str]] | None]], most: int) -> list[Any]:
        picked = [chance.choice(actions) for _ in range(chance.randint(0, most))]
        actual = []
        for position, (name, values) in enumerate(picked):
            free = position == len(picked) - 1 and chance.random() < 0.6
            condition = None if free else chance.choice(_CONDITIONS[kind])
            actual.append((name, condition, None if values is None else chance.choice(values)))
        return actual

    clauses = [
        *some("Matched", [("Update", _BOTH), ("UpdateAll", None), ("Delete", None)], 3),
        *some("NotMatched", [("Insert", _NEW), ("InsertAll", None)], 2),
        *(some("Alone", [("AloneUpdate", _ALONE), ("AloneDelete", None)], 2) if chance.random() < 0.5 else []),
    ]
    properties = tuple(name for name in ("vectors", "feed", "ids", "mapped") if chance.random() < 0.5)
    on = chance.choice([ON, ON, "t.id = s.id and t.id > 2", "t.id <=> s.id", "t.id + 1 = s.id + 1 and s.amount > 10"])
    return Case(properties, chance.random() < 0.5, on, tuple(clauses) or (("UpdateAll", None, None),))


_PROPERTIES = {"vectors": VECTORS, "feed": FEED, "ids": IDS, "mapped": MAPPED}
_SEEDS = 4
"""So many cases in every run; all of them in a long one."""
_NOT_COMPARED = ("Bytes", "Ms", "FilesAdded")


def without_texts(parameters: dict[str, str]) -> dict[str, object]:
    """The clauses alone: Spark passes conditions as Catalyst has them, the core as the user wrote them."""
    actual: dict[str, object] = {"predicate": "predicate" in parameters}
    for name, value in parameters.items():
        if name != "predicate":
            actual[name] = [(clause["actionType"], "predicate" in clause) for clause in json.loads(value)]
    return actual


@pytest.mark.parametrize("seed", [seed if seed < _SEEDS else pytest.param(seed, marks=pytest.mark.soak) for seed in range(15)])
def test_merges_of_spark_equal_those_of_the_core(seed: int, news: DataFrame, spark: SparkSession, tmp_path: Path) -> None:
    compare(case(seed), tmp_path, news, spark)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (3, 5, 9))])
def test_pairs_too_many_for_the_driver_say_the_same(
    seed: int, news: DataFrame, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge_found, "_MOST_PAIRS_HERE", 0)
    compare(case(seed), tmp_path, news, spark)


_UPSERT = Case((), False, ON, (("UpdateAll", None, None), ("InsertAll", None, None)))
_BY_NAME = {"id": "s.id", "part": "upper(s.part)", "amount": "s.amount + 1", "tags": "null"}


@pytest.mark.parametrize(("vectors", "here"), [((), 100), (("vectors",), 0)])
@pytest.mark.parametrize(
    ("name", "asked"),
    {
        "every row matches one": _UPSERT,
        "rows match many": replace(_UPSERT, on="t.part = s.part"),
        "values alike": replace(_UPSERT, clauses=(("Update", None, _BY_NAME), ("Insert", None, _BY_NAME))),
        "values of the target": replace(
            _UPSERT, clauses=(("Update", None, {"id": "s.id", "part": "t.part"}), _UPSERT.clauses[1])
        ),
        "columns that keep": replace(_UPSERT, clauses=(("Update", None, _BY_NAME), ("InsertAll", None, None))),
    }.items(),
)
def test_upserts(
    name: str,
    asked: Case,
    vectors: tuple[str, ...],
    here: int,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(merge_found, "_MOST_PAIRS_HERE", here)
    news = NEWS.filter(pc.is_in(NEWS["id"], pa.array([2, 4, 5, 7]))) if "many" in name else NEWS
    compare(replace(asked, properties=vectors), tmp_path, spark.createDataFrame(news).alias("s"), spark, news)


def compare(asked: Case, folder: Path, source: DataFrame, spark: SparkSession, news: pa.Table = NEWS) -> None:
    """Do the MERGE on Spark, and without Spark on a copy of the table."""
    properties = {key: value for name in asked.properties for key, value in _PROPERTIES[name].items()}
    table = two_files(folder / "table", properties, partition_by=("part",) if asked.partitioned else ())
    shutil.copytree(folder / "table", folder / "copy")
    copy = Table(folder / "copy")

    expected = asked.by_core(copy, news).execute()
    counts = asked.by_spark(target(spark, table), source).execute().first()

    assert counts is not None
    assert counts.asDict() == {name: getattr(expected, name) for name in counts.asDict()}
    assert reported(table.to_arrow()) == reported(copy.to_arrow())
    assert table.check() == []
    if expected.version is None:
        assert table.version() == copy.version()
        return
    mine, theirs = (item.history(1)[0] for item in (table, copy))
    assert without_texts(mine["operationParameters"]) == without_texts(theirs["operationParameters"])
    compared = [name for name in theirs["operationMetrics"] if not any(part in name for part in _NOT_COMPARED)]
    assert {name: mine["operationMetrics"][name] for name in compared} == {
        name: theirs["operationMetrics"][name] for name in compared
    }
    if "feed" in asked.properties:
        changes = [item.changes(expected.version).drop_columns(["_commit_timestamp"]) for item in (table, copy)]
        assert reported(changes[0]) == reported(changes[1])
    if "ids" in asked.properties:
        # New rows get ids by the files that they are written to; old ones keep theirs.
        first, second = (
            {(row["_row_id"], row["id"]) for row in item.to_arrow(row_ids=True).to_pylist()} for item in (table, copy)
        )
        assert {item for item in first if item[0] < len(BEFORE)} == {item for item in second if item[0] < len(BEFORE)}
