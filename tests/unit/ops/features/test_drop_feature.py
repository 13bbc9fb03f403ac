"""DROP FEATURE: the remains of a feature, the readers of the table afterwards, and the refusals."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.clock import SystemClock
from tahoe.base.exceptions import InvalidRequest, NotFound, StorageFailure, TahoeError, Unsupported
from tahoe.coordinator.sql_coordinator import SqlCoordinator
from tahoe.log.files.paths import LOG_FOLDER
from tahoe.log.segment import checkpoints_in
from tahoe.ops.features import drop_feature as module
from tahoe.ops.features.drop_feature import depends_on_v2_checkpoint
from tahoe.ops.features.removals import REMOVALS
from tahoe.protocol.actions import Protocol
from tahoe.protocol.features import FEATURES, Use
from tahoe.protocol.protocols import features_of
from tahoe.snapshot.snapshot import Snapshot
from tahoe.txn.commit import Committed
from tahoe.txn.transaction import Operation, Transaction

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("part", pa.string())])
HOUR_MS = 3_600_000


class Later(SystemClock):
    """The machine's clock, some hours on."""

    hours = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.hours * HOUR_MS


def rows(first: int, part: str) -> pa.Table:
    return pa.table(
        {"id": range(first, first + 4), "name": [f"n{i}" for i in range(first, first + 4)], "part": [part] * 4}, SCHEMA
    )


def made(path: Path, properties: Mapping[str, str] | None = None, partition_by: Sequence[str] = ("part",)) -> Table:
    table = Table.create(path, SCHEMA, partition_by=partition_by, properties=properties, clock=Later())
    table.append(rows(0, "a"))
    table.append(rows(4, "b"))
    return table


def reread(table: Table) -> Table:
    return Table(table.url.removeprefix("file://"), clock=table.clock)


def content(table: Table, version: int | None = None) -> list[dict[str, object]]:
    return sorted(table.to_arrow(version=version).to_pylist(), key=str)


def operations(table: Table) -> list[str]:
    return [actual["operation"] for actual in table.history()]


def code_of(call: Callable[[], object]) -> str:
    with pytest.raises(TahoeError) as error:
        call()
    assert error.value.code is not None
    return error.value.code


def with_vectors(table: Table) -> None:
    table.delete("id % 4 = 1")


def with_another_name(table: Table) -> None:
    table.rename_column("name", "label")
    table.rename_column("part", "section")
    table.append(pa.table({"id": [99], "label": ["new"], "section": ["c"]}))


def clustered(table: Table) -> None:
    table.cluster_by(["id"])
    table.optimize()


def nothing(table: Table) -> None:
    pass


