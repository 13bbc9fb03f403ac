"""Each table feature that delta-spark 4.0 supports, in turn: each side reads and changes the tables of the other.

Each case runs with row ids and an identity column beside the feature, and, if the feature then has another protocol, also alone with fewer
statements. `FACTS` lists the facts to demonstrate; `SHORT_OF` gives the reason for a case that demonstrates fewer. `NOT_BY_TURNS` lists the
features of both without a case: delta-spark reports the features that it supports, and must refuse the others by name.

Other properties are in `test_types_jvm.py` (renamed and dropped columns, every pair of types), `test_column_values_jvm.py` (explicit
identity values), `test_clustering_jvm.py` (OPTIMIZE of clustered tables) and `test_drop_feature.py` (dropped features).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tahoe import Table
from tahoe.protocol.features import FEATURES, Use
from tests.interop.engines import canonical
from tests.jvm.by_turns import (
    IDENTITY,
    START,
    WIDE,
    Case,
    Column,
    Ours,
    Rows,
    Theirs,
    after_change,
    after_merge,
    as_texts,
    rows_of,
)
from tests.spark.feature_tables import table_with
from tests.variant_values import metadata_of, value_of

pytestmark = pytest.mark.jvm


def supported(*features: str) -> Mapping[str, str]:
    return {f"delta.feature.{feature}": "supported" for feature in features}


def has_vectors(table: Table) -> bool:
    return any(each is not None for each in table.files()["deletionVector"].to_pylist())


def has_v2_checkpoint(table: Table) -> bool:
    return any(
        len(path.name.split(".")) == 4 for path in Path(table.url.removeprefix("file://"), "_delta_log").glob("*.checkpoint.*")
    )


VECTORS = {"delta.enableDeletionVectors": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}
TRACKED = {"delta.enableRowTracking": "true"}
V2 = {"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "3"}
TIMED = {"delta.enableInCommitTimestamps": "true"}
TIME = {
    "at": Column(
        "timestamp_ntz",
        lambda number: START + dt.timedelta(days=number),
        f"CAST(date_add(DATE'{START:%Y-%m-%d}', CAST(id AS INT)) AS TIMESTAMP_NTZ)",
    )
}
GENERATED = {
    "twice": Column(
        "long",
        lambda number: 2 * number,
        metadata={"delta.generationExpression": "id * 2"},
        built=lambda column: column.generatedAlwaysAs("id * 2"),
    )
}
DEFAULT = {"state": Column("string", lambda _: "new", metadata={"CURRENT_DEFAULT": "'new'"}, stated="SET DEFAULT 'new'")}
NARROW = {
    "n": Column("integer", lambda number: number + WIDE * (number >= 20), f"IF(id < 20, id, id + {WIDE})"),
}


def variant(text: str | None) -> dict[str, bytes] | None:
    """A JSON text as `VARIANT` has it, an object with one number, as Tahoe is given it."""
    number = text and int(text.removeprefix('{"a":').removesuffix("}"))
    return text and {"metadata": metadata_of(["a"]), "value": value_of(("object", {"a": ("int8", number)}), ["a"])}


VARIANT = {
    "v": Column(
        "variant",
        lambda number: f'{{"a":{number}}}' if number % 3 else None,
        """IF(id % 3 > 0, parse_json(concat('{"a":', id, '}')), NULL)""",
        in_arrow=variant,
    )
}

CASES: Mapping[str, Case] = {
    "appendOnly": Case({"delta.appendOnly": "true"}, appends_only=True),
    "invariants": Case(not_null=True),
    "checkConstraints": Case(check="id < 100000"),
    "changeDataFeed": Case({"delta.checkpointInterval": "3"}),
    "generatedColumns": Case(columns=GENERATED),
    "columnMapping": Case(MAPPED),
    "columnMapping by ids": Case({"delta.columnMapping.mode": "id"}, feature="columnMapping"),
    "identityColumns": Case(columns=IDENTITY),
    "deletionVectors": Case(VECTORS, leaves=has_vectors),
    "v2Checkpoint": Case(V2, leaves=has_v2_checkpoint),
    "timestampNtz": Case(columns=TIME),
    "vacuumProtocolCheck": Case(supported("vacuumProtocolCheck")),
    "variantType": Case(columns=VARIANT),
    "variantType-preview": Case(supported("variantType-preview"), VARIANT),
    "variantShredding-preview": Case(supported("variantShredding-preview", "variantType"), VARIANT),
    "typeWidening": Case({"delta.enableTypeWidening": "true"}, NARROW, widens=True),
    "typeWidening-preview": Case({"delta.enableTypeWidening": "true", **supported("typeWidening-preview")}, NARROW, widens=True),
    "domainMetadata": Case(supported("domainMetadata")),
    "rowTracking": Case(TRACKED),
    "clustering": Case(clustered=True),
    "inCommitTimestamp": Case(TIMED),
    "allowColumnDefaults": Case(supported("allowColumnDefaults"), DEFAULT),
    "icebergCompatV1": Case(MAPPED | {"delta.enableIcebergCompatV1": "true"}),
    "icebergCompatV2": Case(MAPPED | {"delta.enableIcebergCompatV2": "true"}),
    "checkpointProtection": Case(supported("checkpointProtection")),
    "many at once": Case(
        VECTORS | MAPPED | TRACKED | V2 | TIMED | supported("allowColumnDefaults"),
        TIME | DEFAULT | GENERATED,
        not_null=True,
        check="id < 100000",
        feature="deletionVectors",
    ),
}
LEGACY = [name for name, case in CASES.items() if (row := FEATURES.get(case.feature or name)) and row.legacy]
"""Cases whose tables, without numbers beside the feature, have protocol versions and no list of features."""
READS = {Ours: "the reference reads what we made", Theirs: "we read what the reference made"}
CHANGES = {Ours: "the reference changes what we made", Theirs: "we change what the reference made"}
NUMBERS = ("feed", "row ids", "identity values")
FACTS = (*READS.values(), *CHANGES.values(), *NUMBERS)
"""The facts to demonstrate for each feature; the first two depend on the creator of the table."""
SHORT_OF: Mapping[str, Mapping[str, str]] = {
    "appendOnly": dict.fromkeys(CHANGES.values(), "rows are added, and the feature forbids the rest"),
}
"""The facts that a case does not demonstrate, and why."""

NOT_BY_TURNS: Mapping[str, str] = {
    "catalogManaged": "needs a coordinator, and the two have none in common (docs/design/030)",
}
"""Features that both know and that have no case, and why."""


@pytest.mark.parametrize("makers", [(Ours, Theirs), (Theirs, Ours)], ids=["made by us", "made by the reference"])
@pytest.mark.parametrize(("name", "numbered"), [*((name, True) for name in CASES), *((name, False) for name in LEGACY)])
def test_one_side_makes_and_changes_a_table_and_the_other_reads_and_changes_it(
    jvm: SparkSession, path: str, name: str, makers: tuple[type[Ours], type[Theirs]], numbered: bool
) -> None:
    case = CASES[name].numbered() if numbered else CASES[name]
    sides = [maker(jvm, path, case) for maker in makers]
    sides[0].make()
    expected: Rows = {}
    ids: dict[int, int] = {}
    start = 0
    shown: set[str] = set()
    for turn, side in enumerate(sides):
        first = turn * 20
        side.append(first, first + 12)
        expected |= rows_of(case, first, first + 12)
        if case.widens and turn == 0:
            side.widen()
            start = Table(path).version() + 1  # the reference shows no changes across it
        if not case.appends_only:
            side.merge(turn, first + 8, first + 16)
            expected = after_merge(case, expected, turn, first + 8, first + 16)
            if numbered:
                side.change(turn)
                expected = after_change(expected, turn)
        if not numbered and turn == 0:
            continue  # with numbers beside it, this is looked at
        shown |= agreed(jvm, path, case, expected, start)
        ids = kept(ids, path) if "row ids" in shown else {}
        shown |= {READS[makers[0]]} | ({CHANGES[makers[0]]} if turn == 1 and not case.appends_only else set())
    table = Table(path)
    assert (case.feature or name) in table.snapshot().config.features
    assert case.leaves(table)
    assert table.check(deep=True) == []
    due = {READS[makers[0]], CHANGES[makers[0]], *NUMBERS} - SHORT_OF.get(name, {}).keys()
    assert shown == due or not numbered


def agreed(jvm: SparkSession, path: str, case: Case, expected: Rows, start: int) -> set[str]:
    """The expected rows, and equal changes, row ids and identity values for both; returns the compared facts."""
    table, theirs = Table(path), Theirs(jvm, path, case)
    ours = as_texts(table.to_arrow())
    assert canonical(ours) == canonical(theirs.rows().toArrow())
    known = list(next(iter(expected.values())))
    assert sorted(ours.select(known).to_pylist(), key=lambda row: row["id"]) == [expected[number] for number in sorted(expected)]
    changes = as_texts(table.changes(start).drop(["_commit_timestamp"]))
    assert len(changes) > 0 and canonical(changes) == canonical(theirs.changes(start).toArrow())
    compared = {"feed"}
    if "delta.enableRowTracking" in case.properties:
        names = ["id", "row_id", "row_commit_version"]
        mine = table.to_arrow(columns=["id"], row_ids=True).rename_columns(names)
        assert canonical(mine) == canonical(theirs.row_ids().toArrow())
        compared.add("row ids")
    if "number" in case.columns:
        numbers = ours["number"].to_pylist()
        assert len(set(numbers)) == len(numbers) and all(number >= 10 and number % 5 == 0 for number in numbers)
        (mark,) = (each.metadata["delta.identity.highWaterMark"] for each in table.schema() if each.name == "number")
        values = {row["number"] for row in changes.to_pylist()} | set(numbers)
        assert mark == max(values)
        compared.add("identity values")
    return compared


def kept(before: Mapping[int, int], path: str) -> dict[int, int]:
    """The row ids by ``id``; those of rows that were there before are the same."""
    rows = Table(path).to_arrow(columns=["id"], row_ids=True).to_pylist()
    now = {row["id"]: row["_row_id"] for row in rows}
    assert len(set(now.values())) == len(now)
    assert all(now[number] == row_id for number, row_id in before.items() if number in now)
    return now


def features_of_the_reference(jvm: SparkSession) -> set[str]:
    return set(jvm._jvm.org.apache.spark.sql.delta.TableFeature.allSupportedFeaturesMap().keySet().mkString(",").split(","))


def test_every_feature_that_both_know_has_a_case_or_a_reason(jvm: SparkSession) -> None:
    cased = {case.feature or name for name, case in CASES.items()}
    written_by_us = {name for name, row in FEATURES.items() if row.supports(Use.WRITE)}
    theirs = {next((name for name in FEATURES if name.lower() == actual), actual) for actual in features_of_the_reference(jvm)}
    assert written_by_us & theirs == cased | NOT_BY_TURNS.keys()
    assert not cased & NOT_BY_TURNS.keys()


def test_a_feature_that_the_reference_does_not_know_it_refuses_by_name(jvm: SparkSession, tmp_path: Path) -> None:
    known = features_of_the_reference(jvm)
    for feature, row in FEATURES.items():
        if feature.lower() in known:
            continue
        path = tmp_path / feature
        table_with(path, feature)
        if row.reader:
            with pytest.raises(Exception, match=f"(?s)DELTA_UNSUPPORTED_FEATURES_FOR_READ.*{feature}"):
                jvm.read.format("delta").load(str(path)).collect()
        else:
            assert [actual.id for actual in jvm.read.format("delta").load(str(path)).collect()] == [1]
            with pytest.raises(Exception, match=f"(?s)DELTA_UNSUPPORTED_FEATURES_FOR_WRITE.*{feature}"):
                jvm.sql(f"INSERT INTO delta.`{path}` VALUES (2)")
