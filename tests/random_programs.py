"""Random programs of SQL statements over a table `t`, each from a seed: columns of every type, values that do not fit included."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from pyspark.sql import SparkSession

from tahoe.base.exceptions import TahoeWarning
from tests.conformance.raised import Raised, raised_by
from tests.conformance.rendering import collected, schema_text

__all__ = ["Outcome", "Program", "outcomes"]

LITERALS = {
    "INT": ("0", "1", "2", "3", "-1", "40000"),
    "BIGINT": ("0", "1", "2", "-1", "3000000000"),
    "TINYINT": ("0", "1", "3", "127"),
    "STRING": ("'a'", "'b'", "''", "' x '", "'1'", "'2026-01-02'", "'é'"),
    "VARCHAR(4)": ("'a'", "'abcd'", "'abc   '", "'abcdef'"),
    "CHAR(3)": ("'a'", "'abc'", "''", "'abcd'"),
    "DOUBLE": ("1.5D", "-0.0D", "double('NaN')", "1e10"),
    "DECIMAL(6,2)": ("1.25", "2", "99999.994", "-0.005"),
    "BOOLEAN": ("true", "false"),
    "DATE": ("DATE'2026-01-02'", "DATE'0001-01-01'", "DATE'1582-10-10'"),
    "TIMESTAMP": ("TIMESTAMP'2026-01-02 03:04:05.123456'", "TIMESTAMP'1900-01-01 00:00:00'"),
    "BINARY": ("X'00FF'", "X''"),
    "ARRAY<INT>": ("array(1, 2)", "array()", "array(1, NULL)"),
    "MAP<STRING, INT>": ("map('k', 1)", "map()"),
    "STRUCT<a: INT, b: STRING>": (
        "named_struct('a', 1, 'b', 'x')",
        "named_struct('b', 'q', 'a', 9)",
        "named_struct('a', NULL, 'b', NULL)",
    ),
}
PROPERTIES = (
    "'delta.columnMapping.mode' = 'name'",
    "'delta.enableDeletionVectors' = 'true'",
    "'delta.enableChangeDataFeed' = 'true'",
    "'delta.enableTypeWidening' = 'true'",
    "'delta.enableRowTracking' = 'true'",
    "'delta.feature.allowColumnDefaults' = 'supported'",
)
NAMES = ("c", "d", "e", "CamelCase", "`Ärg`")
_WRONG_TYPE = 0.02


@dataclass
class Program:
    """The statements of one seed, made one after the other; `columns` are those that `t` has if every statement succeeds.

    Args:
        without: literals that no statement has.
    """

    random: Random
    columns: dict[str, str] = field(default_factory=dict)
    without: Collection[str] = ()

    def statements(self, count: int) -> list[str]:
        """Return CREATE TABLE, an INSERT, and `count` random statements."""
        makers = (
            *[self._insert] * 3,
            *[self._update] * 3,
            *[self._delete] * 2,
            *[self._merge] * 4,
            *[self._alter] * 3,
            *[self._select] * 3,
            self._replace,
            lambda: f"RESTORE TABLE t TO VERSION AS OF {self.random.randint(0, 3)}",
            lambda: "OPTIMIZE t",
        )
        return [self._create(), self._insert(), *(self.random.choice(makers)() for _ in range(count))]

    def _literal(self, data_type: str) -> str:
        chance = self.random.random()
        if chance < 0.1:
            return "NULL"
        literals = LITERALS[self.random.choice(list(LITERALS)) if chance < 0.1 + _WRONG_TYPE else data_type]
        return self.random.choice([literal for literal in literals if literal not in self.without])

    def _create(self) -> str:
        self.columns = {"id": self.random.choice(("INT", "BIGINT", "STRING"))}
        for name in self.random.sample(NAMES, self.random.randint(1, 4)):
            self.columns[name] = self.random.choice(list(LITERALS))
        defined = [f"{name} {data_type}{self._default(data_type)}" for name, data_type in self.columns.items()]
        flat = [name for name, data_type in self.columns.items() if "<" not in data_type]
        chosen = {PROPERTIES[-1], *self.random.sample(PROPERTIES, self.random.randint(0, 3))}
        by = f" PARTITIONED BY ({self.random.choice(flat)})" if self.random.random() < 0.4 else ""
        return f"CREATE TABLE t ({', '.join(defined)}) USING delta{by} TBLPROPERTIES ({', '.join(sorted(chosen))})"

    def _default(self, data_type: str) -> str:
        return f" DEFAULT {self._literal(data_type)}" if "<" not in data_type and self.random.random() < 0.1 else ""

    def _source(self) -> tuple[dict[str, str], str]:
        """Return the columns and the text of a query with nearly the table's columns."""
        columns = dict(self.columns)
        if len(columns) > 1 and self.random.random() < 0.25:
            del columns[self.random.choice(list(columns)[1:])]
        if self.random.random() < 0.25:
            columns["extra"] = self.random.choice(list(LITERALS))
        names = self.random.sample(list(columns), len(columns)) if self.random.random() < 0.3 else list(columns)
        types = {name: "STRING" if "CHAR" in columns[name] else columns[name] for name in names}
        rows = [
            ", ".join(f"CAST({self._literal(columns[name])} AS {types[name]}) AS {name}" for name in names)
            for _ in range(self.random.randint(1, 3))
        ]
        return {name: columns[name] for name in names}, " UNION ALL ".join(f"SELECT {row}" for row in rows)

    def _condition(self, columns: dict[str, str], side: str = "") -> str:
        name = self.random.choice(list(columns))
        data_type, column = columns[name], side + name
        if self.random.random() < 0.15:
            return f"{column} IS {self.random.choice(('', 'NOT '))}NULL"
        if "<" in data_type:
            part = {"A": f"size({column})", "M": f"{column}['k']", "S": f"{column}.a"}[data_type[0]]
            return f"{part} {self.random.choice(('=', '<', '<=>'))} 1"
        if self.random.random() < 0.2:
            return f"{column} IN ({self._literal(data_type)}, {self._literal(data_type)})"
        return f"{column} {self.random.choice(('=', '<', '>', '<>', '<=>'))} {self._literal(data_type)}"

    def _assignment(self, columns: dict[str, str], side: str = "") -> str:
        name = self.random.choice(list(self.columns))
        data_type = self.columns[name]
        same = [f"{side}{other}" for other, other_type in columns.items() if other_type == data_type]
        wrong = [f"{side}{self.random.choice(list(columns))}"] if self.random.random() < 0.2 else []
        value = self.random.choice([self._literal(data_type), *same, *wrong])
        is_field = data_type.startswith("STRUCT") and self.random.random() < 0.5
        return f"{name}.a = {self._literal('INT')}" if is_field else f"{name} = {value}"

    def _insert(self) -> str:
        form = self.random.choice(("INTO t", "INTO t", "INTO t BY NAME", "OVERWRITE t", "WITH SCHEMA EVOLUTION INTO t"))
        if form == "INTO t" and self.random.random() < 0.3:
            form = f"INTO t REPLACE WHERE {self._condition(self.columns)}"
        return f"INSERT {form} {self._source()[1]}"

    def _update(self) -> str:
        return f"UPDATE t SET {self._assignment(self.columns)} WHERE {self._condition(self.columns)}"

    def _select(self) -> str:
        name, condition = self.random.choice(list(self.columns)), self._condition(self.columns)
        return self.random.choice(
            (
                f"SELECT * FROM t WHERE {condition}",
                f"SELECT {name} FROM t WHERE {condition} OR {self._condition(self.columns)}",
                f"SELECT count(*), count({name}), min({name}), max({name}) FROM t",
                f"SELECT {name}, count(*) FROM t WHERE {condition} GROUP BY {name}",
                f"SELECT a.* FROM t a JOIN t VERSION AS OF 1 b ON a.id = b.id AND {self._condition(self.columns, 'b.')}",
                f"SELECT * EXCEPT (_commit_timestamp) FROM table_changes('t', {self.random.randint(0, 2)})",
            )
        )

    def _delete(self) -> str:
        return f"DELETE FROM t WHERE {self._condition(self.columns)}"

    def _replace(self) -> str:
        return f"CREATE OR REPLACE TABLE t USING delta AS SELECT * FROM t WHERE {self._condition(self.columns)}"

    def _merge(self) -> str:
        source, query = self._source()
        clauses = [
            "WHEN MATCHED THEN UPDATE SET *",
            f"WHEN MATCHED THEN UPDATE SET {self._assignment(source, 's.')}",
            "WHEN MATCHED THEN DELETE",
            "WHEN NOT MATCHED THEN INSERT *",
            f"WHEN NOT MATCHED BY SOURCE THEN UPDATE SET {self._assignment(self.columns, 't.')}",
            "WHEN NOT MATCHED BY SOURCE THEN DELETE",
        ]
        chosen = sorted(self.random.sample(range(len(clauses)), self.random.randint(1, 3)))
        conditional = [
            clauses[number].replace(" THEN", f" AND {self._condition_of(clauses[number], source)} THEN") for number in chosen
        ]
        evolving = " WITH SCHEMA EVOLUTION" if self.random.random() < 0.3 else ""
        return f"MERGE{evolving} INTO t USING ({query}) s ON t.id = s.id {' '.join(conditional)}"

    def _condition_of(self, clause: str, source: dict[str, str]) -> str:
        return self._condition(self.columns, "t.") if "BY SOURCE" in clause else self._condition(source, "s.")

    def _alter(self) -> str:
        name, data_type = self.random.choice(list(self.columns.items()))
        change = self.random.choice(
            (
                f"ADD COLUMNS (n {self.random.choice(list(LITERALS))})",
                f"DROP COLUMN {name}",
                f"RENAME COLUMN {name} TO r",
                f"ALTER COLUMN {name} TYPE {self.random.choice(list(LITERALS))}",
                f"ALTER COLUMN {name} SET DEFAULT {self._literal(data_type)}",
                f"ALTER COLUMN {name} {self.random.choice(('FIRST', 'DROP NOT NULL', 'DROP DEFAULT'))}",
                f"ADD CONSTRAINT k CHECK ({self._condition(self.columns)})",
                f"SET TBLPROPERTIES ({self.random.choice(PROPERTIES)})",
            )
        )
        return f"ALTER TABLE t {change}"


