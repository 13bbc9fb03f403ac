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
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from golden_explained import EXPLAINED

import tahoe

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.interop.engines import read_deltalake, read_duckdb, restart_duckdb

_OURS = ("arrow", "spark", "portable")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one reader made of a table: its rows in one form, or why it refused."""

    rows: list[str] | None
    refusal: str = ""

    @property
    def why(self) -> str:
        """The refusal in a line."""
        return " ".join(self.refusal.split())[:250]

    @property
    def told(self) -> str:
        """For the table that is printed."""
        return f"{len(self.rows)} rows" if self.rows is not None else "refused"


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
    found = [each for table in tables for each in compare(table, asked.folder.resolve(), readers)]
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
    if first.rows is None and other.rows is None:
        # Spark wraps what the portable source raises in an error of its own, whose text has ours.
        ours = first.refusal.split(":")[0]
        return ("refuses", f"{other.why}, and not {ours}") if of_ours and ours not in other.refusal else None
    if first.rows is None:
        return "reads", f"{other.told}; we refuse: {first.why}"
    if other.rows is None:
        return "refuses", other.why
    if first.rows == other.rows:
        return None
    one, another = Counter(first.rows), Counter(other.rows)
    return "rows", f"{other.told}, we {first.told}; e.g. {_shown(another - one)} where we have {_shown(one - another)}"


def _shown(rows: Counter[str]) -> str:
    return next(iter(rows), "nothing")[:200]


def _reason(table: str, reader: str, kind: str, detail: str) -> str:
    return next((each.reason for each in EXPLAINED if each.is_about(table, reader, kind, detail)), "")


def _outcome(read: Callable[[Path], pa.Table], table: Path) -> Outcome:
    try:
        return Outcome(sorted(_rows(read(table))))
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
        "spark": lambda table: native.read.format("delta").load(str(table)).toArrow(),
        "portable": lambda table: plain.read.format("delta").load(str(table)).toArrow(),
    }


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
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_text(part)}" for name, part in sorted(value.items())) + "}"
    if isinstance(value, list):
        texts = [f"{_text(part[0])} -> {_text(part[1])}" if isinstance(part, tuple) else _text(part) for part in value]
        return "[" + ", ".join(sorted(texts) if value and isinstance(value[0], tuple) else texts) + "]"
    return repr(value)


if __name__ == "__main__":
    sys.exit(main())
