"""The OpenLineage events of a commit, built and sent with OpenLineage's own client, which reads OpenLineage's configuration.

Runs in the thread of `tahoe.observe.lineage_queue.LineageQueue`; only there the client is imported.
"""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tahoe.base.exceptions import InvalidRequest
from tahoe.base.missing_extra import MissingExtra
from tahoe.base.version import __version__
from tahoe.observe.lineage_facts import LineageFacts
from tahoe.schema.types import ArrayType, DataType, MapType, StructField, StructType
from tahoe.store.location import split_url
from tahoe.uniform.catalogs.configured import catalog_names, catalog_properties

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient
    from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent
    from openlineage.client.facet_v2 import DatasetFacet, RunFacet
    from openlineage.client.generated.schema_dataset import SchemaDatasetFacetFields

JOB = "TAHOE_OPENLINEAGE_JOB"
"""The environment variable with the application's name in the names of jobs."""

_HIVE_PORT = 9083
_PRODUCER = f"urn:tahoe-delta:{__version__}"


def send(facts: LineageFacts) -> None:
    """Send the events of a commit. Raises `MissingExtra`, and the errors of the client's configuration and transport."""
    client = _client()
    for event in run_events(facts, os.environ):
        client.emit(event)


@lru_cache(maxsize=1)
def _client() -> OpenLineageClient:
    try:
        from openlineage.client import OpenLineageClient
    except ImportError as error:
        raise MissingExtra(
            "TAHOE_OPENLINEAGE is set, and OpenLineage's client is not installed: pip install 'tahoe-delta[openlineage]'.",
            package="openlineage",
            extra="openlineage",
        ) from error
    return OpenLineageClient()


