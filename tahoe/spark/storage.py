"""From what Spark knows of storage to the store that the log is read through: Hadoop's settings as the object store's options."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from pyspark.sql import SparkSession

from tahoe.spark.jvm import is_classic
from tahoe.store.location import split_url, table_url
from tahoe.table import Table

__all__ = ["storage_options", "table_at"]

_S3A = {
    "fs.s3a.access.key": "aws_access_key_id",
    "fs.s3a.secret.key": "aws_secret_access_key",
    "fs.s3a.session.token": "aws_session_token",
    "fs.s3a.endpoint": "aws_endpoint",
    "fs.s3a.endpoint.region": "aws_region",
}


def storage_options(path: str, hadoop: Mapping[str, str]) -> dict[str, str]:
    """The object store's options (`tahoe.store.object_store.open_store`) that say the same as Hadoop's settings."""
    if split_url(table_url(path))[0] != "s3":
        return {}
    found = {ours: hadoop[theirs] for theirs, ours in _S3A.items() if theirs in hadoop}
    endpoint = found.get("aws_endpoint")
    if endpoint is not None and "://" not in endpoint:
        secure = hadoop.get("fs.s3a.connection.ssl.enabled", "true").lower() == "true"
        found["aws_endpoint"] = f"{'https' if secure else 'http'}://{endpoint}"
    if found.get("aws_endpoint", "").startswith("http://"):
        found["allow_http"] = "true"
    if hadoop.get("fs.s3a.path.style.access", "false").lower() == "true":
        found["aws_virtual_hosted_style_request"] = "false"
    return found


def table_at(spark: SparkSession, path: str, options: Mapping[str, str]) -> Table:
    """The table at a path. One value is kept for each, so that its newest snapshot is read on, not read anew.

    Args:
        options: of the reader or writer; its ``fs.…`` settings win over the session's.
    """
    url = table_url(path)
    if split_url(url)[0] != "s3":
        return _table(url, ())
    return _table(url, tuple(sorted(storage_options(path, _hadoop(spark, options)).items())))


@lru_cache(maxsize=128)
def _table(url: str, options: tuple[tuple[str, str], ...]) -> Table:
    return Table(url, storage_options=dict(options))


def _hadoop(spark: SparkSession, options: Mapping[str, str]) -> dict[str, str]:
    """Hadoop's settings for S3: those of the session, and over them those of the options."""
    found: dict[str, str] = {}
    if is_classic(spark):
        configuration = spark._jsparkSession.sessionState().newHadoopConf()
        for key in (*_S3A, "fs.s3a.path.style.access", "fs.s3a.connection.ssl.enabled"):
            value = configuration.get(key)
            if value:
                found[key] = str(value)
    return {**found, **{key: value for key, value in options.items() if key.startswith("fs.")}}
