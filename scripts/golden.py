"""golden.py FOLDER: reads every Delta table below a folder in every way there is, and tells where two of them disagree.

    scripts/golden.py ../shared/golden              # tahoe.Table, deltalake, DuckDB
    scripts/golden.py ../shared/golden --spark      # and Spark, natively and by the portable source

Tahoe's own ways must agree with each other in rows and in what they refuse. Others must agree with them in rows where both read a
table; that they refuse one that we read, or the other way round, is told. What is known and has a reason stands in
`golden_explained.py`; every disagreement that is not there is printed, and the exit code is 1 where there is one.
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
    """What one reader made of a table: its rows, or why it refused."""

    table: pa.Table | None
    refusal: str = ""

    @cached_property
    def rows(self) -> list[str] | None:
        """The rows as texts in one form, sorted; None where it refused."""
        return None if self.table is None else sorted(_rows(self.table))

    def equals(self, other: Outcome) -> bool:
        """Whether both have the same rows, in any order. Large tables are compared as Arrow has them first, which takes seconds less."""
        return _surely_equal(self.table, other.table) or self.rows == other.rows

    @property
    def why(self) -> str:
        """The refusal in a line."""
        return " ".join(self.refusal.split())[:250]

    @property
    def told(self) -> str:
        """For the table that is printed."""
        return f"{self.table.num_rows} rows" if self.table is not None else "refused"


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Where a reader differs from the first of ours.

    Args:
        kind: ``rows`` (both read, other rows), ``refuses`` (we read), ``reads`` (we refuse).
        reason: why that is as it should be; empty where nobody knows.
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
    parser.add_argument("--spark", action="store_true", help="read with Spark too, natively and by the portable source")
    parser.add_argument("--json", action="store_true", help="one JSON object for each disagreement, with those explained")
    asked = parser.parse_args()
    readers = {"arrow": _arrow, **(_spark_readers() if asked.spark else {}), "deltalake": _deltalake, "duckdb": _duckdb}
    tables = sorted(path.parent for path in asked.folder.resolve().rglob("_delta_log") if path.is_dir())
    found: list[Disagreement] = []
    for done, table in enumerate(tables, start=1):
        print(f"{done} of {len(tables)}: {table}", file=sys.stderr, flush=True)
        found += compare(table, asked.folder.resolve(), readers)
    unexplained = [each for each in found if not each.reason]
    for each in found if asked.json else unexplained:
        print(json.dumps(asdict(each)) if asked.json else f"{each.table}: {each.reader} {each.kind}: {each.detail}")
    if not asked.json:
        for reason, count in Counter(each.reason for each in found if each.reason).most_common():
            print(f"explained {count} times: {reason}")
        print(
            f"{len(tables)} tables, {len(readers)} readers: {len(found)} disagreements, {len(unexplained)} of them not explained"
        )
    return bool(unexplained)


def compare(table: Path, root: Path, readers: Mapping[str, Callable[[Path], pa.Table]]) -> Iterator[Disagreement]:
    """Where the readers of one table disagree with the first one."""
    outcomes = {name: _outcome(read, table) for name, read in readers.items()}
    (_, first), *others = outcomes.items()
    name = str(table.relative_to(root)) or table.name
    for reader, outcome in others:
        told = _disagreement(first, outcome, of_ours=reader in _OURS)
        if told is not None:
            kind, detail = told
            yield Disagreement(name, reader, kind, detail, _reason(name, reader, kind, detail))


def _disagreement(first: Outcome, other: Outcome, *, of_ours: bool) -> tuple[str, str] | None:
    if first.table is None and other.table is None:
        # Spark wraps what the portable source raises in an error of its own, whose text has ours.
        ours = first.refusal.split(":")[0]
        return ("refuses", f"{other.why}, and not {ours}") if of_ours and ours not in other.refusal else None
    if first.table is None:
        return "reads", f"{other.told}; we refuse: {first.why}"
    if other.table is None:
        return "refuses", other.why
    if first.equals(other):
        return None
    one, another = Counter(first.rows), Counter(other.rows)
    return "rows", f"{other.told}, we {first.told}; e.g. {_shown(another - one)} where we have {_shown(one - another)}"


def _shown(rows: Counter[str]) -> str:
    return next(iter(rows), "nothing")[:200]


def _reason(table: str, reader: str, kind: str, detail: str) -> str:
    return next((each.reason for each in EXPLAINED if each.is_about(table, reader, kind, detail)), "")


def _outcome(read: Callable[[Path], pa.Table], table: Path) -> Outcome:
    try:
        outcome = Outcome(read(table))
        if outcome.table is not None and outcome.table.num_rows < _MANY_ROWS:
            assert outcome.rows is not None  # values that Python cannot hold are told here
        return outcome
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - a panic of Rust is no Exception
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
    """Spark's two ways in one session each; what neither collects is the portable source's."""
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
    """The rows of a DataFrame. PySpark hands over no Arrow data where a variant in an array is null: row by row then."""
    from pyspark.sql.pandas.types import to_arrow_schema

    try:
        return frame.toArrow()
    except pa.ArrowInvalid:
        schema = pa.schema([pa.field(each.name, _nullable(each.type)) for each in to_arrow_schema(frame.schema)])
        columns = zip(*(tuple(row) for row in frame.collect()), strict=True)
        arrays = [
            pa.array([_of_row(value, each.type) for value in values], each.type)
            for each, values in zip(schema, columns, strict=True)
        ]
        return pa.Table.from_arrays(arrays, schema=schema)


def _nullable(kind: pa.DataType) -> pa.DataType:
    """The type without parts that may not be null."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(part.name, _nullable(part.type)) for part in kind])
    if pa.types.is_map(kind):
        return pa.map_(_nullable(kind.key_type), _nullable(kind.item_type))
    return pa.list_(_nullable(kind.value_type)) if pa.types.is_list(kind) else kind