def run_events(facts: LineageFacts, environment: Mapping[str, str]) -> list[RunEvent]:
    """Return the events of a commit: START, which the specification requires of each run, and COMPLETE with the datasets."""
    from openlineage.client.event_v2 import InputDataset, RunEvent, RunState

    run, job = _run(facts, environment), _job(facts, environment)
    time = datetime.fromtimestamp(facts.timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds")
    inputs: list[InputDataset] = [InputDataset(at.namespace, at.name) for at in map(dataset_of, facts.inputs)]
    start = RunEvent(eventType=RunState.START, eventTime=time, run=run, job=job, producer=_PRODUCER)
    outputs = [_output(facts)]
    end = RunEvent(
        eventType=RunState.COMPLETE, eventTime=time, run=run, job=job, inputs=inputs, outputs=outputs, producer=_PRODUCER
    )
    return [start, end]


def _run(facts: LineageFacts, environment: Mapping[str, str]) -> Run:
    """Return the run of a commit, a child of the scheduler's run if that has passed its own as ``OPENLINEAGE_PARENT_ID``."""
    from openlineage.client.event_v2 import Run
    from openlineage.client.facet_v2 import parent_run, processing_engine_run

    facets: dict[str, RunFacet] = {
        "processing_engine": processing_engine_run.ProcessingEngineRunFacet(__version__, "tahoe", producer=_PRODUCER)
    }
    if parent := environment.get("OPENLINEAGE_PARENT_ID"):
        parts = parent.rsplit("/", 2)
        if len(parts) != 3:
            raise InvalidRequest(
                f"OPENLINEAGE_PARENT_ID is '{parent}'; expected <namespace>/<job>/<run id>.", code="DELTA_ILLEGAL_OPTION"
            )
        namespace, name, run_id = parts
        facets["parent"] = parent_run.ParentRunFacet(
            run=parent_run.Run(runId=run_id), job=parent_run.Job(namespace=namespace, name=name), producer=_PRODUCER
        )
    # The commits of a transaction over several tables share a transaction id, and each has a run of its own.
    return Run(runId=str(uuid.uuid5(uuid.UUID(facts.transaction_id), facts.table)), facets=facets)


def _job(facts: LineageFacts, environment: Mapping[str, str]) -> Job:
    """Return the job: the application, the operation and the table, so that each has its own history of runs."""
    from openlineage.client.event_v2 import Job
    from openlineage.client.facet_v2 import job_type_job

    application = environment.get(JOB) or PurePath(sys.argv[0] if sys.argv else "").stem or "python"
    operation = "_".join(facts.summary.operation.lower().split())
    table = "_".join(dataset_of(facts.table).name.strip("/").split("/")[-2:])
    kind = job_type_job.JobTypeJobFacet("BATCH", "TAHOE", "COMMAND", producer=_PRODUCER)
    namespace = environment.get("OPENLINEAGE_NAMESPACE") or "default"
    return Job(namespace, f"{application}.{operation}.{table}", facets={"jobType": kind})


def _output(facts: LineageFacts) -> OutputDataset:
    from openlineage.client.event_v2 import OutputDataset
    from openlineage.client.facet_v2 import output_statistics_output_dataset as statistics

    summary, at = facts.summary, dataset_of(facts.table)
    written = statistics.OutputStatisticsOutputDatasetFacet(
        rowCount=summary.rows_written, size=summary.bytes_added, fileCount=summary.files_added, producer=_PRODUCER
    )
    return OutputDataset(at.namespace, at.name, facets=_facets(facts), outputFacets={"outputStatistics": written})


def _facets(facts: LineageFacts) -> dict[str, DatasetFacet]:
    from openlineage.client.facet_v2 import (
        dataset_version_dataset,
        lifecycle_state_change_dataset,
        schema_dataset,
        storage_dataset,
        symlinks_dataset,
    )

    facets: dict[str, DatasetFacet] = {
        "schema": schema_dataset.SchemaDatasetFacet(fields=_fields(facts.metadata.schema), producer=_PRODUCER),
        "version": dataset_version_dataset.DatasetVersionDatasetFacet(str(facts.version), producer=_PRODUCER),
        "storage": storage_dataset.StorageDatasetFacet("delta", "parquet", producer=_PRODUCER),
    }
    if facts.summary.lifecycle is not None:
        change = lifecycle_state_change_dataset.LifecycleStateChange[facts.summary.lifecycle]
        facets["lifecycleStateChange"] = lifecycle_state_change_dataset.LifecycleStateChangeDatasetFacet(
            change, producer=_PRODUCER
        )
    if names := _names_in_catalogs(facts.metadata.configuration):
        identifiers = [symlinks_dataset.Identifier(at.namespace, at.name, "TABLE") for at in names]
        facets["symlinks"] = symlinks_dataset.SymlinksDatasetFacet(identifiers, producer=_PRODUCER)
    return facets


def _names_in_catalogs(configuration: Mapping[str, str]) -> list[DatasetName]:
    """Return the table's names in the Hive metastores and Glue catalogs in which UniForm registers it."""
    named = [name.split(":", 1) for name in catalog_names(configuration)]
    datasets = [dataset_in_catalog(identifier, catalog_properties(catalog)) for catalog, identifier in named]
    return [name for name in datasets if name is not None]


def _fields(schema: StructType) -> list[SchemaDatasetFacetFields]:
    return [_field(column, position) for position, column in enumerate(schema, start=1)]


def _field(column: StructField, position: int | None) -> SchemaDatasetFacetFields:
    from openlineage.client.generated.schema_dataset import SchemaDatasetFacetFields

    comment = column.metadata.get("comment")
    description = None if comment is None else str(comment)
    return SchemaDatasetFacetFields(column.name, _type_name(column.data_type), description, position, _nested(column.data_type))


def _type_name(kind: DataType) -> str:
    if isinstance(kind, StructType):
        return "struct"
    return "array" if isinstance(kind, ArrayType) else "map" if isinstance(kind, MapType) else str(kind)


def _nested(kind: DataType) -> list[SchemaDatasetFacetFields]:
    """Return the fields of a struct, and the parts of an array or map under the names that OpenLineage's rules give them."""
    if isinstance(kind, StructType):
        return [_field(column, position) for position, column in enumerate(kind, start=1)]
    if isinstance(kind, ArrayType):
        return [_field(StructField("_element", kind.element_type), None)]
    if isinstance(kind, MapType):
        return [_field(StructField("key", kind.key_type), None), _field(StructField("value", kind.value_type), None)]
    return []


# -- names of datasets (https://openlineage.io/docs/spec/naming) -------------------------------------------------------------------


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
