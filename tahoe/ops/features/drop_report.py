"""The result of a DROP FEATURE or of its dry run."""

from __future__ import annotations

from dataclasses import dataclass, field

from tahoe.base.html import ShownAsText
from tahoe.base.wording import counted
from tahoe.protocol.actions import Protocol


@dataclass(frozen=True, slots=True)
class FeatureDrop(ShownAsText):
    """The result of a DROP FEATURE or of its dry run; `str` gives a readable summary.

    Args:
        table: the URL of the table.
        feature: the name of the feature as in the specification.
        truncate_history: whether older versions must be deleted from the log first.
        steps: the steps up to the protocol change, a sentence each.
        files, size: the number and the bytes of the rewritten data files.
        protocol: the protocol of the table afterwards.
        version: the version of the commit that dropped the feature; None for a dry run.
        obstacle: for a dry run, the reason why one run cannot drop the feature, with a remedy; None if it can.
        gained: the engines that can read the newest version afterwards and could not before (`tahoe.ops.features.compat`).
    """

    table: str
    feature: str
    truncate_history: bool
    steps: tuple[str, ...]
    files: int
    size: int
    protocol: Protocol
    version: int | None = None
    obstacle: str | None = None
    gained: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        readers = f" Able to read it then, and not now: {', '.join(self.gained)}." if self.gained else ""
        if self.version is not None:
            return (
                f"Version {self.version} of {self.table} has no {self.feature} any more; {counted(self.files, 'file')} of {self.size:,} "
                f"bytes were rewritten. Its protocol is {protocol_text(self.protocol)}."
            )
        lines = [
            f"DROP FEATURE {self.feature} of {self.table} would rewrite {counted(self.files, 'file')} of {self.size:,} bytes."
        ]
        lines += [f"  {number}. {step}" for number, step in enumerate(self.steps, start=1)]
        lines.append(f"Its protocol would be {protocol_text(self.protocol)}.{readers}")
        return "\n".join([*lines, self.obstacle] if self.obstacle else lines)


def protocol_text(protocol: Protocol) -> str:
    """Format a protocol: ``reader 1, writer 7 (appendOnly, invariants)``."""
    names = sorted((protocol.reader_features or frozenset()) | (protocol.writer_features or frozenset()))
    listed = f" ({', '.join(names)})" if names else ""
    return f"reader {protocol.min_reader_version}, writer {protocol.min_writer_version}{listed}"
