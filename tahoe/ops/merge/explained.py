"""What a MERGE would do, told before it is run: the answer of `explain()`, with Spark and without."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from tahoe.wording import counted

__all__ = ["ClauseExplained", "MergeExplained"]


@dataclass(frozen=True, slots=True)
class ClauseExplained:
    """One clause and the rows that fall to it.

    Args:
        when: ``MATCHED``, ``NOT MATCHED`` or ``NOT MATCHED BY SOURCE``.
        then: ``UPDATE``, ``DELETE`` or ``INSERT``.
        condition: SQL text; None for every row of its kind.
        rows: so many rows would be updated, deleted or inserted.
    """

    when: str
    then: str
    condition: str | None
    rows: int

    def __str__(self) -> str:
        condition = "" if self.condition is None else f" AND {self.condition}"
        return f"WHEN {self.when}{condition} THEN {self.then}: {counted(self.rows, 'row')}"


@dataclass(frozen=True, slots=True)
class MergeExplained:
    """What a MERGE would do to a version of a table. `print` shows it; nothing was written.

    Args:
        on: SQL text of the condition that matches rows.
        source_rows: rows of the source.
        files: live files of the table; of them `files_scanned` may hold rows that matter, and `files_touched` hold rows that change.
        uses_deletion_vectors: rows that go would be marked in deletion vectors; else the files touched would be rewritten.
        new_columns: columns that schema evolution would add to the table.
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
        """Live files that need not be read."""
        return self.files - self.files_scanned

    @property
    def rows_updated(self) -> int:
        """Rows that clauses with UPDATE would change."""
        return self._rows("UPDATE")

    @property
    def rows_deleted(self) -> int:
        """Rows that clauses with DELETE would remove."""
        return self._rows("DELETE")

    @property
    def rows_inserted(self) -> int:
        """Rows that clauses with INSERT would add."""
        return self._rows("INSERT")

    def to_dict(self) -> dict[str, Any]:
        """All of it, derived counts included, as values that JSON can hold."""
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
