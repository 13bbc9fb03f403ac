"""The differences between Tahoe and delta-spark 4.0.1, each with its reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.statements.lives import KINDS

__all__ = ["DIFFERENCES", "Difference"]


@dataclass(frozen=True)
class Difference:
    """A difference between outcomes. If it names a life, the outcomes of that life must show it.

    Args:
        life, statement, key: shell patterns that select outcomes.
        theirs, ours: shell patterns for the texts of delta-spark's and of Tahoe's values.
        kinds: the kinds of tables.
        pyspark: prefix of the PySpark versions with this difference.
    """

    reason: str
    life: str
    statement: str
    key: str
    theirs: str = "*"
    ours: str = "*"
    kinds: Sequence[str] = KINDS
    pyspark: str = ""


_A = "AnalysisException "
_ANY = "*"


def _unnamed(theirs: str, ours: str = "*") -> Difference:
    return Difference(
        "delta-spark's error has no condition, or one of Spark's; Tahoe's has one of Delta's", _ANY, _ANY, "error", theirs, ours
    )


def _earlier(theirs: str, ours: str) -> Difference:
    return Difference(
        "in delta-spark, Spark's analyzer raises the error first; in Tahoe the core raises it, which does not depend on Spark",
        _ANY,
        _ANY,
        "error",
        theirs,
        ours,
    )


def _listed(reason: str, life: str, statement: str, *keys: str, kinds: Sequence[str] = KINDS) -> Iterator[Difference]:
    yield from (Difference(reason, life, statement, key, kinds=kinds) for key in keys)


_COPIED = "REPLACE in delta-spark copies schema and properties to the catalog entry, where they become stale; Tahoe's stays empty"
_UNCOUNTED = "without statistics delta-spark does not count the rows of a deleted partition; Tahoe reads the footers"
_COMMENT = "delta-spark loses the comment of a partition column"
_NO_STRUCT = "delta-spark casts a NULL struct to a struct of NULLs; in Tahoe it stays NULL"
_LATER = "supported by delta-spark after 4.0"
_EVOLUTION = "the clause requests the new column, and delta-spark 4.0.1 omits it"
_REPORTED_LATER = "reported by delta-spark after 4.0"
_ONE_COMMIT = "one commit enables row tracking, instead of one for the protocol and one for the property"
_MORE = "supported by Tahoe"
_NOTHING = "a statement that changes nothing commits nothing, or no metaData"
_BY_PATH = "not supported by delta-spark 4.0.1 for a table named by its path"
_OF_PATHS = (
    "CREATE TABLE at a path where a table is raises DELTA_TABLE_ALREADY_EXISTS, and other path errors may have another class"
)
_NAMED, _PATH = ("managed", "external"), ("path",)
_WITH_ROWS = ("rows", "rows with deletion vectors")

DIFFERENCES: Sequence[Difference] = (
    _unnamed("Py4JJavaError"),
    _unnamed(f"{_A}_LEGACY_ERROR_TEMP_*"),
    _unnamed("AnalysisException", f"{_A}DELTA_*"),
    _unnamed("IllegalArgumentException", "IllegalArgumentException DELTA_*"),
    _unnamed(f"{_A}INVALID_PARTITION_OPERATION.PARTITION_MANAGEMENT_IS_UNSUPPORTED", f"{_A}DELTA_*"),
    _earlier(f"{_A}UNRESOLVED_COLUMN.WITH_SUGGESTION", f"{_A}DELTA_COLUMN_NOT_FOUND*"),
    *_listed(_COPIED, "creation", "*REPLACE TABLE {t} *", "entry", kinds=_NAMED),
    *_listed(_COPIED, "creation from a query", "CREATE OR REPLACE TABLE *", "entry", kinds=_NAMED),
    *_listed(_BY_PATH, "creation", "CREATE OR REPLACE TABLE {t} (a INT *", "error", "commits", "schema", kinds=_PATH),
    *_listed(_OF_PATHS, "creation", "CREATE TABLE {t} (id INT) *", "error", kinds=_PATH),
    *_listed(_OF_PATHS, "creation from a query", "CREATE TABLE {t} * AS SELECT 1 AS id", "error", kinds=_PATH),
    *_listed(_OF_PATHS, "refused creations", "* {t}*", "error", kinds=_PATH),
    *_listed(
        _REPORTED_LATER, "inserts into partitions", "INSERT OVERWRITE *", "commits.0.parameters.isDynamicPartitionOverwrite"
    ),
    *(entry for life in _WITH_ROWS for entry in _listed(_EVOLUTION, life, "MERGE WITH SCHEMA EVOLUTION *", "rows", "schema")),
    *(entry for life in _WITH_ROWS for entry in _listed(_EVOLUTION, life, "INSERT INTO {t} (id) *", "rows")),
    *(entry for life in _WITH_ROWS for entry in _listed(_LATER, life, "TRUNCATE TABLE {t}", "error", "commits", "rows")),
    *_listed(_LATER, "*", "SHOW PARTITIONS {t}*", "error", "answers", "answer"),
    *_listed(_NOTHING, "constraints", "* DROP CONSTRAINT IF EXISTS *", "commits"),
    *_listed(_NOTHING, "properties", "* UNSET TBLPROPERTIES ('nope')", "commits.0.isolationLevel"),
    *_listed("Tahoe keeps the spelling of a feature name", "properties", "*deletionVectors*", "commits.0.parameters.properties"),
    *_listed(
        _ONE_COMMIT,
        "properties",
        "*enableRowTracking*",
        "commits.0.operation",
        "commits.0.parameters.newProtocol",
        "commits.0.parameters.properties",
        "commits.1",
    ),
    *_listed(_NO_STRUCT, "what it tells", "INSERT INTO *", "rows"),
    *_listed(_MORE, "what it tells", "SHOW CREATE TABLE {t}", "error", "answers", "answer"),
    *_listed(_MORE, "what it tells", "*_metadata.row_index*", "error", "answers", "answer"),
    *_listed(_MORE, "what it tells", "* FROM {database}.`{bare}@v0`", "error", "answers", "answer", kinds=_NAMED),
    *_listed(_BY_PATH, "what it tells", "* TIMESTAMP AS OF current_timestamp()", "error", kinds=_PATH),
    *_listed(_REPORTED_LATER, "clustering", "ALTER TABLE {t} CLUSTER BY (id, ID)", "error"),
    *_listed(_COPIED, "clustering", "CREATE OR REPLACE TABLE {t} *", "entry", kinds=_NAMED),
    *_listed(_BY_PATH, "clustering", "CREATE OR REPLACE TABLE {t} (id INT) *", "error", "commits", "rows", "schema", kinds=_PATH),
    *_listed(_BY_PATH, "clustering", "DESCRIBE DETAIL {t} ~7", "answer", kinds=_PATH),
    *_listed(_BY_PATH, "clustering", "SELECT *", "answers", "answer", kinds=_PATH),
    *_listed(_COPIED, "clones", "CREATE OR REPLACE TABLE {o} SHALLOW CLONE {t}*", "entry of another"),
    *_listed(
        _UNCOUNTED,
        "conversion of partitions",
        "DELETE FROM {t} *",
        "answer",
        "commits.0.metrics.numAddedFiles",
        "commits.0.metrics.numCopiedRows",
        "commits.0.metrics.numDeletedRows",
    ),
    *_listed(_COMMENT, "conversion of partitions", "* NO STATISTICS PARTITIONED BY *", "schema", kinds=_PATH),
)
