"""`CommitReader`: reads the commits of a stream in order, and handles missing ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tahoe.base.exceptions import NotFound
from tahoe.log.consistency import read_verified_commit
from tahoe.log.files.paths import LOG_FOLDER, commit_name, parse
from tahoe.protocol.actions import Action
from tahoe.store.log_store import LogStore
from tahoe.stream.source_options import SourceOptions
from tahoe.stream.streamed_commit import StreamedCommit, streamed_commit

_MOST_KEPT = 4096
_MOST_AHEAD = 32
_FEW_BYTES = 4 * 1024 * 1024


class CommitReader:
    """Reads each commit once for both the plan and the files of a batch.

    Args:
        check_metadata: called with each commit that changes metadata or protocol, before it is returned.
    """

    def __init__(self, store: LogStore, options: SourceOptions, check_metadata: Callable[[StreamedCommit], None]) -> None:
        self._store = store
        self._options = options
        self._check_metadata = check_metadata
        self._cached: dict[int, StreamedCommit] = {}
        self._fetched: dict[int, bytes] = {}

    def read(self, version: int) -> StreamedCommit:
        """Return the part of a commit that the stream reads.

        Raises:
            NotFound: the log does not have the commit (any more).
            InvalidRequest: a stream with these options cannot read past the commit.
        """
        cached = self._cached.get(version)
        if cached is not None:
            return cached
        commit = streamed_commit(self._actions(version), version, self._options, self._store.url)
        if commit.metadata is not None or commit.protocol is not None:
            self._check_metadata(commit)
        if len(self._cached) < _MOST_KEPT:
            self._cached[version] = commit
        return commit

    def between(self, first: int, last: int) -> Iterator[StreamedCommit]:
        """Yield the commits of these versions, both included, reading on demand.

        Raises:
            NotFound: ``DELTA_MISSING_FILES_UNEXPECTED_VERSION`` if commits are missing from the log and the options do not skip them;
                ``DELTA_STREAMING_TRAILING_COMMIT_MISSING`` if the newest ones are missing.
        """
        version, ahead = first, 1
        while version <= last:
            if version not in self._cached and version not in self._fetched:
                ahead = self._fetch(version, min(last, version + ahead - 1))
            try:
                commit = self.read(version)
            except NotFound as error:
                version = self._after_gap(version, last, error)
                continue
            yield commit
            version += 1

    def _actions(self, version: int) -> tuple[Action, ...]:
        return read_verified_commit(self._store, version, self._fetched.pop(version, None))

    def _fetch(self, first: int, last: int) -> int:
        """Fetch these commits concurrently; return the number to fetch next time, which grows as long as they are small."""
        versions = [version for version in range(first, last + 1) if version not in self._cached and version not in self._fetched]
        if len(versions) == 1:
            return 2
        try:
            bodies = self._store.get_many([commit_name(version) for version in versions])
        except NotFound:
            return 1  # reading them one by one shows which is missing
        self._fetched.update(zip(versions, bodies, strict=True))
        return min(2 * len(versions), _MOST_AHEAD) if sum(map(len, bodies)) < _FEW_BYTES else 1

    def forget_before(self, version: int) -> None:
        """Free cached older commits: the stream is past them."""
        self._cached = {cached: commit for cached, commit in self._cached.items() if cached >= version}
        self._fetched = {fetched: data for fetched, data in self._fetched.items() if fetched >= version}

    def _after_gap(self, missing: int, last: int, error: NotFound) -> int:
        """Return the first existing commit after a missing one."""
        entries = self._store.list_from(LOG_FOLDER, commit_name(missing).rpartition("/")[2])
        versions = [parsed.version for entry in entries if (parsed := parse(entry.name)) is not None and parsed.kind == "commit"]
        following = min((version for version in versions if version > missing), default=None)
        if following is None or following > last:
            raise NotFound(
                f"The log of table {self._store.url} must have the commits up to version {last}, but has none from version {missing} "
                "on: it was damaged, or restored from an older copy. Restore the commits, or start a new stream without the position or "
                "the checkpoint.",
                code="DELTA_STREAMING_TRAILING_COMMIT_MISSING",
                table=self._store.url,
                version=missing,
            ) from error
        if self._options.fail_on_data_loss:
            raise NotFound(
                f"The stream needs version {missing} of table {self._store.url}, but the earliest later commit in its log is version "
                f"{following}: the stream lags behind the log's retention (delta.logRetentionDuration). Start a new stream "
                "without the position or the checkpoint, or set 'failOnDataLoss' to false to skip the rows of these versions.",
                code="DELTA_MISSING_FILES_UNEXPECTED_VERSION",
                table=self._store.url,
                version=missing,
            ) from error
        return following
