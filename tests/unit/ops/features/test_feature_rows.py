"""The table of docs/features.md, row by row: each feature is read, written, added to a table that is there, dropped and shown to Iceberg, or
refused with the reference's class."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.exceptions import TahoeError, Unsupported
from tahoe.coordinator.sql_coordinator import SqlCoordinator
from tahoe.ops.features.removals import REMOVALS
from tahoe.protocol.features import COORDINATED, FEATURES, Use
from tests.interop.engines import canonical
from tests.interop.iceberg import read_pyiceberg

ROWS = pa.table({"id": [1, 2], "name": ["a", "b"]})
FEED = {"delta.enableChangeDataFeed": "true"}
UNIFORM = {
    "delta.enableIcebergCompatV2": "true",
    "delta.columnMapping.mode": "name",
    "delta.universalFormat.enabledFormats": "iceberg",
}


def again(path: Path, feature: str) -> Table:
    """The table as it is read with a feature: with its coordinator, where it needs one."""
    return Table(path, coordinator=SqlCoordinator(f"sqlite:///{path}.db") if feature in COORDINATED else None)


def made(path: Path, properties: dict[str, str] | None = None, feature: str = "") -> Table:
    coordinator = again(path, feature).store.coordinator if feature in COORDINATED else None  # type: ignore[attr-defined]
    table = Table.create(path, ROWS.schema, properties=properties or FEED, coordinator=coordinator)
    table.append(ROWS)
    return table


def bring(table: Table, feature: str) -> None:
    """As a user does it."""
    if feature == "clustering":
        table.cluster_by(["id"])
    else:
        table.add_feature(feature)


def have(path: Path, feature: str) -> Table:
    """As by another writer, which supports features that Tahoe does not write."""
    version = made(path).version() + 1
    names = ["appendOnly", "invariants", feature]
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": names}
    if FEATURES[feature].reader:
        protocol |= {"minReaderVersion": 3, "readerFeatures": [feature]}
    (path / "_delta_log" / f"{version:020d}.json").write_text(json.dumps({"protocol": protocol}) + "\n")
    return Table(path)


@pytest.mark.parametrize("feature", FEATURES)
def test_the_table_of_features_is_true(tmp_path: Path, feature: str) -> None:
    row, table = FEATURES[feature], made(tmp_path / "t", feature=feature)
    if not row.supports(Use.WRITE):
        code = f"DELTA_UNSUPPORTED_FEATURES_FOR_{'WRITE' if row.supports(Use.READ) else 'READ'}"
        with pytest.raises(Unsupported, match=feature) as refused:
            bring(table, feature)
        assert refused.value.code == code and table.version() == 1
        theirs = have(tmp_path / "theirs", feature)
        if row.supports(Use.READ):
            assert theirs.to_arrow()["id"].to_pylist() == [1, 2]
        if row.supports(Use.FEED):
            assert theirs.changes(1)["id"].to_pylist() == [1, 2]
        for use in (theirs.append,) if row.supports(Use.READ) else (theirs.append, lambda _: theirs.to_arrow()):
            with pytest.raises(Unsupported, match=feature) as refused:
                use(ROWS)
            assert refused.value.code == code
        return
    bring(table, feature)
    table.append(ROWS)
    assert feature in again(tmp_path / "t", feature).snapshot().config.features
    assert sorted(again(tmp_path / "t", feature).to_arrow()["id"].to_pylist()) == [1, 1, 2, 2] and table.check() == []
    assert row.supports(Use.FEED) and sorted(again(tmp_path / "t", feature).changes(1)["id"].to_pylist()) == [1, 1, 2, 2]
    if feature in REMOVALS and feature != "checkpointProtection":
        table.drop_feature(feature)
        assert feature not in Table(tmp_path / "t").snapshot().config.features
        return
    with pytest.raises(TahoeError) as refused:
        table.drop_feature(feature)
    protection = "DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION"
    assert refused.value.code == (protection if feature in REMOVALS else "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE")


@pytest.mark.parametrize("feature", [name for name, row in FEATURES.items() if row.supports(Use.WRITE)])
def test_a_table_with_the_feature_is_read_by_a_reader_of_iceberg(tmp_path: Path, feature: str) -> None:
    table = made(tmp_path / "t", UNIFORM, feature)
    bring(table, feature)
    table.append(ROWS)
    status = table.uniform.sync()
    assert status.version == table.version()
    assert canonical(read_pyiceberg(status.metadata_location)) == canonical(table.to_arrow()) and len(table.to_arrow()) == 4


@pytest.mark.parametrize("version", [1, 2])
def test_vectors_and_the_compatibility_that_forbids_them_exclude_each_other(tmp_path: Path, version: int) -> None:
    table = made(tmp_path, {f"delta.enableIcebergCompatV{version}": "true", "delta.columnMapping.mode": "name"})
    with pytest.raises(TahoeError) as refused:
        table.set_properties({"delta.enableDeletionVectors": "true"})
    assert str(refused.value.code).startswith("DELTA_ICEBERG_COMPAT_VIOLATION")
