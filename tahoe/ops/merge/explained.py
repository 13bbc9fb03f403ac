"""The predicted result of a MERGE, returned by `explain()`, with and without Spark."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from tahoe.base.html import ShownAsText
from tahoe.base.wording import counted


@dataclass(frozen=True, slots=True)
class ClauseExplained:
    """A clause and the number of rows to which it applies.

    Args:
        when: ``MATCHED``, ``NOT MATCHED`` or ``NOT MATCHED BY SOURCE``.
        then: ``UPDATE``, ``DELETE`` or ``INSERT``.
        condition: SQL text; None for every row of its kind.
        rows: the number of rows that would be updated, deleted or inserted.
    """

    when: str
    then: str
    condition: str | None
    rows: int

    def __str__(self) -> str:
        condition = "" if self.condition is None else f" AND {self.condition}"
        return f"WHEN {self.when}{condition} THEN {self.then}: {counted(self.rows, 'row')}"


@dataclass(frozen=True, slots=True)
class MergeExplained(ShownAsText):
    """The predicted result of a MERGE into a version of a table; `str` gives a readable summary. Nothing was written.

    Args:
        on: the SQL text of the match condition.
        source_rows: the number of rows in the source.
        files: the number of live files; `files_scanned` of them may contain relevant rows, and `files_touched` contain rows that change.
        uses_deletion_vectors: whether deleted rows would be marked in deletion vectors; else the touched files would be rewritten.
        new_columns: the columns that schema evolution would add to the table.
    """

    table: str
    version: int
    on: str
    clauses: tuple[ClauseExplained, ...]
    source_rows: int
    files: int
    files_scanned: int
    files_touched: int
    uses_deletion_vectors: bool
    new_columns: tuple[str, ...] = ()

    @property
    def files_pruned(self) -> int:
        """The number of live files that need not be read."""
        return self.files - self.files_scanned

    @property
    def rows_updated(self) -> int:
        """The number of rows that UPDATE clauses would change."""
        return self._rows("UPDATE")

    @property
    def rows_deleted(self) -> int:
        """The number of rows that DELETE clauses would delete."""
        return self._rows("DELETE")

    @property
    def rows_inserted(self) -> int:
        """The number of rows that INSERT clauses would insert."""
        return self._rows("INSERT")

    def to_dict(self) -> dict[str, Any]:
        """Return all values, including the derived counts, as JSON-compatible values."""
        counts = {name: getattr(self, name) for name in ("files_pruned", "rows_updated", "rows_deleted", "rows_inserted")}
        return {
            **asdict(self),
            "clauses": [asdict(clause) for clause in self.clauses],
            "new_columns": list(self.new_columns),
            **counts,
        }

    def __str__(self) -> str:
        how = "marked in deletion vectors" if self.uses_deletion_vectors else "rewritten"
        lines = [
            f"MERGE INTO {self.table}, version {self.version}, ON {self.on}",
            f"  source: {counted(self.source_rows, 'row')}",
            f"  files: {self.files:,} in the table, {self.files_pruned:,} pruned, {self.files_scanned:,} scanned, "
            f"{self.files_touched:,} {how}",
        ]
        if self.new_columns:
            lines.append(f"  columns to be added: {', '.join(self.new_columns)}")
        return "\n".join([*lines, *(f"  {clause}" for clause in self.clauses)])

    def _rows(self, then: str) -> int:
        return sum(clause.rows for clause in self.clauses if clause.then == then)
