"""Where Tahoe does otherwise than delta-spark 4.0.1, each with the reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.statements.lives import KINDS

__all__ = ["DIFFERENCES", "Difference"]


@dataclass(frozen=True)
class Difference:
    """One way in which outcomes differ; where it names a life, the life must show it.

    Args:
        life, statement, key: of the outcomes, as patterns of a shell.
        theirs, ours: what the reference does and what Tahoe does, as patterns of a shell over the values' texts.
        kinds: of the tables.
        pyspark: how the version of PySpark begins in which it is so.
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
        "the reference's error has no name of its own, or Spark's; Tahoe's has one of Delta", _ANY, _ANY, "error", theirs, ours
    )


def _earlier(theirs: str, ours: str) -> Difference:
    return Difference(
        "Spark's analyzer looks first there; here the core, which knows no Spark, tells it", _ANY, _ANY, "error", theirs, ours
    )


def _listed(reason: str, life: str, statement: str, *keys: str, kinds: Sequence[str] = KINDS) -> Iterator[Difference]:
    yield from (Difference(reason, life, statement, key, kinds=kinds) for key in keys)


_COPIED = (
    "after REPLACE delta-spark copies schema and properties into the entry, where later commits leave them; here it stays empty"
)
_UNCOUNTED = "without statistics delta-spark does not count the rows of a partition that goes; here the footers tell"
_COMMENT = "delta-spark forgets the comment of a partition column that it was given"
_NO_STRUCT = "delta-spark makes of NULL a struct of NULLs when it casts; NULL stays NULL here"
_LATER = "delta-spark 4.0 does not have it yet; later ones do"
_EVOLUTION = "the clause asks for the new column, and delta-spark 4.0.1 leaves it out"
_TOLD = "delta-spark 4.0 does not tell it; later ones do"
_ONE_COMMIT = "row tracking comes with one commit, not with one for the protocol and one for the property"
_MORE = "Tahoe answers it"
_NOTHING = "a statement that changes nothing commits nothing, or no metaData"
_BY_PATH = "delta-spark 4.0.1 cannot do it with a table that is named by its path"
_OF_PATHS = "errors of paths are one class here, DELTA_TABLE_NOT_FOUND or _ALREADY_EXISTS, whatever the statement"
_NAMED, _PATH = ("managed", "external"), ("path",)
_WITH_ROWS = ("rows", "rows with deletion vectors")

DIFFERENCES: Sequence[Difference] = (
    _unnamed("Py4JJavaError"),
    _unnamed(f"{_A}_LEGACY_ERROR_TEMP_*"),
    _unnamed("AnalysisException", f"{_A}DELTA_*"),
    _unnamed("IllegalArgumentException", "IllegalArgumentException DELTA_*"),
    _unnamed(f"{_A}NOT_SUPPORTED_COMMAND_FOR_V2_TABLE", f"{_A}DELTA_OPERATION_NOT_ALLOWED"),
    _unnamed(f"{_A}INVALID_PARTITION_OPERATION.PARTITION_MANAGEMENT_IS_UNSUPPORTED", f"{_A}DELTA_*"),
    _unnamed(f"{_A}DELTA_OPERATION_NOT_ALLOWED_DETAIL", f"{_A}DELTA_OPERATION_NOT_ALLOWED"),
    _earlier(f"{_A}FIELD_ALREADY_EXISTS", f"{_A}DELTA_DUPLICATE_COLUMNS_FOUND"),
    _earlier(f"{_A}COLUMN_ALREADY_EXISTS", f"{_A}DELTA_DUPLICATE_COLUMNS_FOUND"),
    _earlier(f"{_A}UNRESOLVED_COLUMN.WITH_SUGGESTION", f"{_A}DELTA_COLUMN_NOT_FOUND*"),
    _earlier(f"{_A}ALL_PARTITION_COLUMNS_NOT_ALLOWED", f"{_A}DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION"),
    *_listed(_COPIED, "creation", "*REPLACE TABLE {t} *", "entry", kinds=_NAMED),
    *_listed(_COPIED, "creation from a query", "CREATE OR REPLACE TABLE *", "entry", kinds=_NAMED),
    *_listed(_BY_PATH, "creation", "CREATE OR REPLACE TABLE {t} (a INT *", "error", "commits", "schema", kinds=_PATH),
    *_listed(_OF_PATHS, "creation", "CREATE TABLE {t} (id INT) *", "error", kinds=_PATH),
    *_listed(_OF_PATHS, "creation from a query", "CREATE TABLE {t} * AS SELECT 1 AS id", "error", kinds=_PATH),
    *_listed(_OF_PATHS, "refused creations", "* {t}*", "error", kinds=_PATH),
    *_listed(_TOLD, "inserts into partitions", "INSERT OVERWRITE *", "commits.0.parameters.isDynamicPartitionOverwrite"),
    *(one for life in _WITH_ROWS for one in _listed(_EVOLUTION, life, "MERGE WITH SCHEMA EVOLUTION *", "rows", "schema")),
    *(one for life in _WITH_ROWS for one in _listed(_EVOLUTION, life, "INSERT INTO {t} (id) *", "rows")),
    *(one for life in _WITH_ROWS for one in _listed(_LATER, life, "TRUNCATE TABLE {t}", "error", "commits", "rows")),
    *_listed(_LATER, "*", "SHOW PARTITIONS {t}*", "error", "answers", "answer"),
    *_listed(_NOTHING, "constraints", "* DROP CONSTRAINT IF EXISTS *", "commits"),
    *_listed(_NOTHING, "properties", "* UNSET TBLPROPERTIES ('nope')", "commits.0.isolationLevel"),
    *_listed("the name of a feature as it was written", "properties", "*deletionVectors*", "commits.0.parameters.properties"),
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
    *_listed(_TOLD, "clustering", "ALTER TABLE {t} CLUSTER BY (id, ID)", "error"),
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