@dataclass(frozen=True)
class Outcome:
    """The error of a statement, or None, and the table's rows and schema after it; of a table that does not exist, None.

    Args:
        answer: the rows of a query, or the counts of changed rows.
    """

    error: Raised | None
    answer: list[str]
    rows: list[str] | None
    schema: str | None


def outcomes(spark: SparkSession, statements: list[str], folder: Path) -> list[Outcome]:
    """Run the statements in a database of their own, in a folder that does not exist yet."""
    database = f"random_{folder.name.replace('-', '_')}"
    spark.sql(f"CREATE DATABASE {database} LOCATION '{folder}'")
    try:
        spark.sql(f"USE {database}")
        return [outcome(spark, statement, str(folder)) for statement in statements]
    finally:
        spark.sql("USE default")
        spark.sql(f"DROP DATABASE {database} CASCADE")


def outcome(spark: SparkSession, statement: str, folder: str) -> Outcome:
    error, answer = None, list[str]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TahoeWarning)  # of settings for delta-spark
        try:
            frame = spark.sql(statement)
            if statement.startswith(("SELECT", "UPDATE", "DELETE", "MERGE")):
                answer = list(collected(frame))
        except Exception as raised:  # noqa: BLE001 - any error of a random statement is its outcome
            error = raised_by(raised, folder)
    if not spark.catalog.tableExists("t"):
        return Outcome(error, answer, None, None)
    frame = spark.table("t")
    return Outcome(error, answer, list(collected(frame)), schema_text(frame.schema))
