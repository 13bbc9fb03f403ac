"""The traces of each feature in a table, and the commits that remove them: one `Removal` for each feature that can be dropped.

These commits come before the protocol change. They remove the properties that enable the feature first, so that writers that start
later do not add traces again (PROTOCOL.md has no section on this; the order is delta-spark's).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tahoe.base.exceptions import InvalidRequest
from tahoe.base.progress import Progress
from tahoe.base.wording import counted
from tahoe.log.files.live_files import canonical_path, remove_files
from tahoe.log.replay import add_files
from tahoe.ops.features.plain_columns import (
    files_of_other_types,
    has_type_changes,
    is_mapped,
    stage_without_mapping,
    stage_without_type_changes,
)
from tahoe.ops.tables.alter import stage_changed_properties
from tahoe.ops.tables.cluster_by import clustered_by, stage_cluster_by
from tahoe.ops.write.rewrite import stage_rewrite
from tahoe.protocol.actions import Action, AddFile, DomainMetadata, Metadata, Protocol, RemoveFile
from tahoe.protocol.clustering import DOMAIN as CLUSTERING_DOMAIN
from tahoe.protocol.config import TableConfig
from tahoe.protocol.dv import file_name
from tahoe.protocol.features import ENFORCED, FEATURES, Feature, TableFeature, Use
from tahoe.protocol.properties import CONSTRAINT_PREFIX, TableProperties
from tahoe.protocol.row_tracking import DOMAIN as ROW_TRACKING_DOMAIN
from tahoe.protocol.row_tracking import ENABLED, MATERIALIZED_ROW_COMMIT_VERSION, MATERIALIZED_ROW_ID, SUSPENDED
from tahoe.settings.property_settings import property_text
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.location import encode_path
from tahoe.txn.commit import Committed
from tahoe.txn.retries import retried
from tahoe.txn.transaction import Operation, Transaction

_VECTORS, _WIDENING, _POLICY = "delta.enableDeletionVectors", "delta.enableTypeWidening", "delta.checkpointPolicy"
_TIMES = "delta.enableInCommitTimestamps"
_TIMES_SINCE = ("delta.inCommitTimestampEnablementVersion", "delta.inCommitTimestampEnablementTimestamp")

Stage = Callable[[Transaction], Operation | None]


@dataclass(slots=True)
class Work:
    """Makes commits, and tries each again after a conflict with another writer.

    Args:
        begin, commit: `Table.begin` and `Table.commit`.
        progress: called with the numbers of footers read and of files rewritten.
        is_fast: whether the feature may be dropped while older versions still use it.
    """

    begin: Callable[[], Transaction]
    commit: Callable[[Transaction, Operation], Committed]
    progress: Progress
    is_fast: bool = True

    def do(self, stage: Stage) -> bool:
        """Like `committed`, but return whether there was a commit."""
        return self.committed(stage) is not None

    def committed(self, stage: Stage) -> Committed | None:
        """Commit the actions that `stage` stages; None if it stages nothing.

        Raises `DeltaConcurrentModificationException`: other writers committed first in every attempt.
        """

        def attempt() -> Committed | None:
            transaction = self.begin()
            operation = stage(transaction)
            return None if operation is None else self.commit(transaction, operation)

        return retried(attempt)


@dataclass(frozen=True, slots=True)
class Removal:
    """The removal of a feature.

    Args:
        traces: returns the traces of the feature in a version, as phrases that continue "the table has …"; none if it can be dropped.
        steps: returns the steps of `clean`, a sentence each.
        clean: makes commits that remove the traces; returns whether it made any.
        files: returns the live files that `clean` rewrites.
        uses: returns whether readers of an older commit's action need the feature; None for a writer feature: its history does not matter.
        is_of_checkpoint: whether the feature affects the format of checkpoints, so that older checkpoints must be checked too.
        properties: the properties that are removed with the feature.
        domain: the metadata domain that is removed with the feature.
        obstacles: the kind of the traces if users must drop them first.
    """

    traces: Callable[[Snapshot], list[str]]
    steps: Callable[[Snapshot], list[str]]
    clean: Callable[[Work], bool]
    files: Callable[[Snapshot, Progress], list[AddFile]] = lambda snapshot, progress: []
    uses: Callable[[Action], bool] | None = None
    is_of_checkpoint: bool = False
    properties: tuple[str, ...] = ()
    domain: str | None = None
    obstacles: str | None = None


# -- parts -------------------------------------------------------------------------------------------------------------------


def _set_properties(work: Work, properties: Mapping[str, str | None], words: str = "UNSET TBLPROPERTIES") -> bool:
    """Set properties, or unset those with the value None; return whether anything changed."""

    def stage(transaction: Transaction) -> Operation | None:
        configuration = transaction.existing().metadata.configuration
        changed = {key: value for key, value in properties.items() if property_text(configuration, key) != value}
        return stage_changed_properties(transaction, transaction.existing(), changed, words) if changed else None

    return work.do(stage)


def _none(snapshot: Snapshot) -> list[str]:
    return []


def _nothing(work: Work) -> bool:
    return False


# -- deletion vectors --------------------------------------------------------------------------------------------------------


def _marked(snapshot: Snapshot, progress: Progress) -> list[AddFile]:
    if snapshot.files()["deletionVector"].null_count == snapshot.num_files:
        return []
    return [add for add in add_files(snapshot.files()) if add.deletion_vector is not None]


def _vector_traces(snapshot: Snapshot) -> list[str]:
    traces = [f"{_VECTORS} = true"] if snapshot.config.properties.enable_deletion_vectors else []
    marked = snapshot.num_files - snapshot.files()["deletionVector"].null_count
    return traces + ([f"{counted(marked, 'file')} with deletion vectors"] if marked else [])


def _vector_steps(snapshot: Snapshot) -> list[str]:
    steps = [f"{_VECTORS} is unset"] if snapshot.config.properties.enable_deletion_vectors else []
    steps.append("files with deletion vectors are rewritten without the deleted rows")
    return [
        *steps,
        "files of vectors are noted as removed, so that a VACUUM that knows no vectors keeps them as long as it keeps files",
    ]


def _without_vectors(work: Work) -> bool:
    had_traces = bool(_vector_traces(work.begin().existing()))
    if had_traces:
        _set_properties(work, {_VECTORS: None})

        def stage(transaction: Transaction) -> Operation | None:
            snapshot = transaction.existing()
            adds = _marked(snapshot, work.progress)
            return stage_rewrite(transaction, snapshot, adds, work.progress) if adds else None

        while work.do(stage):
            pass  # a writer that started before the property was unset may have added another vector
    if work.is_fast:
        work.do(_stage_vector_tombstones)
    return had_traces


def _uses_vectors(action: Action) -> bool:
    if isinstance(action, Metadata):
        return TableProperties(action.configuration).enable_deletion_vectors
    return isinstance(action, (AddFile, RemoveFile)) and action.deletion_vector is not None


# -- columns -----------------------------------------------------------------------------------------------------------------


def _mapping_traces(snapshot: Snapshot) -> list[str]:
    return [f"columns mapped by {snapshot.config.properties.column_mapping_mode}"] if is_mapped(snapshot.config) else []


def _without_mapping(work: Work) -> bool:
    return work.do(
        lambda transaction: stage_without_mapping(transaction, work.progress) if _mapping_traces(transaction.existing()) else None
    )


def _uses_mapping(action: Action) -> bool:
    return isinstance(action, Metadata) and TableProperties(action.configuration).column_mapping_mode != "none"


def _widening_traces(snapshot: Snapshot) -> list[str]:
    traces = [f"{_WIDENING} = true"] if snapshot.config.properties.get(_WIDENING) else []
    return traces + (["types of columns that were narrower"] if has_type_changes(snapshot.config) else [])


def _without_widening(work: Work) -> bool:
    """As in delta-spark, unsetting the property does not count as a removed trace, so it does not require waiting for older versions."""
    _set_properties(work, {_WIDENING: None})
    return work.do(
        lambda transaction: (
            stage_without_type_changes(transaction, work.progress) if has_type_changes(transaction.existing().config) else None
        )
    )


def _uses_widening(action: Action) -> bool:
    if not isinstance(action, Metadata) or "delta.typeChanges" not in action.schema_string:
        return False
    return has_type_changes(TableConfig(_ANY_PROTOCOL, action, ""))


_ANY_PROTOCOL = Protocol(1, 1)


def _type_widening() -> Removal:
    return Removal(
        traces=_widening_traces,
        steps=lambda snapshot: [f"{_WIDENING} is unset", "files from before a column was widened are rewritten"],
        clean=_without_widening,
        files=lambda snapshot, progress: list(files_of_other_types(snapshot, progress)),
        uses=_uses_widening,
    )


# -- row ids -----------------------------------------------------------------------------------------------------------------


def _numbered(snapshot: Snapshot) -> int:
    files = snapshot.files()
    return max(int(files.num_rows - files[name].null_count) for name in ("baseRowId", "defaultRowCommitVersion"))


def _row_id_traces(snapshot: Snapshot) -> list[str]:
    properties = snapshot.config.properties
    traces = [f"{ENABLED} = true"] if properties.get(ENABLED) else []
    traces += [] if properties.get(SUSPENDED) else [f"{SUSPENDED} = false, so that writers give ids"]
    return traces + ([f"{counted(_numbered(snapshot), 'file')} with row ids"] if _numbered(snapshot) else [])


def _without_row_ids(work: Work) -> bool:
    _set_properties(work, {ENABLED: "false", SUSPENDED: "true"}, "SET TBLPROPERTIES")

    def stage(transaction: Transaction) -> Operation | None:
        adds = [
            add
            for add in add_files(transaction.existing().files())
            if add.base_row_id is not None or add.default_row_commit_version is not None
        ]
        if not adds:
            return None
        transaction.read_files(add.key for add in adds)
        transaction.enforces = ENFORCED  # adds no rows
        transaction.stage(*(replace(add, data_change=False, base_row_id=None, default_row_commit_version=None) for add in adds))
        return Operation("ROW TRACKING UNBACKFILL", {"batchId": "0"})

    work.do(stage)
    return True


# -- features without files -------------------------------------------------------------------------------------------------------


def _policy_traces(snapshot: Snapshot) -> list[str]:
    return [f"{_POLICY} = v2"] if snapshot.config.properties.checkpoint_policy == "v2" else []


def _time_traces(snapshot: Snapshot) -> list[str]:
    traces = [f"{_TIMES} = true"] if snapshot.config.properties.get(_TIMES) else []
    return traces + [key for key in _TIMES_SINCE if property_text(snapshot.metadata.configuration, key) is not None]


def _constraint_names(snapshot: Snapshot) -> list[str]:
    keys = (key for key in snapshot.metadata.configuration if key.lower().startswith(CONSTRAINT_PREFIX))
    return sorted(key[len(CONSTRAINT_PREFIX) :] for key in keys)


def _refuse_constraints(work: Work) -> bool:
    snapshot = work.begin().existing()
    names = _constraint_names(snapshot)
    if names:
        raise InvalidRequest(
            f"Cannot drop the feature checkConstraints from table {snapshot.store.url}: it has the constraints {', '.join(names)}, which "
            "nobody would enforce any more. Drop these first: ALTER TABLE … DROP CONSTRAINT (Table.drop_constraint).",
            code="DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE",
            table=snapshot.store.url,
            constraints=names,
        )
    return False


def _column_type(row: TableFeature) -> Removal:
    """Return the removal of a feature that columns of its types prevent (`TableFeature.types`)."""

    def refuse_columns(work: Work) -> bool:
        snapshot = work.begin().existing()
        row.check_columns(snapshot.schema, Use.DROP, table=snapshot.store.url)
        return False

    return Removal(
        traces=lambda snapshot: row.columns_of(snapshot.schema),
        steps=_none,
        clean=refuse_columns,
        uses=lambda action: isinstance(action, Metadata) and bool(row.columns_of(action.schema)),
        obstacles="columns",
    )


def _clustering_traces(snapshot: Snapshot) -> list[str]:
    columns = clustered_by(snapshot)
    return [f"the clustering columns {', '.join(columns)}"] if columns else []


def _without_clustering(work: Work) -> bool:
    def stage(transaction: Transaction) -> Operation | None:
        snapshot = transaction.existing()
        return stage_cluster_by(transaction, snapshot, ()) if _clustering_traces(snapshot) else None

    return work.do(stage)


def _without_domains(work: Work) -> bool:
    def stage(transaction: Transaction) -> Operation | None:
        domains = list(transaction.existing().state.domains.values())
        if not domains:
            return None
        transaction.stage(*(DomainMetadata(domain.domain, domain.configuration, removed=True) for domain in domains))
        return Operation("DOMAIN METADATA CLEANUP", {"numDomainMetadata": len(domains)})

    return work.do(stage)


REMOVALS: Mapping[str, Removal] = {
    Feature.DELETION_VECTORS: Removal(_vector_traces, _vector_steps, _without_vectors, _marked, _uses_vectors),
    Feature.COLUMN_MAPPING: Removal(
        traces=_mapping_traces,
        steps=lambda snapshot: ["every file is rewritten, with the names that users see"],
        clean=_without_mapping,
        files=lambda snapshot, progress: add_files(snapshot.files()) if is_mapped(snapshot.config) else [],
        uses=_uses_mapping,
    ),
    Feature.TYPE_WIDENING: _type_widening(),
    Feature.TYPE_WIDENING_PREVIEW: _type_widening(),
    Feature.V2_CHECKPOINT: Removal(
        traces=_policy_traces,
        steps=lambda snapshot: [f"{_POLICY} becomes classic"] if _policy_traces(snapshot) else [],
        clean=lambda work: (
            bool(_policy_traces(work.begin().existing())) and _set_properties(work, {_POLICY: "classic"}, "SET TBLPROPERTIES")
        ),
        uses=lambda action: isinstance(action, Metadata) and TableProperties(action.configuration).checkpoint_policy == "v2",
        is_of_checkpoint=True,
    ),
    Feature.VACUUM_PROTOCOL_CHECK: Removal(_none, _none, _nothing, uses=lambda action: False),
    **{name: _column_type(row) for row in FEATURES.values() if row.types and Use.DROP in row.limits for name in row.names},
    Feature.CHECK_CONSTRAINTS: Removal(_constraint_names, _none, _refuse_constraints, obstacles="constraints"),
    Feature.IN_COMMIT_TIMESTAMP: Removal(
        traces=_time_traces,
        steps=lambda snapshot: [f"{_TIMES} becomes false; times of versions are those of the log's files from then on"],
        clean=lambda work: (
            bool(_time_traces(work.begin().existing()))
            and _set_properties(work, {_TIMES: "false", **dict.fromkeys(_TIMES_SINCE)})
        ),
    ),
    Feature.ROW_TRACKING: Removal(
        traces=_row_id_traces,
        steps=lambda snapshot: [f"{ENABLED} becomes false", "files lose their row ids in the log; no file is rewritten"],
        clean=lambda work: bool(_row_id_traces(work.begin().existing())) and _without_row_ids(work),
        properties=(ENABLED, SUSPENDED, MATERIALIZED_ROW_ID, MATERIALIZED_ROW_COMMIT_VERSION),
        domain=ROW_TRACKING_DOMAIN,
    ),
    # delta-spark cannot drop this feature. It is safe: readers ignore clustering, and rows and files stay unchanged.
    Feature.CLUSTERING: Removal(
        traces=_clustering_traces,
        steps=lambda snapshot: ["CLUSTER BY NONE; files stay as they are"] if _clustering_traces(snapshot) else [],
        clean=_without_clustering,
        domain=CLUSTERING_DOMAIN,
    ),
    Feature.DOMAIN_METADATA: Removal(
        traces=lambda snapshot: [f"the metadata domain {name}" for name in sorted(snapshot.state.domains)],
        steps=lambda snapshot: [f"the metadata domain {name} is removed" for name in sorted(snapshot.state.domains)],
        clean=_without_domains,
    ),
    Feature.MATERIALIZE_PARTITION_COLUMNS: Removal(
        _none, _none, _nothing, properties=("delta.enableMaterializePartitionColumnsFeature",)
    ),
    Feature.CHECKPOINT_PROTECTION: Removal(
        _none, _none, _nothing, properties=("delta.requireCheckpointProtectionBeforeVersion",)
    ),
}
"""The features that can be dropped. The specification allows to drop more (`TableFeature.removal`), but Tahoe does not write these."""


# -- tombstones of vector files --------------------------------------------------------------------------------------------------


def _stage_vector_tombstones(transaction: Transaction) -> Operation:
    """Stage a tombstone for each deletion vector file below the table's root that a data file's tombstone names and that has none yet.

    If all of them have tombstones, the commit is empty, as in delta-spark, so that version numbers agree.
    """
    snapshot, now = transaction.existing(), transaction.clock.now_ms()
    removes = remove_files(snapshot.tombstones())
    named = {_name(remove, snapshot.store.url) for remove in removes} - {None}
    removed_paths = {canonical_path(remove.path, snapshot.store.url) for remove in removes if remove.deletion_vector is None}
    missing = sorted(encode_path(name) for name in named if name is not None and name not in removed_paths)
    transaction.stage(*(RemoveFile(path, now, data_change=False) for path in missing))
    return Operation("Deletion Vector Tombstones", {}, {"dvTombstonesWithinRetentionPeriod": len(missing)})


def _name(remove: RemoveFile, root_url: str) -> str | None:
    """Return the store name of the file of its deletion vector; None for an inline vector, and for a file outside the root."""
    vector = remove.deletion_vector
    return None if vector is None or vector.storage_type != "u" else file_name(vector, root_url)
