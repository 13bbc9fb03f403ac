"""What `golden.py` knows already: which reader disagrees about which tables, and why that is as it should be.

A line names a reader, the kind of disagreement, and texts that the table's path and the detail hold. A line that is about nothing any
more does no harm; one that is too wide would hide a fault, so each is as narrow as its reason.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["EXPLAINED", "Explained"]


@dataclass(frozen=True, slots=True)
class Explained:
    """One known difference.

    Args:
        reader: as `golden.py` calls it.
        kind: ``rows``, ``refuses`` or ``reads``.
        reason: in one sentence.
        table: what the table's path holds; empty for all.
        detail: what the detail holds; empty for all.
    """

    reader: str
    kind: str
    reason: str
    table: str = ""
    detail: str = ""

    def is_about(self, table: str, reader: str, kind: str, detail: str) -> bool:
        """Whether a disagreement is this one."""
        return (self.reader, self.kind) == (reader, kind) and self.table in table and self.detail in detail


EXPLAINED: tuple[Explained, ...] = ()
