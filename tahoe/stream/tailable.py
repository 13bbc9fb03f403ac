"""What `tahoe.table.Table` has of streams: `tail`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from datetime import date, datetime
from typing import TYPE_CHECKING, Literal

from tahoe.argument_checks import checked_arguments
from tahoe.clock import Clock

if TYPE_CHECKING:
    from tahoe.snapshot.snapshot import Snapshot
    from tahoe.stream.position import Position
    from tahoe.stream.tail_batch import TailBatch

__all__ = ["Tailable"]


@checked_arguments
class Tailable(ABC):
    """A table that can be read as a stream; `tahoe.table.Table` has it."""

    clock: Clock

    @abstractmethod
    def snapshot(self, version: int | None = None, timestamp: str | date | datetime | None = None) -> Snapshot:
        """The newest version, or an old one by number or by time."""

    def tail(
        self,
        from_version: int | Literal["latest"] | None = None,
        *,
        from_timestamp: str | date | datetime | None = None,
        position: Position | str | None = None,
        follow: bool = False,
        poll_seconds: float = 1.0,
        read_change_feed: bool = False,
        max_files_per_trigger: int | None = None,
        max_bytes_per_trigger: int | None = None,
        ignore_deletes: bool = False,
        ignore_changes: bool = False,
        skip_change_commits: bool = False,
        exclude_regex: str | None = None,
        fail_on_data_loss: bool = True,
    ) -> Iterator[TailBatch]:
        """The table's rows as a stream of batches: those that are in it first, then what is appended, each row once.

        ``for batch in table.tail(position=stored): deal_with(batch.to_arrow()); stored = str(batch.position)``

        Args:
            from_version: the first commit to read, ``"latest"`` for those to come alone, or `from_timestamp`, the first one at a time or
                after it; without either the rows that are in the table come first. Not looked at where there is a position.
            position: of a batch, or its text: go on after it.
            follow: wait for further commits, and never end; else it ends with what is in the table now.
            poll_seconds: how long to wait between two looks at the log.

        For the others see `tahoe.stream.source_options.SourceOptions`. All rows have the schema that the table has now.

        Raises: see `tahoe.stream.source.Source.plan`, as the batches are asked for.
        """
        from tahoe.log.history import parse_timestamp
        from tahoe.stream.position import Position
        from tahoe.stream.source import Source
        from tahoe.stream.source_options import SourceOptions
        from tahoe.stream.tail_batch import tail

        options = SourceOptions(
            starting_version=from_version,
            starting_timestamp_ms=None if from_timestamp is None else parse_timestamp(from_timestamp),
            max_files_per_trigger=max_files_per_trigger,
            max_bytes_per_trigger=max_bytes_per_trigger,
            ignore_deletes=ignore_deletes,
            ignore_changes=ignore_changes,
            skip_change_commits=skip_change_commits,
            exclude_regex=exclude_regex,
            fail_on_data_loss=fail_on_data_loss,
            read_change_feed=read_change_feed,
        )
        start = Position.parse(position) if isinstance(position, str) else position
        source = Source(self.snapshot(), self.snapshot, options)
        return tail(source, start, self.clock, follow=follow, poll_seconds=poll_seconds)
