"""The names of datasets follow OpenLineage's rules."""

from __future__ import annotations

import pytest

from tahoe.observe.lineage_events import DatasetName, dataset_in_catalog, dataset_of
from tahoe.store.location import table_url


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
