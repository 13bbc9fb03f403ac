"""`CommitReader`: the commits of a table in turn, as a stream takes them, and what becomes of those that are gone."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tahoe.exceptions import NotFound
from tahoe.log.agreement import read_vouched_commit
from tahoe.log.files.paths import LOG_FOLDER, commit_name, parse
from tahoe.protocol.actions import Action
from tahoe.store.log_store import LogStore
from tahoe.stream.source_options import SourceOptions
from tahoe.stream.streamed_commit import StreamedCommit, streamed_commit

__all__ = ["CommitReader"]

_MOST_KEPT = 4096
_MOST_AHEAD = 32
_FEW_BYTES = 4 * 1024 * 1024


class CommitReader:
    """Reads commits, each once for the plan of a batch and for its files.

    Args:
        check_metadata: called with each commit that changes metadata or protocol, before anything of it is given.
    """

    def __init__(self, store: LogStore, options: SourceOptions, check_metadata: Callable[[StreamedCommit], None]) -> None:
        self._store = store
        self._options = options
        self._check_metadata = check_metadata
        self._kept: dict[int, StreamedCommit] = {}
        self._fetched: dict[int, bytes] = {}

    def read(self, version: int) -> StreamedCommit:
        """What the stream takes of one commit.

        Raises:
            NotFound: the log has no such commit (any more).
            InvalidRequest: what no stream of these options goes past.
        """
        kept = self._kept.get(version)
        if kept is not None:
            return kept
        commit = streamed_commit(self._actions(version), version, self._options, self._store.url)
        if commit.metadata is not None or commit.protocol is not None:
            self._check_metadata(commit)
        if len(self._kept) < _MOST_KEPT:
            self._kept[version] = commit
        return commit

    def between(self, first: int, last: int) -> Iterator[StreamedCommit]:
        """The commits of these versions, both included, read as they are asked for.

        Raises:
            NotFound: ``DELTA_MISSING_FILES_UNEXPECTED_VERSION`` where commits are gone from the log, unless the options pass over that;
                ``DELTA_STREAMING_TRAILING_COMMIT_MISSING`` where the newest ones are gone.
        """
        version, ahead = first, 1
        while version <= last:
            if version not in self._kept and version not in self._fetched:
                ahead = self._fetch(version, min(last, version + ahead - 1))
            try:
                commit = self.read(version)
            except NotFound as error:
                version = self._after_gap(version, last, error)
                continue
            yield commit
            version += 1

    def _actions(self, version: int) -> tuple[Action, ...]:
        return read_vouched_commit(self._store, version, self._fetched.pop(version, None))

    def _fetch(self, first: int, last: int) -> int:
        """Fetch these commits side by side, and tell how many to fetch next time: more and more, as long as they are small."""
        versions = [version for version in range(first, last + 1) if version not in self._kept and version not in self._fetched]
        if len(versions) == 1:
            return 2
        try:
            bodies = self._store.get_many([commit_name(version) for version in versions])
        except NotFound:
            return 1  # which one is gone shows when they are read one by one
        self._fetched.update(zip(versions, bodies, strict=True))
        return min(2 * len(versions), _MOST_AHEAD) if sum(map(len, bodies)) < _FEW_BYTES else 1

    def forget_before(self, version: int) -> None:
        """Free what is kept of older commits: the stream is past them."""
        self._kept = {kept: commit for kept, commit in self._kept.items() if kept >= version}
        self._fetched = {fetched: data for fetched, data in self._fetched.items() if fetched >= version}

    def _after_gap(self, missing: int, last: int, error: NotFound) -> int:
        """The first commit that is there after one that is not."""
        entries = self._store.list_from(LOG_FOLDER, commit_name(missing).rpartition("/")[2])
        found = [parsed.version for entry in entries if (parsed := parse(entry.name)) is not None and parsed.kind == "commit"]
        following = min((version for version in found if version > missing), default=None)
        if following is None or following > last:
            raise NotFound(
                f"The log of table {self._store.url} must have the commits up to version {last}, but has none from version {missing} on to "
                "there: it was damaged, or restored from an older copy. Restore the commits, or begin anew without the position or the "
                "checkpoint.",
                code="DELTA_STREAMING_TRAILING_COMMIT_MISSING",
                table=self._store.url,
                version=missing,
            ) from error
        if self._options.fail_on_data_loss:
            raise NotFound(
                f"The stream needs version {missing} of table {self._store.url}, and the earliest commit that its log still has from there "
                f"on is that of version {following}: the stream lags behind the log's retention (delta.logRetentionDuration). Begin anew "
                "without the position or the checkpoint, or set 'failOnDataLoss' to false to go on without what these versions added.",
                code="DELTA_MISSING_FILES_UNEXPECTED_VERSION",
                table=self._store.url,
                version=missing,
            ) from error
        return following
