"""The stream method of `tahoe.api.table.Table`: `tail`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from datetime import date, datetime
from typing import TYPE_CHECKING, Literal

from tahoe.base.argument_checks import checked_arguments
from tahoe.base.clock import Clock

if TYPE_CHECKING:
    from tahoe.snapshot.snapshot import Snapshot
    from tahoe.stream.position import Position
    from tahoe.stream.tail_batch import TailBatch

__all__ = ["Tailable"]


@checked_arguments
class Tailable(ABC):
    """A table that can be read as a stream; a base class of `tahoe.api.table.Table`."""

    clock: Clock

    @abstractmethod
    def snapshot(self, version: int | None = None, timestamp: str | date | datetime | None = None) -> Snapshot:
        """Return the newest version, or an old one by number or by time."""

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
        """Yield the table's rows as a stream of batches: the current rows first, then appended ones, each row once.

        ``for batch in table.tail(position=stored): process(batch.to_arrow()); stored = str(batch.position)``

        Args:
            from_version: the first commit to read, ``"latest"`` for future ones only; or `from_timestamp`, the first commit at or after a
                time; without either, the table's current rows come first. Ignored if there is a position.
            position: a batch's position, or its text: continue after it.
            follow: wait for further commits forever; else end with the table's current content.
            poll_seconds: how long to wait between two checks of the log.

        For the others see `tahoe.stream.source_options.SourceOptions`. All rows have the table's current schema.

        Raises: see `tahoe.stream.source.Source.plan`, when the batches are read.
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
