"""The gain of a log compaction file for readers: a log of many commits after its checkpoint, without and with one.

The same table twice: a thousand commits of 10 files after version 0, and one file with their content (PROTOCOL.md, "Log Compaction
Files"). Tahoe does not read it while its commits exist (docs/design/014); deltalake and DuckDB's delta extension open the table and
list its files. Every measurement is a separate process, imports excluded.

    python benchmarks/log_compactions.py [--commits 1000] [--rounds 5]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from _log_tables import make_commits
from _processes import answer, by_turns, show


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--commits", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    script = Path(__file__)
    with tempfile.TemporaryDirectory() as folder:
        alone = make_commits(Path(folder, "alone"), arguments.commits)
        compacted = make_commits(Path(folder, "compacted"), arguments.commits)
        _compact(compacted / "_delta_log", arguments.commits - 1)
        cases = {}
        for reader in ("deltalake", "duckdb", "tahoe"):
            runs = {"Tahoe": [reader, str(compacted)], "without": [reader, str(alone)]}
            cases[f"{reader}, with"] = by_turns(script, runs, arguments.rounds), ""
    show(f"{arguments.commits:,} commits, with and without a compaction (medians of {arguments.rounds})", cases)


def _compact(log: Path, last: int) -> None:
    """Commits 1 to `last` in one file: these commits only add, each file once."""
    lines = []
    for version in range(1, last + 1):
        lines += [
            line for line in (log / f"{version:020d}.json").read_text().splitlines() if not line.startswith('{"commitInfo"')
        ]
    (log / f"{1:020d}.{last:020d}.compacted.json").write_text("\n".join(lines) + "\n")


def deltalake(table: str) -> Callable[[], object]:
    from deltalake import DeltaTable

    return lambda: len(DeltaTable(table).file_uris())


def duckdb(table: str) -> Callable[[], object]:
    import sysconfig

    import duckdb

    (extension,) = Path(sysconfig.get_path("purelib"), "duckdb_extension_delta").rglob("*.duckdb_extension")
    connection = duckdb.connect()
    connection.execute(f"LOAD '{extension}'")
    return lambda: connection.execute(f"SELECT count(*) FROM delta_scan('{table}') WHERE id = -5").fetchone()


def tahoe(table: str) -> Callable[[], object]:
    import pyarrow as pa

    from tahoe.snapshot.snapshot import Snapshot
    from tahoe.store.object_store import open_store

    pa.array([1])
    return lambda: Snapshot.at(open_store(table)).num_files


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        answer(globals()[sys.argv[1]](*sys.argv[2:]))
    else:
        main()
