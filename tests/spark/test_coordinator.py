"""Catalog-managed tables through every entry point of a classic session: ratified, unpublished commits are visible everywhere."""

from __future__ import annotations

import pytest

import tahoe
from tahoe.api.table import Table
from tahoe.base.exceptions import Unsupported
from tahoe.coordinator.coordinated_store import CoordinatedStore
from tahoe.log.files.paths import STAGED_FOLDER
from tahoe.spark.jvm.storage import COORDINATOR
from tahoe.store.log_store import Refused
from tahoe.store.object_store import open_store
from tahoe.testing.faulty_store import WrappedStore


class WithoutPublishing(WrappedStore):
    def _call(self, method, name, run):
        is_commit = method == "put_if_absent" and name.startswith("_delta_log/0")
        return Refused("not now") if is_commit else run()


@pytest.fixture
def coordinator(spark, tmp_path):
    coordinator = tahoe.SqlCoordinator(f"sqlite:///{tmp_path}/c.db")
    tahoe.enable(spark, coordinator=coordinator)
    yield coordinator
    spark.conf.unset(COORDINATOR)


def test_a_managed_table_is_made_read_changed_and_streamed_by_a_session(spark, tmp_path, coordinator):
    path = str(tmp_path / "t")
    name = f"delta.`{path}`"
    spark.sql(f"CREATE TABLE {name} (id BIGINT) USING delta TBLPROPERTIES ('delta.feature.catalogManaged' = 'supported')")
    spark.range(3).write.format("delta").mode("append").save(path)
    table = Table(path, coordinator=coordinator)
    assert table.version() == 1 and coordinator.managed([table.url])[table.url].last_version == 1
    # Unpublished commits can be read and changed.
    blocked = Table("", store=WithoutPublishing(open_store(path)), coordinator=coordinator)
    blocked.append(spark.range(3, 5).toArrow())
    assert open_store(path).head(f"_delta_log/{2:020d}.json") is None
    assert sorted(row.id for row in spark.read.format("delta").load(path).collect()) == [0, 1, 2, 3, 4]
    assert spark.sql(f"SELECT count(*) AS n FROM {name} VERSION AS OF 1").first().n == 3
    spark.sql(f"DELETE FROM {name} WHERE id = 0")
    assert [row.version for row in spark.sql(f"DESCRIBE HISTORY {name}").collect()] == [3, 2, 1, 0]
    query = (
        spark.readStream.format("delta")
        .load(path)
        .writeStream.format("delta")
        .option("checkpointLocation", f"{path}-state")
        .trigger(availableNow=True)
        .start(f"{path}-copy")
    )
    query.awaitTermination()
    assert sorted(row.id for row in spark.read.format("delta").load(f"{path}-copy").collect()) == [1, 2, 3, 4]
    spark.sql(f"ALTER TABLE delta.`{path}-copy` SET TBLPROPERTIES ('delta.feature.catalogManaged' = 'supported')")
    spark.sql(f"INSERT INTO delta.`{path}-copy` VALUES (9)")
    assert open_store(f"{path}-copy").list_from(STAGED_FOLDER)
    spark.sql(f"CREATE TABLE delta.`{path}-clone` SHALLOW CLONE {name}")
    clone = Table(f"{path}-clone")
    assert not clone.snapshot().config.features & {"catalogManaged"}
    assert isinstance(table.store, CoordinatedStore) and table.check(strict=True) == []


def test_a_session_without_the_coordinator_refuses_the_table_by_name(spark, tmp_path, coordinator):
    path = str(tmp_path / "t")
    properties = {"delta.feature.catalogManaged": "supported"}
    Table.create(path, spark.range(1).toArrow().schema, properties=properties, coordinator=coordinator)
    assert spark.read.format("delta").load(path).count() == 0
    spark.conf.unset(COORDINATOR)
    with pytest.raises(Exception, match="PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED"):
        spark.read.format("delta").load(path).count()
    with pytest.raises(Exception, match="UNSUPPORTED_CATALOG_MANAGED_TABLE_CREATION"):
        spark.sql(
            f"CREATE TABLE delta.`{path}2` (id BIGINT) USING delta TBLPROPERTIES ('delta.feature.catalogManaged' = 'supported')"
        )
    spark.conf.set(COORDINATOR, f"sqlite:///{tmp_path}/c.db")
    assert spark.read.format("delta").load(path).count() == 0


