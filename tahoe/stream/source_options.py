"""`SourceOptions`: the options of a stream reader, named after the reference's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tahoe.base.exceptions import InvalidRequest
from tahoe.stream.admission import MOST_FILES, Limits
from tahoe.stream.tail_options import FollowOptions


@dataclass(frozen=True, slots=True)
class IgnoredChanges:
    """Schema changes past which a stream reads although columns may then be null or have other values than were written.

    Args:
        column_mapping: columns that column mapping renamed or dropped.
        partition_columns: other partition columns.
        nullability: a column that may be null, in the rows, and that is never null in the stream's schema.
        before_start: all changes between the version at which the stream starts or continues and that of its schema.
    """

    column_mapping: bool = False
    partition_columns: bool = False
    nullability: bool = False
    before_start: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions(FollowOptions):
    """The start of a stream, the size of its batches, and the handling of commits that do more than append.

    Args:
        starting_version: the first commit to read; ``"latest"`` for future commits only. Without it and a timestamp, the stream reads the
            table's current rows first, and then appended rows.
        starting_timestamp_ms: read from the first commit at or after this time, in milliseconds since the epoch.
        ignore_file_deletion: like `ignore_changes`; an old name of it.
        schema_tracking_location: a folder below the query's checkpoint for the stream's schema log (`tahoe.stream.schema_log`); None for
            a stream without one.
        streaming_source_tracking_id: distinguishes the logs of several sources of one table in one query.
        allowed_changes: by option (``allowSourceColumnRename``, ``…Drop``, ``…TypeChange``): ``always``, or the version up to which such
            changes are allowed.
        with_event_time_order: whether the table's current rows are read in the event time order of the query's watermark; None if not
            set.
        may_start_late: whether a start after the newest commit means future commits only; an error otherwise.
        ignored_changes: schema changes past which the stream reads at the user's risk.

    Raises `InvalidRequest` for invalid or contradictory options.
    """

    starting_version: int | Literal["latest"] | None = None
    starting_timestamp_ms: int | None = None
    ignore_file_deletion: bool = False
    schema_tracking_location: str | None = None
    streaming_source_tracking_id: str | None = None
    allowed_changes: Mapping[str, str] = field(default_factory=dict)
    with_event_time_order: bool | None = None
    may_start_late: bool = False
    ignored_changes: IgnoredChanges = field(default_factory=IgnoredChanges)

    def __post_init__(self) -> None:
        if self.starting_version is not None and self.starting_timestamp_ms is not None:
            raise InvalidRequest(
                "A stream has one start: set 'startingVersion' or 'startingTimestamp', not both.",
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
                raise _illegal(option, text, "'always', or the version up to which such changes are allowed,")
        if self.schema_tracking_location is not None and not self.fail_on_data_loss:
            raise _illegal(
                "failOnDataLoss", "false", "with 'schemaTrackingLocation' true, since a lost commit may have changed the schema,"
            )
        try:
            re.compile(self.exclude_regex or "")
        except re.error as error:
            raise InvalidRequest(
                f"Invalid value '{self.exclude_regex}' for the option 'excludeRegex': a regular expression ({error}) is expected.",
                code="DELTA_REGEX_OPT_SYNTAX_ERROR",
                option="excludeRegex",
            ) from error

    @property
    def limits(self) -> Limits:
        """The limits of one batch."""
        if self.max_files_per_trigger is None and self.max_bytes_per_trigger is None:
            return Limits(MOST_FILES)
        return Limits(self.max_files_per_trigger, self.max_bytes_per_trigger)

    @property
    def allows_changes(self) -> bool:
        """Whether the stream may contain commits that change rows."""
        return self.ignore_changes or self.ignore_file_deletion or self.skip_change_commits

    @property
    def allows_deletes(self) -> bool:
        """Whether the stream may contain commits that only delete rows."""
        return self.allows_changes or self.ignore_deletes

    @property
    def has_start(self) -> bool:
        """Whether the options set a start."""
        return self.starting_version is not None or self.starting_timestamp_ms is not None

    def excludes(self, path: str) -> bool:
        """Whether a file is skipped, by its path in the log."""
        return self.exclude_regex is not None and re.search(self.exclude_regex, path) is not None


def _illegal(name: str, value: object, expected: str) -> InvalidRequest:
    return InvalidRequest(
        f"Invalid value '{value}' for the option '{name}': {expected} is expected.", code="DELTA_ILLEGAL_OPTION", option=name
    )
