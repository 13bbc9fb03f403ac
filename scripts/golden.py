"""golden.py FOLDER: read every Delta table below a folder with every reader, and report disagreements.

    scripts/golden.py ../shared/golden              # tahoe.Table, deltalake, DuckDB
    scripts/golden.py ../shared/golden --spark      # and Spark, natively and with the Python data source

Tahoe's own readers must agree with each other in rows and in refusals. Other readers must return the same rows if both read a table; a table
that only one side reads is reported. `golden_explained.py` lists the known disagreements with their reasons; every other one is printed, and
the exit code is 1 if there is any.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from golden_explained import EXPLAINED
from pyspark.sql.types import VariantVal

import tahoe

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.interop.engines import read_deltalake, read_duckdb, restart_duckdb

_OURS = ("arrow", "spark", "portable")


@dataclass(frozen=True)
class Outcome:
    """The result of one reader for a table: its rows, or the reason for its refusal."""

    table: pa.Table | None
    refusal: str = ""

    @cached_property
    def rows(self) -> list[str] | None:
        """The rows as normalized texts, sorted; None after a refusal."""
        return None if self.table is None else sorted(_rows(self.table))

    def equals(self, other: Outcome) -> bool:
        """Whether both have the same rows, in any order. Large tables are first compared in Arrow, which saves seconds."""
        return _surely_equal(self.table, other.table) or self.rows == other.rows

    @property
    def why(self) -> str:
        """The refusal in one line."""
        return " ".join(self.refusal.split())[:250]

    @property
    def summary(self) -> str:
        """The number of rows, or ``refused``."""
        return f"{self.table.num_rows} rows" if self.table is not None else "refused"


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A difference between a reader and the first of Tahoe's.

    Args:
        kind: ``rows`` (both read, with different rows), ``refuses`` (only Tahoe reads), ``reads`` (Tahoe refuses).
        reason: why the difference is expected; empty if it is unexplained.
    """

    table: str
    reader: str
    kind: str
    detail: str
    reason: str = ""


def main() -> int:
    """Print the disagreements of all tables below the folder of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--spark", action="store_true", help="read with Spark too, natively and with the Python data source")
    parser.add_argument("--json", action="store_true", help="one JSON object for each disagreement, including the explained ones")
    arguments = parser.parse_args()
    readers = {"arrow": _arrow, **(_spark_readers() if arguments.spark else {}), "deltalake": _deltalake, "duckdb": _duckdb}
    tables = sorted(path.parent for path in arguments.folder.resolve().rglob("_delta_log") if path.is_dir())
    disagreements: list[Disagreement] = []
    for done, table in enumerate(tables, start=1):
        print(f"{done} of {len(tables)}: {table}", file=sys.stderr, flush=True)
        disagreements += compare(table, arguments.folder.resolve(), readers)
    unexplained = [entry for entry in disagreements if not entry.reason]
    for entry in disagreements if arguments.json else unexplained:
        print(json.dumps(asdict(entry)) if arguments.json else f"{entry.table}: {entry.reader} {entry.kind}: {entry.detail}")
    if not arguments.json:
        for reason, count in Counter(entry.reason for entry in disagreements if entry.reason).most_common():
            print(f"explained {count} times: {reason}")
        print(
            f"{len(tables)} tables, {len(readers)} readers: {len(disagreements)} disagreements, {len(unexplained)} of them unexplained"
        )
    return bool(unexplained)


def compare(table: Path, root: Path, readers: Mapping[str, Callable[[Path], pa.Table]]) -> Iterator[Disagreement]:
    """Yield the disagreements of the readers of one table with the first reader."""
    outcomes = {name: _outcome(read, table) for name, read in readers.items()}
    (_, first), *others = outcomes.items()
    name = str(table.relative_to(root)) or table.name
    for reader, outcome in others:
        disagreement = _disagreement(first, outcome, of_ours=reader in _OURS)
        if disagreement is not None:
            kind, detail = disagreement
            yield Disagreement(name, reader, kind, detail, _reason(name, reader, kind, detail))


def _disagreement(first: Outcome, other: Outcome, *, of_ours: bool) -> tuple[str, str] | None:
    if first.table is None and other.table is None:
        # Spark wraps the errors of the Python data source in its own, whose text contains them.
        ours = first.refusal.split(":")[0]
        return ("refuses", f"{other.why}, and not {ours}") if of_ours and ours not in other.refusal else None
    if first.table is None:
        return "reads", f"{other.summary}; Tahoe refuses: {first.why}"
    if other.table is None:
        return "refuses", other.why
    if first.equals(other):
        return None
    ours, theirs = Counter(first.rows), Counter(other.rows)
    return "rows", f"{other.summary}, Tahoe {first.summary}; e.g. {_example(theirs - ours)}, Tahoe {_example(ours - theirs)}"


def _example(rows: Counter[str]) -> str:
    return next(iter(rows), "nothing")[:200]


def _reason(table: str, reader: str, kind: str, detail: str) -> str:
    return next((entry.reason for entry in EXPLAINED if entry.is_about(table, reader, kind, detail)), "")


def _outcome(read: Callable[[Path], pa.Table], table: Path) -> Outcome:
    try:
        outcome = Outcome(read(table))
        if outcome.table is not None and outcome.table.num_rows < _MANY_ROWS:
            assert outcome.rows is not None  # raises for values that Python cannot represent
        return outcome
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - a Rust panic is not an Exception
        code = getattr(error, "code", None)
        return Outcome(None, f"{code or type(error).__name__}: {error}")


# -- readers ---------------------------------------------------------------------------------------------------------------


def _arrow(table: Path) -> pa.Table:
    return tahoe.Table(table).to_arrow()


def _deltalake(table: Path) -> pa.Table:
    return read_deltalake(str(table))


def _duckdb(table: Path) -> pa.Table:
    try:
        return read_duckdb(str(table))
    except (duckdb.InternalException, duckdb.FatalException):
        restart_duckdb()
        raise


def _spark_readers() -> dict[str, Callable[[Path], pa.Table]]:
    """Spark's two readers, in one session each."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
    )
    session = builder.config("spark.sql.execution.arrow.pyspark.enabled", "true").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    plain = session.newSession()
    from tahoe.spark.portable.data_source import DeltaDataSource

    plain.dataSource.register(DeltaDataSource)
    native = tahoe.enable(session)
    return {
        "spark": lambda table: _collected(native.read.format("delta").load(str(table))),
        "portable": lambda table: _collected(plain.read.format("delta").load(str(table))),
    }


