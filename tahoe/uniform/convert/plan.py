"""Plans a conversion from values: the Iceberg snapshots for the new commits, or a rebuild."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tahoe.protocol.actions import Action, AddFile, CommitInfo, DeletionVectorDescriptor, Metadata, RemoveFile
from tahoe.protocol.iceberg_compat import format_version, uniform_is_enabled
from tahoe.protocol.properties import TableProperties
from tahoe.protocol.row_tracking import high_water_mark
from tahoe.settings.property_settings import property_text
from tahoe.uniform.formats.client_snapshot import ClientSnapshot, client_snapshot, is_created_by_client, rolled_back_to

SNAPSHOT_PER_COMMIT = "delta.universalformat.config.iceberg.snapshot-per-commit"


@dataclass(frozen=True, slots=True)
class DeltaCommit:
    """One commit of the log."""

    version: int
    actions: tuple[Action, ...]

    @property
    def timestamp_ms(self) -> int | None:
        """The commit's own timestamp; None if it has none."""
        for action in self.actions:
            if isinstance(action, CommitInfo):
                at = action.in_commit_timestamp or action.values.get("timestamp")
                return at if isinstance(at, int) else None
        return None

    @property
    def client(self) -> ClientSnapshot | None:
        """The snapshot of the Iceberg client that made the commit; None for any other commit."""
        return next((client_snapshot(action.values) for action in self.actions if isinstance(action, CommitInfo)), None)

    @property
    def is_created_by_client(self) -> bool:
        """Whether an Iceberg client created the table with this commit, without a snapshot."""
        return any(is_created_by_client(action.values) for action in self.actions if isinstance(action, CommitInfo))

    @property
    def rolled_back_to(self) -> int | None:
        """The id of the earlier snapshot that an Iceberg client made current with this commit; None for any other commit."""
        return next((rolled_back_to(action.values) for action in self.actions if isinstance(action, CommitInfo)), None)

    @property
    def metadata(self) -> Metadata | None:
        """The metadata that the commit sets, or None."""
        return next((action for action in self.actions if isinstance(action, Metadata)), None)


@dataclass(frozen=True, slots=True)
class VectorChange:
    """A file that stays, with another deletion vector.

    Args:
        add: the file's current add action, with its vector.
        before: the vector that the Iceberg side shows; None if it shows every row.
    """

    url: str
    add: AddFile
    before: DeletionVectorDescriptor | None


@dataclass(frozen=True, slots=True)
class Change:
    """The changes of one Iceberg snapshot.

    Args:
        version: the Delta version that it leads to.
        metadata: the table's metadata at that version.
        adds: added files.
        removed: full paths of removed files; some may never have been converted.
        with_vectors: those of `removed` that the Iceberg side shows with a deletion vector.
        marked: files that stay and lose rows.
        rearranges: no rows change (OPTIMIZE and the like).
        row_id_mark: the row id high-water mark; None if the commits do not set it.
        client: the snapshot of the Iceberg client that made the commit.
        rolled_back_to: the id of the earlier snapshot that an Iceberg client made current.
    """

    version: int
    timestamp_ms: int
    metadata: Metadata
    adds: tuple[AddFile, ...] = ()
    removed: frozenset[str] = field(default_factory=frozenset)
    with_vectors: frozenset[str] = field(default_factory=frozenset)
    marked: tuple[VectorChange, ...] = ()
    rearranges: bool = False
    row_id_mark: int | None = None
    client: ClientSnapshot | None = None
    rolled_back_to: int | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no file is added, removed, or loses rows, and no client looks for its snapshot."""
        return not self.adds and not self.removed and not self.marked and self.client is None

    @property
    def operation(self) -> str:
        """Iceberg's name for the operation (format/spec.md, "Snapshots")."""
        if self.client is not None:
            return self.client.operation
        if not self.removed and not self.marked:
            return "overwrite" if any(add.deletion_vector for add in self.adds) else "append"
        if self.rearranges:
            return "replace"
        return "overwrite" if self.adds else "delete"


@dataclass(frozen=True, slots=True)
class Rebuild:
    """Rebuild everything from the live files of the target version; `reason` appears in the log and the status."""

    reason: str


@dataclass(frozen=True, slots=True)
class FurtherCommits:
    """Apply the changes since the last converted version, oldest first."""

    changes: tuple[Change, ...]


Plan = Rebuild | FurtherCommits


