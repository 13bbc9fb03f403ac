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


_SAME_PATH = "a path with a scheme and one without are the same file: its remove counts; the others take them for two"
_NO_SCHEMA = "metadata whose schema is null is that of a table without columns, as in the reference"
_INT96 = "deltalake reads INT96 as nanoseconds, which do not hold the year 9999"
_WIDER = "statistics wider than the file are refused (035); Spark's own scan does not hold them against the file, nor do others"

_MADE_BY_HAND = (
    ("crc-full", "the checksum tells transactions and domains that no commit made: told as damage (014)"),
    ("parsed-stats", "the statistics tell values of a column that the file lacks: told as damage (014)"),
    ("table-with-cdf", "two commits have one txnId, so one is a copy of the other: told as damage (014)"),
)

EXPLAINED: tuple[Explained, ...] = (
    # tables
    Explained("deltalake", "refuses", _NO_SCHEMA, "canonicalized-paths-", "schemaString"),
    Explained("duckdb", "refuses", _NO_SCHEMA, "canonicalized-paths-", "schemaString"),
    Explained("deltalake", "refuses", _SAME_PATH, "canonicalized-paths-"),
    Explained("duckdb", "refuses", _SAME_PATH, "canonicalized-paths-"),
    Explained("deltalake", "rows", _INT96, "table_with_edge_timestamps"),
    *(Explained(reader, "reads", _WIDER, "delta-0.8.0") for reader in ("deltalake", "duckdb", "spark")),
    *(Explained(reader, "reads", reason, table) for reader in ("deltalake", "duckdb") for table, reason in _MADE_BY_HAND),
    Explained(
        "spark",
        "reads",
        "the statistics tell values of a column that the file lacks; Spark's own scan does not hold them against the file (014)",
        "parsed-stats",
    ),
    # what readers cannot do
    Explained("deltalake", "refuses", "deltalake 1.6 does not know the feature", detail="Unsupported table features required"),
    Explained(
        "duckdb",
        "refuses",
        "DuckDB wants columnMapping in readerFeatures where reader version 2 implies it",
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
    Explained("duckdb", "refuses", "DuckDB does not know the type void", "void-column"),
    Explained(
        "duckdb", "refuses", "DuckDB's delta extension does not know the type variant", detail="Unsupported Arrow type VARIANT"
    ),
    Explained(
        "spark",
        "refuses",
        "Spark reads data files itself and tells a missing one in its own words",
        detail="not DELTA_FILE_NOT_FOUND",
    ),
    # what Tahoe cannot do
    Explained(
        "spark",
        "refuses",
        "Spark's scan reads no bytes as decimals, a change that the preview of type widening knew: refused by column (029)",
        "data/type-widening",
        "DELTA_UNSUPPORTED_TYPE_CHANGE_IN_SCHEMA",
    ),
    Explained(
        "spark",
        "reads",
        "shredded variants are read by Spark's own scan alone (029)",
        "variant-stats",
        "DELTA_UNSUPPORTED_DATA_TYPES",
    ),
    Explained("deltalake", "reads", "variants are refused by name", detail="type variant"),
    Explained("duckdb", "reads", "variants are refused by name", detail="type variant"),
)
