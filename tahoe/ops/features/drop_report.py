"""What a DROP FEATURE did, or would do."""

from __future__ import annotations

from dataclasses import dataclass, field

from tahoe.protocol.actions import Protocol
from tahoe.wording import counted

__all__ = ["FeatureDrop", "protocol_text"]


@dataclass(frozen=True, slots=True)
class FeatureDrop:
    """What a DROP FEATURE did, or would do. `print` shows it.

    Args:
        table: its URL.
        feature: as the specification spells it.
        truncate_history: whether older versions must have gone from the log first.
        steps: what comes before the protocol changes, a sentence each.
        files, size: data files that are written anew for it, and their bytes.
        protocol: of the table afterwards.
        version: the commit that dropped the feature; None of a dry run.
        obstacle: of a dry run: why the table cannot lose the feature in one go, with what to do about it; None where it can.
        gained: engines that can read the newest version afterwards and could not before (`tahoe.ops.features.compat`).
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
                f"bytes were written anew. Its protocol is {protocol_text(self.protocol)}."
            )
        lines = [
            f"DROP FEATURE {self.feature} of {self.table} would write {counted(self.files, 'file')} of {self.size:,} bytes anew."
        ]
        lines += [f"  {number}. {step}" for number, step in enumerate(self.steps, start=1)]
        lines.append(f"Its protocol would be {protocol_text(self.protocol)}.{readers}")
        return "\n".join([*lines, self.obstacle] if self.obstacle else lines)


def protocol_text(protocol: Protocol) -> str:
    """``reader 1, writer 7 (appendOnly, invariants)``."""
    names = sorted((protocol.reader_features or frozenset()) | (protocol.writer_features or frozenset()))
    listed = f" ({', '.join(names)})" if names else ""
    return f"reader {protocol.min_reader_version}, writer {protocol.min_writer_version}{listed}"
