"""`SourceOptions`: what a reader of a stream wants, under the reference's names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tahoe.exceptions import InvalidRequest
from tahoe.stream.admission import MOST_FILES, Limits

__all__ = ["SourceOptions"]


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Where to begin, how much a batch holds, and what to do with commits that do more than append.

    Args:
        starting_version: the first commit to read; ``"latest"`` for those to come alone. None, and no time either: all rows that are in
            the table first, and then what is appended.
        starting_timestamp_ms: the first commit at this time or after it, in milliseconds since the epoch.
        max_files_per_trigger: of one batch; 1000 where neither this nor `max_bytes_per_trigger` is given.
        max_bytes_per_trigger: of the files of one batch, which holds at least one file all the same.
        ignore_deletes: pass over commits that only remove files.
        ignore_changes: take the files that a change wrote as if they were appended: rows that were only copied come again.
        ignore_file_deletion: as `ignore_changes`; an old name of it.
        skip_change_commits: pass over commits that remove files, with all that they add.
        exclude_regex: leave out files in whose path, as the log has it, this expression is found.
        fail_on_data_loss: whether commits that are gone from the log are an error, or are passed over.
        read_change_feed: what each commit did to rows, in place of the rows that it added.
        schema_tracking_location: a folder below the query's checkpoint for the stream's schema log (`tahoe.stream.schema_log`); None for
            a stream that keeps none.
        streaming_source_tracking_id: tells the logs of several sources of one table in one query apart.
        allowed_changes: by option (``allowSourceColumnRename``, ``…Drop``, ``…TypeChange``): ``always``, or the version up to which such
            changes may be read past.

        with_event_time_order: whether the rows that are in the table come by the time of their events, as the query's watermark has it; None
            where nothing is said.

    Raises `InvalidRequest` for what cannot be meant.
    """

    starting_version: int | Literal["latest"] | None = None
    starting_timestamp_ms: int | None = None
    max_files_per_trigger: int | None = None
    max_bytes_per_trigger: int | None = None
    ignore_deletes: bool = False
    ignore_changes: bool = False
    ignore_file_deletion: bool = False
    skip_change_commits: bool = False
    exclude_regex: str | None = None
    fail_on_data_loss: bool = True
    read_change_feed: bool = False
    schema_tracking_location: str | None = None
    streaming_source_tracking_id: str | None = None
    allowed_changes: Mapping[str, str] = field(default_factory=dict)
    with_event_time_order: bool | None = None

    def __post_init__(self) -> None:
        if self.starting_version is not None and self.starting_timestamp_ms is not None:
            raise InvalidRequest(
                "A stream begins at one place: give 'startingVersion' or 'startingTimestamp', not both.",
                code="DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET",
            )
        version = self.starting_version
        if (isinstance(version, str) and version != "latest") or (isinstance(version, int) and version < 0):
            raise _illegal("startingVersion", version, "a version from 0 on, or 'latest'")
        for name, value in (
            ("maxFilesPerTrigger", self.max_files_per_trigger),
            ("maxBytesPerTrigger", self.max_bytes_per_trigger),
        ):
            if value is not None and value < 1:
                raise _illegal(name, value, "1 or more")
        for option, text in self.allowed_changes.items():
            if text.lower() != "always" and not text.isdecimal():
                raise _illegal(option, text, "'always', or the version up to which such changes were looked at,")
        if self.schema_tracking_location is not None and not self.fail_on_data_loss:
            raise _illegal(
                "failOnDataLoss", "false", "with 'schemaTrackingLocation' true, for a lost commit may have changed the schema,"
            )
        try:
            re.compile(self.exclude_regex or "")
        except re.error as error:
            raise _illegal("excludeRegex", self.exclude_regex, f"a regular expression ({error})") from error

    @property
    def limits(self) -> Limits:
        """How much one batch holds."""
        if self.max_files_per_trigger is None and self.max_bytes_per_trigger is None:
            return Limits(MOST_FILES)
        return Limits(self.max_files_per_trigger, self.max_bytes_per_trigger)

    @property
    def allows_changes(self) -> bool:
        """Whether commits that change rows may stand in the stream."""
        return self.ignore_changes or self.ignore_file_deletion or self.skip_change_commits

    @property
    def allows_deletes(self) -> bool:
        """Whether commits that only delete rows may."""
        return self.allows_changes or self.ignore_deletes

    @property
    def names_a_start(self) -> bool:
        """Whether it says where to begin."""
        return self.starting_version is not None or self.starting_timestamp_ms is not None

    def excludes(self, path: str) -> bool:
        """Whether a file is left out, by its path as the log has it."""
        return self.exclude_regex is not None and re.search(self.exclude_regex, path) is not None


def _illegal(name: str, value: object, expected: str) -> InvalidRequest:
    return InvalidRequest(
        f"Invalid value '{value}' for the option '{name}': {expected} is expected.", code="DELTA_ILLEGAL_OPTION", option=name
    )
