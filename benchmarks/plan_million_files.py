"""From the log to the files to read, on a table of a million files: Tahoe against deltalake and DuckDB's delta extension.

Every measurement is a separate process, imports excluded, peak memory included. The tables consist of a log only: a checkpoint whose files
have statistics on six columns, as text alone or as text and structs, and ten commits after it; or commits alone.

*Plan* opens the table and finds the files for ``id = x``, of which there is one. deltalake is measured with its two methods:
all actions to Arrow and filtered there, and a query through `QueryBuilder`; DuckDB counts rows. These two would open the data
file, which does not exist, so they query an `id` that no file has. Goals: a tenth of the time of deltalake's faster method
with text, a thirtieth with structs.

*All live files* loads every column of every file; Tahoe keeps statistics in each form of the checkpoint, deltalake in one.

    python benchmarks/plan_million_files.py [--files 1000000] [--rounds 3] [--commits 10000]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from _log_tables import ROWS_PER_FILE, add_commit, make_commits, make_table
from _processes import answer, by_turns, show

MISSING = -5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=1_000_000, help="live files")
    parser.add_argument("--commits", type=int, default=10_000, help="commits of the table without a checkpoint")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    script = Path(__file__)
    with tempfile.TemporaryDirectory() as folder:
        texts, structs = make_table(Path(folder), arguments.files)
        commits = make_commits(Path(folder) / "commits", arguments.commits)
        # The most work for a filter by text: half of the files are refuted by their least value, half by their greatest.
        expected = str(arguments.files // 2 * ROWS_PER_FILE + 1)
        cases = {}
        for name, table, goal in (("plan, statistics as text", texts, "≥ 10"), ("plan, as structs", structs, "≥ 30")):
            runs = {
                "Tahoe": ["tahoe_plan", str(table), expected],
                "deltalake, actions": ["deltalake_actions", str(table), expected],
                "deltalake, query": ["deltalake_query", str(table), str(MISSING)],
                "DuckDB": ["duckdb_count", str(table), str(MISSING)],
            }
            cases[name] = (by_turns(script, runs, arguments.rounds), goal)
        for name, table, work, goal in (
            ("all live files, text", texts, "files", "≥ 2.5"),
            ("all live files, both", structs, "files", ""),
            ("protocol and metadata alone", texts, "open", "≥ 50"),
            ("one commit later", texts, "refresh", "≥ 10"),
            (f"{arguments.commits:,} commits, no checkpoint", commits, "files", "≥ 4"),
        ):
            runs = {who: [f"{who.lower()}_{work}", str(table), "0"] for who in ("Tahoe", "deltalake")}
            cases[name] = (by_turns(script, runs, arguments.rounds, after=lambda: _forget_commits(texts)), goal)
            actual = {who: {str(each.found) for each in measured} for who, measured in cases[name][0].items()}
            assert len(set().union(*actual.values())) == 1, f"{name}: different answers: {actual}"
    show(f"{arguments.files:,} live files (medians of {arguments.rounds})", cases)


def _forget_commits(table: Path) -> None:
    """The files that `refresh` added."""
    (table / "_delta_log" / f"{21:020d}.json").unlink(missing_ok=True)


def _tahoe() -> None:
    import pyarrow as pa

    from tahoe.expr.row_condition import row_condition
    from tahoe.schema.types import PrimitiveType, StructField, StructType

    row_condition("a = 1", StructType((StructField("a", PrimitiveType("long")),)))
    pa.array([1])  # the first conversion imports pandas, where it is installed


def tahoe_plan(table: str, value: str) -> Callable[[], object]:
    _tahoe()
    from tahoe.expr.row_condition import row_condition
    from tahoe.snapshot.snapshot import Snapshot
    from tahoe.store.object_store import open_store

    def work() -> object:
        snapshot = Snapshot.at(open_store(table))
        return snapshot.files_matching(row_condition(f"id = {value}", snapshot.schema).predicate).num_rows

    return work


def tahoe_files(table: str, _: str) -> Callable[[], object]:
    _tahoe()
    from tahoe.snapshot.snapshot import Snapshot
    from tahoe.store.object_store import open_store

    return lambda: Snapshot.at(open_store(table)).num_files


def tahoe_open(table: str, _: str) -> Callable[[], object]:
    _tahoe()
    from tahoe.snapshot.snapshot import Snapshot
    from tahoe.store.object_store import open_store

    return lambda: len(Snapshot.at(open_store(table)).schema)


def tahoe_refresh(table: str, _: str) -> Callable[[], object]:
    _tahoe()
    from tahoe.snapshot.snapshot import Snapshot
    from tahoe.store.object_store import open_store

    snapshot = Snapshot.at(open_store(table))
    snapshot.files()
    add_commit(Path(table), 21)
    return lambda: snapshot.refreshed().num_files


def deltalake_actions(table: str, value: str) -> Callable[[], object]:
    import pyarrow as pa
    import pyarrow.compute as pc
    from deltalake import DeltaTable

    pa.array([1])

    def work() -> object:
        actions = pa.table(DeltaTable(table).get_add_actions(flatten=True))
        low, high = actions.column("min.id"), actions.column("max.id")
        return actions.filter(pc.and_(pc.less_equal(low, int(value)), pc.greater_equal(high, int(value)))).num_rows

    return work


def deltalake_query(table: str, value: str) -> Callable[[], object]:
    from deltalake import DeltaTable, QueryBuilder

    def work() -> object:
        query = QueryBuilder().register("t", DeltaTable(table)).execute(f"SELECT id FROM t WHERE id = {value}")
        return query.read_all().num_rows

    return work


def deltalake_files(table: str, _: str) -> Callable[[], object]:
    from deltalake import DeltaTable

    return lambda: DeltaTable(table).get_add_actions().num_rows


def deltalake_open(table: str, _: str) -> Callable[[], object]:
    from deltalake import DeltaTable

    return lambda: len(DeltaTable(table, without_files=True).schema().fields)


def deltalake_refresh(table: str, _: str) -> Callable[[], object]:
    from deltalake import DeltaTable

    opened = DeltaTable(table)
    opened.get_add_actions()
    add_commit(Path(table), 21)

    def work() -> object:
        opened.update_incremental()
        return opened.get_add_actions().num_rows

    return work


def duckdb_count(table: str, value: str) -> Callable[[], object]:
    import sysconfig

    import duckdb

    (extension,) = Path(sysconfig.get_path("purelib"), "duckdb_extension_delta").rglob("*.duckdb_extension")
    connection = duckdb.connect()
    connection.execute(f"LOAD '{extension}'")
    return lambda: connection.execute(f"SELECT count(*) FROM delta_scan('{table}') WHERE id = {value}").fetchone()


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        answer(globals()[sys.argv[1]](*sys.argv[2:]))
    else:
        main()
