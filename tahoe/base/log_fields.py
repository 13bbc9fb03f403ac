"""The fields of Tahoe's log records: attributes of the record, for formatters that write JSON."""

from __future__ import annotations

FieldValue = str | int | float | bool


def about(table: str, version: int | None = None, **fields: FieldValue) -> dict[str, FieldValue]:
    """Return the argument `extra` of a log record about a table.

    Args:
        table: its URL, as in `LogStore.url`, which contains no credentials.
        version: None if the record is about no particular version; it then has no such field.
        fields: counts, sizes, durations and names. Never a value from a row, a condition or an option.
    """
    return {"table": table, **({} if version is None else {"version": version}), **fields}