# feature → properties that add it, the traces it leaves, the protocol afterwards
CASES = {
    "deletionVectors": ({"delta.enableDeletionVectors": "true"}, with_vectors),
    "columnMapping": ({"delta.columnMapping.mode": "name"}, with_another_name),
    "typeWidening": ({"delta.enableTypeWidening": "true"}, nothing),
    "typeWidening-preview": ({"delta.feature.typeWidening-preview": "supported"}, nothing),
    "v2Checkpoint": ({"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "2"}, nothing),
    "vacuumProtocolCheck": ({"delta.feature.vacuumProtocolCheck": "supported"}, nothing),
    "checkConstraints": ({"delta.feature.checkConstraints": "supported"}, nothing),
    "inCommitTimestamp": ({"delta.enableInCommitTimestamps": "true"}, nothing),
    "rowTracking": ({"delta.enableRowTracking": "true"}, with_vectors),
    **{name: ({f"delta.feature.{name}": "supported"}, nothing) for name in ("geospatial", "geospatial-dev")},
    "clustering": ({}, clustered),
    "domainMetadata": ({"delta.feature.domainMetadata": "supported"}, nothing),
    "materializePartitionColumns": ({"delta.enableMaterializePartitionColumnsFeature": "true"}, nothing),
}


def prepared(path: Path, feature: str) -> Table:
    properties, act = CASES[feature]
    table = made(path, properties, () if feature == "clustering" else ("part",))  # a partitioned table is not clustered
    act(table)
    assert feature in table.snapshot().config.features
    return table


def test_every_feature_that_can_be_dropped_has_a_case():
    assert CASES.keys() | {"checkpointProtection"} == REMOVALS.keys()
    assert {name for name, row in FEATURES.items() if row.removal and row.supports(Use.WRITE)} == REMOVALS.keys()


@pytest.mark.parametrize("feature", CASES)
def test_a_feature_goes_and_the_rows_stay(tmp_path: Path, feature: str) -> None:
    table = prepared(tmp_path, feature)
    before, versions = content(table), {v: content(table, v) for v in range(1, table.version() + 1)}
    dropped = table.drop_feature(feature)
    actual = reread(table)
    assert actual.version() == dropped.version and operations(actual)[0] == "DROP FEATURE"
    assert content(actual) == before and actual.check(deep=True) == []
    assert {v: content(actual, v) for v in versions} == versions  # time travel goes on
    of_readers = FEATURES[feature].reader
    features = features_of(actual.snapshot().protocol)
    assert feature not in features and ("checkpointProtection" in features) == of_readers
    assert dropped.protocol == actual.snapshot().protocol
    if of_readers:
        checkpoints = checkpoints_in(actual.store.list_from(LOG_FOLDER))
        assert {actual.version() - n for n in range(4)} <= checkpoints.keys()  # three before it, and its own
        assert actual.snapshot().metadata.configuration["delta.requireCheckpointProtectionBeforeVersion"] == str(actual.version())
        assert actual.snapshot().protocol.reader_features is None
    content_again = actual.append(actual.to_arrow().slice(0, 1))
    assert content_again == actual.version() and len(content(actual)) == len(before) + 1


@pytest.mark.parametrize("feature", CASES)
def test_a_dry_run_changes_nothing_and_shows_the_plan(tmp_path: Path, feature: str) -> None:
    table = prepared(tmp_path, feature)
    listed = [entry.name for entry in table.store.walk()]
    planned = table.drop_feature(feature, dry_run=True)
    assert [entry.name for entry in table.store.walk()] == listed and planned.version is None and planned.obstacle is None
    live, dropped = set(table.files()["path"].to_pylist()), table.drop_feature(feature)
    gone = live - set(reread(table).files()["path"].to_pylist())
    assert (planned.files, planned.protocol) == (len(gone), dropped.protocol)
    assert planned.steps[-1].startswith(f"the protocol loses {feature}")
    assert f"without the name {feature}" not in str(planned) and feature in str(planned) and feature in str(dropped)


def test_readers_are_listed_with_it(tmp_path: Path) -> None:
    planned = prepared(tmp_path, "columnMapping").drop_feature("columnMapping", dry_run=True)
    assert any("Polars" in name for name in planned.gained) and "Able to read it then" in str(planned)


@pytest.mark.parametrize("feature", [name for name in CASES if FEATURES[name].reader])
def test_the_slow_way_waits_until_no_version_shows_it(tmp_path: Path, feature: str) -> None:
    table = prepared(tmp_path, feature)
    before = content(table)
    shows_itself = bool(REMOVALS[feature].traces(table.snapshot())) and feature not in ("typeWidening", "vacuumProtocolCheck")
    if shows_itself:
        assert "24 hours" in str(table.drop_feature(feature, truncate_history=True, dry_run=True).obstacle)
        assert (
            code_of(lambda: table.drop_feature(feature, truncate_history=True)) == "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD"
        )
        assert (
            code_of(lambda: table.drop_feature(feature, truncate_history=True)) == "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST"
        )
        assert "shows the feature" in str(table.drop_feature(feature, truncate_history=True, dry_run=True).obstacle)
        table.clock.hours = 25
    dropped = table.drop_feature(feature, truncate_history=True)
    actual = reread(table)
    assert features_of(dropped.protocol) == {"appendOnly", "invariants"} and dropped.protocol == Protocol(1, 2)
    assert content(actual) == before and actual.check() == []
    if shows_itself:
        with pytest.raises(NotFound):
            actual.to_arrow(version=1)
    assert json.loads(json.dumps(actual.history(1)[0]["operationParameters"])) == {
        "featureName": feature,
        "truncateHistory": "true",
    }


def test_without_the_fast_way_history_goes_by_the_tables_own_retention(tmp_path: Path) -> None:
    table = prepared(tmp_path, "deletionVectors")
    with pytest.raises(InvalidRequest, match=r"720 hours have passed \(delta.logRetentionDuration\)") as error:
        table.drop_feature("deletionVectors", is_fast=False)
    assert error.value.code == "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD"
    table.clock.hours = 25
    assert code_of(lambda: table.drop_feature("deletionVectors", is_fast=False)) == "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST"
    table.clock.hours = 24 * 32
    assert table.drop_feature("deletionVectors", is_fast=False).protocol == Protocol(1, 2)


def test_protected_checkpoints_stay_until_all_before_them_goes(tmp_path: Path) -> None:
    table = prepared(tmp_path, "deletionVectors")
    version = table.drop_feature("deletionVectors").version
    assert version is not None
    assert code_of(lambda: table.drop_feature("checkpointProtection")) == (
        "DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION"
    )
    wait = "DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD"
    assert code_of(lambda: table.drop_feature("checkpointProtection", truncate_history=True)) == wait
    assert "24 hours" in str(table.drop_feature("checkpointProtection", truncate_history=True, dry_run=True).obstacle)
    assert code_of(lambda: table.unset_properties(["delta.requireCheckpointProtectionBeforeVersion"])) == (
        "DELTA_CANNOT_MODIFY_TABLE_PROPERTY"
    )
    table.restore(version=2)
    after = reread(table).snapshot()
    assert after.metadata.configuration["delta.requireCheckpointProtectionBeforeVersion"] == str(version)
    table.drop_feature("deletionVectors") if "deletionVectors" in after.config.features else None
    table.clock.hours = 25
    before = content(table)
    assert table.drop_feature("checkpointProtection", truncate_history=True).protocol == Protocol(1, 2)
    actual = reread(table)
    assert (
        content(actual) == before
        and "delta.requireCheckpointProtectionBeforeVersion" not in actual.snapshot().metadata.configuration
    )
    with pytest.raises(NotFound):
        actual.to_arrow(version=version - 1)


REFUSALS = {
    "not there": ("deletionVectors", {}, "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT"),
    "no feature": ("anInvention", {}, "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE"),
    "a property": ("delta.enableDeletionVectors", {}, "DELTA_FEATURE_DROP_FEATURE_IS_DELTA_PROPERTY"),
    "no way back": ("appendOnly", {}, "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE"),
    "needed by another": ("domainMetadata", {"delta.enableRowTracking": "true"}, "DELTA_FEATURE_DROP_DEPENDENT_FEATURE"),
    "needed by Iceberg": ("columnMapping", {"delta.enableIcebergCompatV2": "true"}, "DELTA_FEATURE_DROP_DEPENDENT_FEATURE"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_features_that_cannot_be_dropped_are_refused_with_the_class_of_the_reference(tmp_path: Path, case: str) -> None:
    feature, properties, code = REFUSALS[case]
    table = made(tmp_path, properties)
    before = table.version()
    for dry_run in (True, False):
        assert code_of(lambda: table.drop_feature(feature, dry_run=dry_run)) == code  # noqa: B023
    assert table.version() == before


def test_every_feature_without_a_way_back_is_refused(tmp_path: Path) -> None:
    coordinator = SqlCoordinator(f"sqlite:///{tmp_path}.db")
    table = Table.create(tmp_path, SCHEMA, cluster_by=["id"], coordinator=coordinator)
    for name, row in FEATURES.items():
        if row.supports(Use.WRITE) and row.removal is None and not row.forbids:
            if name not in table.snapshot().config.features:
                table.add_feature(name)
            assert code_of(lambda: table.drop_feature(name)) == "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE", name  # noqa: B023


def test_features_of_writers_truncate_nothing(tmp_path: Path) -> None:
    table = prepared(tmp_path, "rowTracking")
    code = code_of(lambda: table.drop_feature("rowTracking", truncate_history=True))
    assert code == "DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED"


def test_constraints_go_first(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.add_constraint("positive", "id >= 0")
    assert "positive" in str(table.drop_feature("checkConstraints", dry_run=True).obstacle)
    assert code_of(lambda: table.drop_feature("checkConstraints")) == "DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE"
    table.drop_constraint("positive")
    assert table.drop_feature("CHECKconstraints").protocol == Protocol(1, 2)


def test_a_protocol_by_numbers_lists_its_remaining_features(tmp_path: Path) -> None:
    table = made(tmp_path, {"delta.minWriterVersion": "4"})
    remaining = {"appendOnly", "invariants", "changeDataFeed", "generatedColumns"}
    assert table.drop_feature("checkConstraints").protocol == Protocol(1, 7, None, frozenset(remaining))


# -- remains of a feature ----------------------------------------------------------------------------------------------------


def test_names_of_columns_become_those_that_users_see(tmp_path: Path) -> None:
    table = Table.create(
        tmp_path, SCHEMA, cluster_by=["name"], properties={"delta.columnMapping.mode": "name", "delta.enableRowTracking": "true"}
    )
    table.append(rows(0, "a"))
    table.rename_column("name", "label")
    table.drop_columns(["part"])
    ids = table.to_arrow(row_ids=True).select(["id", "_row_id"]).to_pylist()
    table.drop_feature("columnMapping")
    actual = reread(table)
    assert actual.check(deep=True) == [] and actual.to_arrow(row_ids=True).select(["id", "_row_id"]).to_pylist() == ids
    assert actual.detail()["clusteringColumns"] == ["label"]
    assert all(not column.metadata for column in actual.schema()) and actual.schema().names == ["id", "label"]
    import pyarrow.parquet as pq

    stored = pq.read_schema(tmp_path / actual.files()["path"][0].as_py()).names
    assert stored[:2] == ["id", "label"] and "part" not in stored


def test_names_that_files_cannot_have_keep_column_mapping(tmp_path: Path) -> None:
    table = Table.create(tmp_path, pa.schema([("a b", pa.int64())]), properties={"delta.columnMapping.mode": "name"})
    assert code_of(lambda: table.drop_feature("columnMapping")) == "DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING"
    assert table.version() == 0


def test_files_from_before_a_column_was_widened_are_written_again_and_no_others(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("small", pa.int16()), ("deep", pa.struct([("n", pa.list_(pa.float32()))]))])
    table = Table.create(tmp_path, schema, properties={"delta.enableTypeWidening": "true"}, clock=Later())
    table.append(pa.table({"id": [1, 2], "small": [1, 2], "deep": [{"n": [1.5]}, None]}, schema))
    _widen(table)
    table.append(pa.table({"id": [3], "small": [100_000], "deep": [{"n": [0.1]}]}))
    old, before = set(table.files(filter="id < 3")["path"].to_pylist()), content(table)
    assert table.drop_feature("typeWidening", dry_run=True).files == 1
    table.drop_feature("typeWidening")
    actual = reread(table)
    assert content(actual) == before and actual.check(deep=True) == []
    assert not old & set(actual.files()["path"].to_pylist()) and len(actual.files()) == 2
    assert "typeChanges" not in actual.snapshot().metadata.schema_string


def _widen(table: Table) -> None:
    """As another writer does it: the metadata alone changes."""
    transaction = table.begin()
    metadata = transaction.existing().metadata
    schema = json.loads(metadata.schema_string)
    small, deep = schema["fields"][1], schema["fields"][2]["type"]["fields"][0]
    small["type"], deep["type"]["elementType"] = "integer", "double"
    small["metadata"] = {"delta.typeChanges": [{"fromType": "short", "toType": "integer"}]}
    deep["metadata"] = {"delta.typeChanges": [{"fromType": "float", "toType": "double", "fieldPath": "element"}]}
    transaction.set_metadata(replace(metadata, schema_string=json.dumps(schema)))
    table.commit(transaction, Operation("CHANGE COLUMN"))


def test_files_of_vectors_get_tombstones_of_their_own_once(tmp_path: Path) -> None:
    table = prepared(tmp_path, "deletionVectors")
    named = [entry.name for entry in table.store.walk() if entry.name.endswith(".bin")]
    table.drop_feature("deletionVectors")
    actual = reread(table)
    removed = actual.snapshot().tombstones().to_pylist()
    assert set(named) <= {row["path"] for row in removed if row["deletionVector"] is None}
    remaining = actual.vacuum(0, retention_check=False, dry_run=True).plan.files
    assert {entry.name for entry in remaining} >= set(named)  # once retention has passed they go, as other files do
    assert not {entry.name for entry in actual.vacuum(dry_run=True).plan.files} & set(named)


def test_a_table_read_from_a_v2_checkpoint_is_not_left_so(tmp_path: Path) -> None:
    table = prepared(tmp_path, "v2Checkpoint")
    assert depends_on_v2_checkpoint(table.snapshot())
    table.set_properties({"delta.checkpointPolicy": "classic"})
    table.drop_feature("v2Checkpoint")
    assert not depends_on_v2_checkpoint(Snapshot.at(table.store))


def test_row_ids_start_again_after_the_feature_comes_back(tmp_path: Path) -> None:
    table = prepared(tmp_path, "rowTracking")
    table.drop_feature("rowTracking")
    actual = reread(table)
    assert actual.files()["baseRowId"].null_count == actual.snapshot().num_files
    assert "delta.rowTracking" not in actual.snapshot().state.domains and not any(
        "row" in key.lower() for key in actual.snapshot().metadata.configuration
    )
    actual.set_properties({"delta.enableRowTracking": "true"})
    assert (
        len(set(actual.to_arrow(row_ids=True)["_row_id"].to_pylist())) == len(content(actual)) and actual.check(deep=True) == []
    )


# -- others at work ----------------------------------------------------------------------------------------------------------


class Meddled(Table):
    """A table into which another writer commits before certain commits of this one."""

    meddlers: dict[str, list[Callable[[Table], object]]]

    def commit(self, transaction: Transaction, operation: Operation, *, user_metadata: str | None = None) -> Committed:
        waiting = self.meddlers.get(operation.name, [])
        if waiting:
            waiting.pop(0)(reread(self))
        return super().commit(transaction, operation, user_metadata=user_metadata)


def meddled(table: Table, meddlers: dict[str, list[Callable[[Table], object]]]) -> Meddled:
    actual = Meddled(table.url.removeprefix("file://"), clock=table.clock)
    actual.meddlers = meddlers
    return actual


@pytest.mark.parametrize("step", ["UNSET TBLPROPERTIES", "REORG", "DROP FEATURE"])
def test_concurrent_commits_stay_and_have_no_trace_of_the_feature(tmp_path: Path, step: str) -> None:
    table = prepared(tmp_path, "deletionVectors")
    before = content(table)
    ours = meddled(table, {step: [lambda other: other.append(rows(100, "c")), lambda other: other.delete("id = 101")]})
    ours.drop_feature("deletionVectors")
    actual = reread(table)
    added = rows(100, "c").to_pylist()
    assert content(actual) in (sorted([*before, *added], key=str), sorted([*before, *added[:1], *added[2:]], key=str))
    assert actual.files()["deletionVector"].null_count == actual.snapshot().num_files and actual.check(deep=True) == []


def test_rows_that_come_while_column_mapping_goes_are_there(tmp_path: Path) -> None:
    table = prepared(tmp_path, "columnMapping")
    before, new = content(table), {"id": 500, "label": "x", "section": "z"}
    ours = meddled(table, {"REMOVE COLUMN MAPPING": [lambda other: other.append(pa.Table.from_pylist([new]))]})
    ours.drop_feature("columnMapping")
    assert content(reread(table)) == sorted([*before, new], key=str)


def test_a_feature_that_is_brought_back_meanwhile_stays(tmp_path: Path) -> None:
    table = prepared(tmp_path, "deletionVectors")
    back = lambda other: other.set_properties({"delta.enableDeletionVectors": "true"})  # noqa: E731
    ours = meddled(table, {"DROP FEATURE": [back]})
    assert code_of(lambda: ours.drop_feature("deletionVectors")) == "DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL"
    assert "deletionVectors" in reread(table).snapshot().config.features


def test_nothing_is_dropped_behind_checkpoints_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = prepared(tmp_path, "deletionVectors")
    monkeypatch.setattr(module, "checkpoint_snapshot", lambda *_: None)
    with pytest.raises(StorageFailure) as error:
        table.drop_feature("deletionVectors")
    assert error.value.code == "DELTA_FEATURE_DROP_CHECKPOINT_FAILED"
    assert "deletionVectors" in reread(table).snapshot().config.features


def test_a_table_of_features_that_are_not_written_is_refused(tmp_path: Path) -> None:
    table = made(tmp_path)
    log = tmp_path / "_delta_log" / f"{table.version() + 1:020d}.json"
    protocol = {
        "minReaderVersion": 1,
        "minWriterVersion": 7,
        "writerFeatures": ["coordinatedCommits-preview", "appendOnly", "invariants"],
    }
    log.write_text(json.dumps({"protocol": protocol}) + "\n")
    with pytest.raises(Unsupported) as error:
        reread(table).drop_feature("coordinatedCommits-preview")
    assert error.value.code == "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE"