def test_a_session_of_spark_connect_takes_no_coordinator(tmp_path):
    class ConnectSession:
        read = None

    with pytest.raises(Unsupported, match="which know no coordinator"):
        tahoe.enable(ConnectSession(), coordinator=tahoe.SqlCoordinator(f"sqlite:///{tmp_path}/c.db"))


@pytest.fixture
def database(spark):
    spark.sql("CREATE DATABASE coordinated")
    yield "coordinated"
    spark.sql("DROP DATABASE IF EXISTS coordinated CASCADE")


def managed_versions(coordinator) -> dict[str, int]:
    rows = coordinator._database.rows("SELECT url, last_version FROM tahoe_tables", ())
    return {url.rpartition("/")[2]: version for url, version in rows}


def test_names_that_are_dropped_made_again_replaced_and_renamed_reach_the_coordinator(spark, coordinator, database):
    properties = "TBLPROPERTIES ('delta.feature.catalogManaged' = 'supported')"
    name = f"{database}.t"
    for rows in (3, 2):
        spark.sql(f"CREATE TABLE {name} USING delta {properties} AS SELECT * FROM range({rows})")
        spark.sql(f"INSERT INTO {name} VALUES (9)")
        assert spark.table(name).count() == rows + 1 and managed_versions(coordinator) == {"t": 1}
        spark.sql(f"DROP TABLE {name}")
        assert managed_versions(coordinator) == {}, "a table made again at the same place starts anew"
    spark.sql(f"CREATE TABLE {name} USING delta AS SELECT * FROM range(1)")  # a plain one, for once
    spark.sql(f"INSERT INTO {name} VALUES (9)")
    assert spark.table(name).count() == 2 and managed_versions(coordinator) == {}
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.sql(f"CREATE TABLE {name} (id BIGINT) USING delta {properties}")
    spark.sql(f"CREATE OR REPLACE TABLE {name} USING delta {properties} AS SELECT * FROM range(4)")
    assert spark.table(name).count() == 4 and managed_versions(coordinator) == {"t": 1}
    spark.sql(f"ALTER TABLE {name} RENAME TO {database}.u")
    assert managed_versions(coordinator) == {"u": 1}
    spark.sql(f"INSERT INTO {database}.u VALUES (9)")
    assert spark.table(f"{database}.u").count() == 5 and managed_versions(coordinator) == {"u": 2}
    spark.sql(f"DROP DATABASE {database} CASCADE")
    assert managed_versions(coordinator) == {}


def test_a_name_that_goes_from_a_table_which_stays_changes_nothing(spark, tmp_path, coordinator, database):
    table = Table.create(
        str(tmp_path / "t"),
        spark.range(1).toArrow().schema,
        properties={"delta.feature.catalogManaged": "supported"},
        coordinator=coordinator,
    )
    for name in ("t", "u"):
        spark.sql(f"CREATE TABLE {database}.{name} USING delta LOCATION '{table.url}'")
        spark.sql(f"INSERT INTO {database}.{name} VALUES (1)")
        spark.sql(f"DROP TABLE {database}.{name}")
    assert managed_versions(coordinator) == {"t": 2} and table.to_arrow().num_rows == 2


def test_the_portable_sources_option_is_refused_where_the_session_names_the_coordinator(spark, tmp_path):
    spark.range(1).write.format("delta").save(str(tmp_path / "t"))
    for use in (
        lambda: spark.read.format("delta").option("coordinator", "sqlite:///c.db").load(str(tmp_path / "t")),
        lambda: (
            spark.range(1).write.format("delta").mode("append").option("Coordinator", "sqlite:///c.db").save(str(tmp_path / "t"))
        ),
        lambda: spark.readStream.format("delta").option("coordinator", "sqlite:///c.db").load(str(tmp_path / "t")),
    ):
        with pytest.raises(Unsupported, match=r"spark\.tahoe\.coordinator") as caught:
            use()
        assert caught.value.code == "TAHOE_OPTION_NOT_SUPPORTED"
