"""The names of tables as OpenLineage's datasets, by its naming rules (https://openlineage.io/docs/spec/naming)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from tahoe.store.location import split_url

_HIVE_PORT = 9083


@dataclass(frozen=True, slots=True)
class DatasetName:
    """The identity of a dataset in OpenLineage."""

    namespace: str
    name: str


def dataset_of(url: str) -> DatasetName:
    """Return the name of the table at a URL, as `LogStore.url` spells it.

    A local folder is in the namespace ``file``; one in an object store in that of its bucket: ``s3://bucket``, ``gs://bucket``,
    ``abfss://container@account.dfs.core.windows.net``. A name begins with a slash only where OpenLineage's does, for local folders.
    """
    scheme, authority, path = split_url(url)
    if scheme == "file":
        return DatasetName("file", f"/{path}")
    return DatasetName(f"{scheme}://{authority}", path or "/")


def dataset_in_catalog(identifier: str, properties: Mapping[str, str]) -> DatasetName | None:
    """Return the name of a table in a Hive metastore or in AWS Glue; None for another kind of catalog, or without its address.

    Args:
        identifier: ``<namespace>.<table>``.
        properties: the catalog's configuration in PyIceberg.
    """
    database, _, table = identifier.rpartition(".")
    kind, address = properties.get("type", ""), properties.get("uri", "")
    if kind == "hive" or (not kind and address.startswith("thrift://")):
        parts = urlsplit(address.split(",")[0])
        return DatasetName(f"hive://{parts.hostname}:{parts.port or _HIVE_PORT}", identifier) if parts.hostname else None
    if kind == "glue":
        region = properties.get("glue.region") or properties.get("client.region")
        account = properties.get("glue.id")
        return DatasetName(f"arn:aws:glue:{region}:{account}", f"table/{database}/{table}") if region and account else None
    return None