def _of_row(value: Any, kind: pa.DataType) -> Any:
    """A value of PySpark's as Arrow takes it: a variant is its two binaries."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {part.name: _of_row(getattr(value, part.name), part.type) for part in kind}
    if pa.types.is_map(kind):
        return [(_of_row(key, kind.key_type), _of_row(held, kind.item_type)) for key, held in value.items()]
    return [_of_row(part, kind.value_type) for part in value] if pa.types.is_list(kind) else value


_MANY_ROWS = 10_000


def _surely_equal(one: pa.Table | None, other: pa.Table | None) -> bool:
    """Whether two large tables of flat columns have the same rows; False where that is not sure."""
    if one is None or other is None or one.num_rows != other.num_rows or one.num_rows < _MANY_ROWS:
        return False
    try:
        other = other.select(one.column_names)
        kinds = list(zip(one.schema.types, other.schema.types, strict=True))
        if any(pa.types.is_nested(mine) or getattr(mine, "tz", None) != getattr(theirs, "tz", None) for mine, theirs in kinds):
            return False
        keys = [(name, "ascending") for name in one.column_names]
        return bool(one.sort_by(keys).equals(other.cast(one.schema).sort_by(keys)))
    except (pa.ArrowException, KeyError):
        return False


# -- rows in one form ------------------------------------------------------------------------------------------------------


def _rows(table: pa.Table) -> Iterator[str]:
    """Each row as a text that is the same for the same values, whatever Arrow types hold them; columns in the order of their names."""
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
        # One value of a variant may be written in several ways: an integer in more bytes, names in another order.
        return f"variant {_text(VariantVal(value['value'], value['metadata']).toPython())}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_text(part)}" for name, part in sorted(value.items())) + "}"
    if isinstance(value, list):
        texts = [f"{_text(part[0])} -> {_text(part[1])}" if isinstance(part, tuple) else _text(part) for part in value]
        return "[" + ", ".join(sorted(texts) if value and isinstance(value[0], tuple) else texts) + "]"
    return repr(value)


if __name__ == "__main__":
    sys.exit(main())
