"""The columns of a temporary view that represents a Delta table, and the errors of views that do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tahoe.base.exceptions import InvalidRequest


@dataclass(frozen=True, slots=True)
class ViewColumns:
    """The columns of a view over a table.

    Args:
        view: its name.
        table: the URL of the table.
        columns: of the view, each with its table column; None for an expression.
    """

    view: str
    table: str
    columns: tuple[tuple[str, str | None], ...]

    @property
    def names(self) -> list[str]:
        """The names of the view's columns."""
        return [name for name, _ in self.columns]

    def check_names(self) -> None:
        """Raise `InvalidRequest` (``DELTA_CANNOT_RESOLVE_COLUMN``) for anything but columns of the table under their own names."""
        for name, column in self.columns:
            if column is None or column.lower() != name.lower():
                raise InvalidRequest(
                    f"Can't resolve column {name} of the temporary view {self.view} in table {self.table}. Rows can be changed "
                    "through a view that shows columns of one Delta table under their own names. Change the table itself.",
                    code="DELTA_CANNOT_RESOLVE_COLUMN",
                    table=self.table,
                    column=name,
                )

    def check_all(self, names: Sequence[str]) -> None:
        """Check the view of a MERGE, which needs all columns of the table: ``DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS``.

        Args:
            names: of the table's columns.
        """
        lowered = [name.lower() for name in names]
        if sorted(name.lower() for name in self.names) != sorted(lowered):
            raise InvalidRequest(
                f"The temporary view {self.view} has the columns {', '.join(self.names)}, and table {self.table} has {', '.join(lowered)}. A "
                "MERGE needs a view of all columns of the table. Create the view again, or merge into the table itself.",
                code="DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS",
                table=self.table,
            )
        self.check_names()


def partial_scan(view: str, table: str) -> InvalidRequest:
    """Return the error of a view that filters, joins or computes rows of a table."""
    return InvalidRequest(
        f"Expect a full scan of Delta sources, but found a partial scan: the temporary view {view} is more than a selection of columns "
        f"of table {table}. Change the rows of the table itself.",
        code="DELTA_UNEXPECTED_PARTIAL_SCAN",
        table=table,
    )


def historical_scan(table: str, version: int) -> InvalidRequest:
    """Return the error of a view of an older version: only rows of the newest version can be changed."""
    return InvalidRequest(
        f"Expect a full scan of the latest version of the Delta source, but found a historical scan of version {version} of table {table}. "
        "Change the rows of the table itself.",
        code="DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION",
        table=table,
        version=version,
    )
