"""The options of a stream, defined once for `Table.tail` and for Spark's stream readers."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from datetime import date, datetime

    from tahoe.stream.position import Position


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowOptions:
    """The size of a stream's batches, and the handling of commits that do more than append.

    Args:
        read_change_feed: read the row changes of each commit instead of the added rows.
        max_files_per_trigger: files in a batch; 1000 if neither this nor `max_bytes_per_trigger` is set.
        max_bytes_per_trigger: bytes in a batch, which always contains at least one file.
        ignore_deletes: skip commits that only remove files.
        ignore_changes: read the files that a change wrote as if they were appended: rows that were only copied are repeated.
        skip_change_commits: skip commits that remove files, including the files that they add.
        exclude_regex: skip files whose path in the log matches this expression.
        fail_on_data_loss: whether commits that are missing from the log raise an error, or are skipped.
    """

    read_change_feed: bool = False
    max_files_per_trigger: int | None = None
    max_bytes_per_trigger: int | None = None
    ignore_deletes: bool = False
    ignore_changes: bool = False
    skip_change_commits: bool = False
    exclude_regex: str | None = None
    fail_on_data_loss: bool = True


@dataclass(frozen=True, slots=True)
class TailOptions(FollowOptions):
    """The options of `Table.tail`.

    Args:
        from_version: the first commit to read, ``"latest"`` for future ones only; or `from_timestamp`, the first commit at or after a
            time; without either, the table's current rows come first. Ignored if there is a position.
        position: a batch's position, or its text: continue after it.
        follow: wait for further commits forever; else end with the table's current content.
        poll_seconds: how long to wait between two checks of the log.
    """

    from_version: int | Literal["latest"] | None = None
    _: KW_ONLY
    from_timestamp: str | date | datetime | None = None
    position: Position | str | None = None
    follow: bool = False
    poll_seconds: float = 1.0