def _collected(frame: Any) -> pa.Table:
    """Return the rows of a DataFrame: row by row if a variant in an array is null, because PySpark's `toArrow` fails then."""
    from pyspark.sql.pandas.types import to_arrow_schema

    try:
        return frame.toArrow()
    except pa.ArrowInvalid:
        schema = pa.schema([pa.field(field.name, _nullable(field.type)) for field in to_arrow_schema(frame.schema)])
        columns = zip(*(tuple(row) for row in frame.collect()), strict=True)
        arrays = [
            pa.array([_of_row(value, field.type) for value in values], field.type)
            for field, values in zip(schema, columns, strict=True)
        ]
        return pa.Table.from_arrays(arrays, schema=schema)


def _nullable(kind: pa.DataType) -> pa.DataType:
    """Return the type with all its parts nullable."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(part.name, _nullable(part.type)) for part in kind])
    if pa.types.is_map(kind):
        return pa.map_(_nullable(kind.key_type), _nullable(kind.item_type))
    return pa.list_(_nullable(kind.value_type)) if pa.types.is_list(kind) else kind


def _of_row(value: Any, kind: pa.DataType) -> Any:
    """Convert a PySpark value for Arrow: a variant becomes its two binaries."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {part.name: _of_row(getattr(value, part.name), part.type) for part in kind}
    if pa.types.is_map(kind):
        return [(_of_row(key, kind.key_type), _of_row(item, kind.item_type)) for key, item in value.items()]
    return [_of_row(part, kind.value_type) for part in value] if pa.types.is_list(kind) else value


_MANY_ROWS = 10_000


def _surely_equal(table: pa.Table | None, other: pa.Table | None) -> bool:
    """Whether two large tables of flat columns certainly have the same rows; False if unsure."""
    if table is None or other is None or table.num_rows != other.num_rows or table.num_rows < _MANY_ROWS:
        return False
    try:
        other = other.select(table.column_names)
        kinds = list(zip(table.schema.types, other.schema.types, strict=True))
        if any(pa.types.is_nested(mine) or getattr(mine, "tz", None) != getattr(theirs, "tz", None) for mine, theirs in kinds):
            return False
        keys = [(name, "ascending") for name in table.column_names]
        return bool(table.sort_by(keys).equals(other.cast(table.schema).sort_by(keys)))
    except (pa.ArrowException, KeyError):
        return False


# -- normalized rows -------------------------------------------------------------------------------------------------------


def _rows(table: pa.Table) -> Iterator[str]:
    """Yield a text for each row that depends on the values but not on the Arrow types; columns are in the order of their names."""
    names = sorted(range(table.num_columns), key=lambda at: table.column_names[at])
    columns = [[f"{table.column_names[at]}={_text(value)}" for value in _values(table.column(at))] for at in names]
    return (", ".join(row) for row in zip(*columns, strict=True)) if columns else iter(["no column"] * table.num_rows)


def _values(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    values: list[Any] = column.to_pylist()
    return values


def _text(value: Any) -> str:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value)
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat() if value.tzinfo is not None else value.isoformat()
    if (
        isinstance(value, dict)
        and set(value) == {"metadata", "value"}
        and all(isinstance(part, bytes) for part in value.values())
    ):
        # A variant value has several encodings: an integer in more bytes, names in another order.
        return f"variant {_text(VariantVal(value['value'], value['metadata']).toPython())}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_text(part)}" for name, part in sorted(value.items())) + "}"
    if isinstance(value, list):
        texts = [f"{_text(part[0])} -> {_text(part[1])}" if isinstance(part, tuple) else _text(part) for part in value]
        return "[" + ", ".join(sorted(texts) if value and isinstance(value[0], tuple) else texts) + "]"
    return repr(value)


if __name__ == "__main__":
    sys.exit(main())