def plan_conversion(
    before: Metadata,
    target: Metadata,
    commits: Sequence[DeltaCommit],
    *,
    timestamp_ms: int,
    file_url: Callable[[str], str],
) -> Plan:
    """Plan the way from the version before `commits` to the last of them.

    Args:
        before: the table's metadata at the last converted version.
        target: its metadata at the last commit.
        commits: every commit since, oldest first.
        timestamp_ms: the timestamp of the target version.
        file_url: returns the full path for a path in the log, which may spell one file in several ways.
    """
    metadata = before
    for commit in commits:
        changed = commit.metadata
        if changed is not None:
            reason = _breaks_history(metadata, changed, commit.version)
            if reason:
                return Rebuild(reason)
            metadata = changed
    changes = []
    metadata = before
    for group in _groups(commits, each=_per_commit(target.configuration)):
        last = group[-1]
        metadata = next((commit.metadata for commit in reversed(group) if commit.metadata is not None), metadata)
        at = timestamp_ms if last is commits[-1] or last.timestamp_ms is None else last.timestamp_ms
        changes.append(combine_commits(group, metadata, at, file_url))
    return FurtherCommits(tuple(changes))


def _groups(commits: Sequence[DeltaCommit], *, each: bool) -> Iterator[list[DeltaCommit]]:
    """Yield the commits of each snapshot: a commit of an Iceberg client has one of its own, others share one unless `each` is set."""
    group: list[DeltaCommit] = []
    for commit in commits:
        is_alone = each or commit.client is not None or commit.rolled_back_to is not None
        if group and is_alone:
            yield group
            group = []
        group.append(commit)
        if is_alone:
            yield group
            group = []
    if group:
        yield group


def combine_commits(
    commits: Sequence[DeltaCommit], metadata: Metadata, timestamp_ms: int, file_url: Callable[[str], str]
) -> Change:
    """Combine commits into one change: files added and removed again in between do not appear.

    A commit that adds a file again without a data change (new statistics, new tags) replaces the file's entry.
    """
    live: dict[str, AddFile | None] = {}
    on_iceberg: dict[str, AddFile | RemoveFile] = {}  # by path, the first action for a file that the Iceberg side has
    data_change = False
    mark: int | None = None
    for commit in commits:
        removes = {file_url(action.path): action for action in commit.actions if isinstance(action, RemoveFile)}
        on_iceberg.update({url: remove for url, remove in removes.items() if url not in live})
        live.update(dict.fromkeys(removes))
        data_change |= any(action.data_change for action in commit.actions if isinstance(action, AddFile | RemoveFile))
        for action in commit.actions:
            if isinstance(action, AddFile):
                url = file_url(action.path)
                if not action.data_change and url not in live:
                    on_iceberg[url] = action
                live[url] = action
        later_mark = high_water_mark(commit.actions)
        mark = mark if later_mark is None else later_mark
    adds = {url: add for url, add in live.items() if add is not None}
    marked = {
        url: VectorChange(url, add, on_iceberg[url].deletion_vector)
        for url, add in adds.items()
        if _only_marked(on_iceberg.get(url), add)
    }
    return Change(
        commits[-1].version,
        timestamp_ms,
        metadata,
        tuple(add for url, add in adds.items() if url not in marked),
        frozenset(on_iceberg.keys() - marked.keys()),
        with_vectors=frozenset(url for url, action in on_iceberg.items() if action.deletion_vector and url not in marked),
        marked=tuple(marked.values()),
        rearranges=bool(adds) and not data_change,
        row_id_mark=mark,
        client=commits[-1].client if len(commits) == 1 else None,
        rolled_back_to=commits[-1].rolled_back_to if len(commits) == 1 else None,
    )


def _only_marked(before: AddFile | RemoveFile | None, after: AddFile) -> bool:
    """Whether a file that was removed and added again differs only in its deletion vector, as far as the actions show."""
    if not isinstance(before, RemoveFile) or after.deletion_vector is None:
        return False
    same_rows = (before.base_row_id, before.default_row_commit_version) == (after.base_row_id, after.default_row_commit_version)
    return same_rows and before.deletion_vector != after.deletion_vector


def _per_commit(configuration: Mapping[str, str]) -> bool:
    return (property_text(configuration, SNAPSHOT_PER_COMMIT) or "").lower() == "true"


def _breaks_history(before: Metadata, after: Metadata, version: int) -> str | None:
    if not uniform_is_enabled(TableProperties(after.configuration)):
        return f"UniForm was off at version {version}"
    if before.id != after.id:
        return f"the table was replaced at version {version}"
    if format_version(TableProperties(before.configuration)) != format_version(TableProperties(after.configuration)):
        return f"the format version changed at version {version}"
    if _partitioning(before) != _partitioning(after):
        return f"the partitioning changed at version {version}"
    return None


def _partitioning(metadata: Metadata) -> list[tuple[str, int | None]]:
    schema = metadata.schema
    return [(name, schema.field(name).field_id) for name in metadata.partition_columns]
