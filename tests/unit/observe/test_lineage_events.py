"""A commit as OpenLineage's events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from openlineage.client.serde import Serde

from tahoe.api.table import Table
from tahoe.observe.lineage_events import JOB, DatasetName, dataset_in_catalog, dataset_of, run_events
from tahoe.observe.lineage_facts import LineageFacts, facts_of
from tahoe.store.location import table_url
from tahoe.txn.commit import Committed


def complete_of(facts: LineageFacts, **environment: str) -> dict[str, Any]:
    """The last event of a commit, as it is sent."""
    return json.loads(Serde.to_json(run_events(facts, environment)[1]))


@pytest.fixture
def commits() -> list[Committed]:
    return []


def test_the_schema_facet_has_nested_fields_comments_and_positions(commits: list[Committed], memory_url: str) -> None:
    point = pa.struct([pa.field("x", pa.float64()), pa.field("tags", pa.list_(pa.string()))])
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("at", point), pa.field("m", pa.map_(pa.string(), pa.date32()))])
    table = Table(memory_url, hooks=[commits.append])
    table.append(schema.empty_table())
    table.change_column("id", comment="the key")
    fields = complete_of(facts_of(commits[-1]))["outputs"][0]["facets"]["schema"]["fields"]
    assert fields == [
        {"name": "id", "type": "long", "description": "the key", "ordinal_position": 1, "fields": []},
        {
            "name": "at",
            "type": "struct",
            "ordinal_position": 2,
            "fields": [
                {"name": "x", "type": "double", "ordinal_position": 1, "fields": []},
                {
                    "name": "tags",
                    "type": "array",
                    "ordinal_position": 2,
                    "fields": [{"name": "_element", "type": "string", "fields": []}],
                },
            ],
        },
        {
            "name": "m",
            "type": "map",
            "ordinal_position": 3,
            "fields": [{"name": "key", "type": "string", "fields": []}, {"name": "value", "type": "date", "fields": []}],
        },
    ]


def test_a_clone_has_its_source_as_an_input(commits: list[Committed], tmp_path: Path) -> None:
    Table(tmp_path / "source").append(pa.table({"id": [1]}))
    Table(tmp_path / "source").clone(Table(tmp_path / "copy", hooks=[commits.append]))
    event = complete_of(facts_of(commits[0]))
    assert [(at["namespace"], at["name"]) for at in event["inputs"]] == [("file", str(tmp_path / "source"))]
    assert [at["name"] for at in event["outputs"]] == [str(tmp_path / "copy")]


def test_the_names_in_hive_and_glue_are_symlinks(
    commits: list[Committed], memory_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"HMS__TYPE": "hive", "HMS__URI": "thrift://user:hunter2@metastore:9083", "OTHER__TYPE": "rest"}.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__{name}", value)
    table = Table(memory_url, hooks=[commits.append])
    table.append(pa.table({"id": [1]}))
    table.set_properties({"delta.universalFormat.config.iceberg.catalogs": "hms:db.flights,other:db.flights,none:db.flights"})
    event = complete_of(facts_of(commits[-1]))
    identifiers = event["outputs"][0]["facets"]["symlinks"]["identifiers"]
    assert identifiers == [{"namespace": "hive://metastore:9083", "name": "db.flights", "type": "TABLE"}]
    assert "hunter2" not in json.dumps(event)


def test_the_job_is_the_application_the_operation_and_the_table(
    commits: list[Committed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Table(tmp_path / "db" / "flights", hooks=[commits.append]).overwrite(pa.table({"id": [1]}))
    facts = facts_of(commits[0])
    monkeypatch.setattr("sys.argv", ["/jobs/nightly.py"])
    assert complete_of(facts)["job"]["name"] == "nightly.write.db_flights"
    assert complete_of(facts)["job"]["namespace"] == "default"
    assert complete_of(facts, **{JOB: "load"})["job"]["name"] == "load.write.db_flights"


def test_a_run_is_the_same_in_both_events_and_another_for_each_table_of_a_transaction(
    commits: list[Committed], memory_url: str
) -> None:
    Table(memory_url, hooks=[commits.append]).append(pa.table({"id": [1]}))
    facts = facts_of(commits[0])
    start, end = run_events(facts, {})
    assert start.run.runId == end.run.runId and (start.inputs, start.outputs) == ([], [])
    other = LineageFacts(
        "file:///other", facts.version, facts.timestamp_ms, facts.transaction_id, facts.summary, facts.metadata, ()
    )
    assert complete_of(other)["run"]["runId"] != end.run.runId


def test_a_parent_that_is_not_a_run_is_an_error_that_names_the_variable(commits: list[Committed], memory_url: str) -> None:
    Table(memory_url, hooks=[commits.append]).append(pa.table({"id": [1]}))
    with pytest.raises(ValueError, match="OPENLINEAGE_PARENT_ID"):
        run_events(facts_of(commits[0]), {"OPENLINEAGE_PARENT_ID": "only/two"})


# -- names of datasets ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "namespace", "name"),
    [
        ("/data/flights", "file", "/data/flights"),
        ("file:///data/my table", "file", "/data/my table"),
        ("s3://bucket/a/flights/", "s3://bucket", "a/flights"),
        ("s3a://bucket/flights", "s3://bucket", "flights"),
        ("s3://bucket", "s3://bucket", "/"),
        ("gs://bucket/flights", "gs://bucket", "flights"),
        (
            "abfss://lake@account.dfs.core.windows.net/a/flights",
            "abfss://lake@account.dfs.core.windows.net",
            "a/flights",
        ),
        ("memory://name/flights", "memory://name", "flights"),
    ],
)
def test_the_namespace_is_the_storage_and_the_name_the_path(path: str, namespace: str, name: str) -> None:
    assert dataset_of(table_url(path)) == DatasetName(namespace, name)


def test_the_names_are_those_of_openlineages_own_helpers() -> None:
    from openlineage.client.naming import dataset as naming

    abfss = naming.ABFSS("lake", "account", "a/flights")
    for path, rules in [
        ("/data/flights", naming.LocalFileSystem("/data/flights")),
        ("s3://bucket/a/flights", naming.S3("bucket", "a/flights")),
        ("gs://bucket/a/flights", naming.GCS("bucket", "a/flights")),
        ("abfss://lake@account.dfs.core.windows.net/a/flights", abfss),
    ]:
        assert dataset_of(table_url(path)) == DatasetName(rules.get_namespace(), rules.get_name())
    hive = dataset_in_catalog("db.flights", {"type": "hive", "uri": "thrift://metastore:9083"})
    assert hive == DatasetName(*(get() for get in _both(naming.Hive("metastore", "9083", "db", "flights"))))
    glue = dataset_in_catalog("db.flights", {"type": "glue", "glue.region": "eu-west-1", "glue.id": "123456789012"})
    assert glue == DatasetName(*(get() for get in _both(naming.AWSGlue("eu-west-1", "123456789012", "db", "flights"))))


def _both(rules):  # type: ignore[no-untyped-def]
    return rules.get_namespace, rules.get_name


@pytest.mark.parametrize(
    ("properties", "namespace"),
    [
        ({"uri": "thrift://metastore"}, "hive://metastore:9083"),
        ({"type": "hive", "uri": "thrift://user:secret@one:9999,thrift://two:9083"}, "hive://one:9999"),
        ({"type": "glue", "client.region": "eu-west-1", "glue.id": "1"}, "arn:aws:glue:eu-west-1:1"),
        ({"type": "glue", "glue.region": "eu-west-1"}, None),
        ({"type": "hive"}, None),
        ({"type": "sql", "uri": "sqlite:///x"}, None),
        ({}, None),
    ],
)
def test_a_catalog_without_a_known_address_gives_no_name(properties: dict[str, str], namespace: str | None) -> None:
    name = dataset_in_catalog("db.flights", properties)
    assert (None if name is None else name.namespace) == namespace
