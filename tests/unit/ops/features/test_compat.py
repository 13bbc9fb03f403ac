"""Which engines can use a table: the verdict, and a proof for each engine that is installed here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.ops.features.compat import compat_of, readers_of
from tahoe.ops.features.engines import ENGINES, Engine
from tahoe.protocol.actions import Protocol
from tahoe.protocol.config import TableConfig
from tahoe.protocol.features import FEATURES
from tests.interop.engines import read_deltalake, read_duckdb, read_polars

ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})
FEATURES_TRIED = {
    "": {},
    "deletionVectors": {"delta.enableDeletionVectors": "true"},
    "columnMapping": {"delta.columnMapping.mode": "name"},
    "v2Checkpoint": {"delta.checkpointPolicy": "v2"},
    "timestampNtz": {"delta.feature.timestampNtz": "supported"},
    "typeWidening": {"delta.enableTypeWidening": "true"},
    "vacuumProtocolCheck": {"delta.feature.vacuumProtocolCheck": "supported"},
    "inCommitTimestamp": {"delta.enableInCommitTimestamps": "true"},
    "changeDataFeed": {"delta.enableChangeDataFeed": "true"},
    "checkpointProtection": {"delta.feature.checkpointProtection": "supported"},
}


READERS: dict[str, Callable[[str], list[int]]] = {
    "deltalake (QueryBuilder, and writes)": lambda path: read_deltalake(path)["id"].to_pylist(),
    "deltalake (to_pyarrow, to_pandas)": lambda path: deltalake.DeltaTable(path).to_pyarrow_table()["id"].to_pylist(),
    "DuckDB (delta extension)": lambda path: read_duckdb(path)["id"].to_pylist(),
    "Polars (scan_delta)": lambda path: read_polars(path)["id"].to_pylist(),
}


@pytest.mark.parametrize("feature", FEATURES_TRIED)
def test_statements_about_the_installed_engines_are_true(tmp_path: Path, feature: str) -> None:
    table = Table.create(tmp_path, ROWS.schema, properties=FEATURES_TRIED[feature])
    table.append(ROWS)
    if feature == "deletionVectors":
        table.delete("id = 2")
    if feature == "columnMapping":
        table.rename_column("name", "label")
    table.checkpoint()
    expected = sorted(table.to_arrow()["id"].to_pylist())
    said = {item.engine: item for item in table.compat()}
    for engine, read in READERS.items():
        try:
            actual: list[int] | None = sorted(read(str(tmp_path)))
        except Exception:  # noqa: BLE001 - each engine has its own way to refuse
            actual = None
        assert said[engine].reads == ("yes" if actual == expected else "no"), (engine, actual)
    row = table.to_arrow().slice(0, 1)
    try:
        deltalake.write_deltalake(str(tmp_path), row, mode="append")
        writes = "yes"
    except Exception:  # noqa: BLE001
        writes = "no"
    assert said["deltalake (QueryBuilder, and writes)"].writes == writes


def config(protocol: Protocol, mode: str = "none") -> TableConfig:
    from tahoe.base.clock import SYSTEM_CLOCK
    from tahoe.ops.tables.create import new_metadata
    from tahoe.schema.arrow import from_arrow_schema

    properties = {} if mode == "none" else {"delta.columnMapping.mode": mode}
    return TableConfig(protocol, new_metadata(from_arrow_schema(ROWS.schema), SYSTEM_CLOCK, properties=properties), "t")


def answers(protocol: Protocol, engine: str, versions: str, mode: str = "none") -> tuple[str, str, str]:
    actual = next(item for item in compat_of(config(protocol, mode)) if (item.engine, item.versions) == (engine, versions))
    return actual.reads, actual.writes, actual.why


def named(*features: str) -> Protocol:
    return Protocol(3, 7, frozenset(features), frozenset(features))


def test_old_engines_know_numbers_alone() -> None:
    assert answers(Protocol(2, 5), "delta-spark", "2.0 to 2.2") == ("yes", "yes", "")
    assert answers(Protocol(1, 7, None, frozenset({"appendOnly"})), "delta-spark", "2.0 to 2.2")[:2] == ("yes", "no")
    assert answers(named("deletionVectors"), "delta-spark", "2.0 to 2.2") == ("no", "no", "deletionVectors")
    assert answers(named("columnMapping"), "delta-spark", "2.0 to 2.2") == ("no", "no", "it knows no features by name")


def test_engines_without_a_documented_answer_are_unknown_and_others_are_not() -> None:
    assert answers(named("v2Checkpoint"), "Amazon Athena", "engine version 3") == (
        "unknown",
        "no",
        "not said: v2Checkpoint; it writes no Delta tables",
    )
    assert answers(named("timestampNtz"), "Microsoft Fabric, SQL analytics endpoint", "2026")[0] == "no"
    assert answers(Protocol(2, 5), "Microsoft Fabric, SQL analytics endpoint", "2026", "id")[0] == "no"
    assert answers(Protocol(2, 5), "Microsoft Fabric, SQL analytics endpoint", "2026", "name")[0] == "yes"
    assert answers(named("anInvention"), "delta-spark", "4.0.1") == ("no", "no", "anInvention")


def test_releases_of_delta_spark_support_their_listed_features() -> None:
    assert answers(named("catalogManaged"), "delta-spark", "4.0.0") == ("no", "no", "catalogManaged")
    assert answers(named("catalogManaged"), "delta-spark", "4.0.1") == ("yes", "yes", "")
    assert answers(named("rowTracking"), "delta-spark", "3.1") == ("yes", "no", "to write: rowTracking")
    spark = [item for item in ENGINES if item.name == "delta-spark"]
    assert all(item.is_complete for item in spark)


def test_features_that_matter_only_if_used_have_no_answer() -> None:
    assert answers(Protocol(1, 3), "delta-kernel (Rust)", "0.27") == ("yes", "no", "to write: checkConstraints")
    assert answers(Protocol(1, 2), "delta-kernel (Rust)", "0.27") == (
        "yes",
        "unknown",
        "to write: only where not used: invariants",
    )
    assert answers(Protocol(1, 3), "delta-kernel (Java)", "4.4")[:2] == ("yes", "unknown")
    assert answers(named("typeWidening"), "delta-kernel (Rust)", "0.27") == ("yes", "no", "to write: typeWidening")


def test_a_plain_table_is_read_by_all() -> None:
    assert len(readers_of(Protocol(1, 2))) == len(ENGINES)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: f"{engine.name} {engine.versions}")
def test_rows_of_engines_name_features_that_there_are_and_their_sources(engine: Engine) -> None:
    assert {
        *engine.reads.split(),
        *(engine.writes or "").split(),
        *engine.refuses.split(),
        *engine.unless_used.split(),
    } <= FEATURES.keys()
    assert engine.source.startswith("https://")
