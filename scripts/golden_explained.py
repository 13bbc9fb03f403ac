"""The known disagreements of `golden.py`: reader, tables and reason.

An entry names a reader, the kind of disagreement, and texts that the table's path and the detail contain. A stale entry is harmless; an entry
that is too broad would hide an error, so each is as narrow as its reason.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["EXPLAINED", "Explained"]


@dataclass(frozen=True, slots=True)
class Explained:
    """A known disagreement.

    Args:
        reader: its name in `golden.py`.
        kind: ``rows``, ``refuses`` or ``reads``.
        reason: in one sentence.
        table: a part of the table's path; empty for all.
        detail: a part of the detail; empty for all.
    """

    reader: str
    kind: str
    reason: str
    table: str = ""
    detail: str = ""

    def is_about(self, table: str, reader: str, kind: str, detail: str) -> bool:
        """Whether the entry explains a disagreement."""
        return (self.reader, self.kind) == (reader, kind) and self.table in table and self.detail in detail


_SAME_PATH = "a path with a scheme and one without are the same file, whose remove counts; other readers treat them as two files"
_NO_SCHEMA = "metadata whose schema is null describes a table without columns, as in delta-spark"
_INT96 = "deltalake reads INT96 as nanoseconds, whose range does not include the year 9999"
_WIDER = "statistics wider than the file are refused (035); neither Spark's own scan nor other readers compare them with the file"

_EDITED_BY_HAND = (
    ("crc-full", "the checksum has transactions and domains that no commit made: reported as corruption (014)"),
    ("parsed-stats", "the statistics have values of a column that the file lacks: reported as corruption (014)"),
    ("table-with-cdf", "two commits have the same txnId, so one is a copy of the other: reported as corruption (014)"),
)

EXPLAINED: tuple[Explained, ...] = (
    # tables
    Explained("deltalake", "refuses", _NO_SCHEMA, "canonicalized-paths-", "schemaString"),
    Explained("duckdb", "refuses", _NO_SCHEMA, "canonicalized-paths-", "schemaString"),
    Explained("deltalake", "refuses", _SAME_PATH, "canonicalized-paths-"),
    Explained("duckdb", "refuses", _SAME_PATH, "canonicalized-paths-"),
    Explained("deltalake", "rows", _INT96, "table_with_edge_timestamps"),
    *(Explained(reader, "reads", _WIDER, "delta-0.8.0") for reader in ("deltalake", "duckdb", "spark")),
    *(Explained(reader, "reads", reason, table) for reader in ("deltalake", "duckdb") for table, reason in _EDITED_BY_HAND),
    Explained(
        "spark",
        "reads",
        "the statistics have values of a column that the file lacks; Spark's own scan does not compare them (014)",
        "parsed-stats",
    ),
    # limits of other readers
    Explained("deltalake", "refuses", "deltalake 1.6 does not support the feature", detail="Unsupported table features required"),
    Explained(
        "duckdb",
        "refuses",
        "DuckDB requires columnMapping in readerFeatures although reader version 2 implies it",
        detail="Writer features must be",
    ),
    Explained(
        "duckdb", "refuses", "DuckDB fails on lists of two levels", detail="Vector::Reference used on vector of different type"
    ),
    Explained(
        "duckdb", "rows", "DuckDB reads partition columns of mapped tables as null", "timestamp_ntz-id-mode", "Partition=None"
    ),
    Explained(
        "duckdb", "rows", "DuckDB reads partition columns of mapped tables as null", "timestamp_ntz-name-mode", "Partition=None"
    ),
    Explained("duckdb", "refuses", "DuckDB does not support the type void", "void-column"),
    Explained(
        "duckdb", "refuses", "DuckDB's delta extension does not support the type variant", detail="Unsupported Arrow type VARIANT"
    ),
    Explained(
        "spark",
        "refuses",
        "Spark reads data files itself and reports a missing one with its own error",
        detail="not DELTA_FILE_NOT_FOUND",
    ),
    # limits of Tahoe
    Explained(
        "spark",
        "refuses",
        "Spark's scan cannot read bytes as decimals, a change allowed by the preview of type widening: refused by column (029)",
        "data/type-widening",
        "DELTA_UNSUPPORTED_TYPE_CHANGE_IN_SCHEMA",
    ),
    Explained(
        "spark",
        "reads",
        "only Spark's own scan reads these shredded variants (029)",
        "variant-stats",
        "DELTA_UNSUPPORTED_DATA_TYPES",
    ),
    Explained("deltalake", "reads", "variants are refused by name", detail="type variant"),
    Explained("duckdb", "reads", "variants are refused by name", detail="type variant"),
)
