"""V2 checkpoints against classic ones, and planning on them as a table grows.

*Write*: a table of a million files has a checkpoint, and one commit follows it: of 10 new files; of 10 new ones while 10 adjacent files
are removed; of 10 new ones while 10 scattered files are removed. A process that has just opened the table writes the next checkpoint.
A classic one is rewritten completely; a V2 one reuses the unchanged sidecars. Goal: a twentieth of the work after
10 new files.

*Plan*: the files for ``id = x``, of which there is one, in a process that has just opened the table. Goal: a table with five times as many
files takes at most 1.5 times as long.

Every measurement is a separate process, imports excluded.

    python benchmarks/v2_checkpoint.py [--files 1000000] [--times 5] [--rounds 5]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from _log_tables import METADATA, ROWS_PER_FILE, add_commit, live_files, make_table
from _processes import answer, by_turns, show

_V2_PROTOCOL = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["v2Checkpoint"],
    "writerFeatures": ["v2Checkpoint"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=1_000_000, help="live files")
    parser.add_argument("--times", type=int, default=5, help="how many times as many the larger table has")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    script, files = Path(__file__), arguments.files
    with tempfile.TemporaryDirectory() as folder:
        classic = make_table(Path(folder), files, commits=0)[1]
        v2, larger = Path(folder, "v2"), Path(folder, "larger")
        make_v2_table(v2, files)
        make_v2_table(larger, files * arguments.times)
        written = {}
        tables = (classic, v2)
        remaining = {table: _log_of(table) for table in tables}
        hints = {table: (table / "_delta_log" / "_last_checkpoint").read_bytes() for table in tables}

        def remove_checkpoints() -> None:
            for table in tables:
                for path in _log_of(table) - remaining[table]:
                    path.unlink()
                (table / "_delta_log" / "_last_checkpoint").write_bytes(hints[table])

        for name, removed, step, goal in (
            ("10 files came", 0, 1, "≥ 20"),
            ("and 10 neighbours went", 10, 1, ""),
            ("and 10 from all over went", 10, files // 10, ""),
        ):
            for table in tables:
                add_commit(table, 11, removed, step)
                remaining[table] = remaining[table] | {table / "_delta_log" / f"{11:020d}.json"}
            runs = {"Tahoe": ["checkpoint", str(v2)], "classic": ["checkpoint", str(classic)]}
            written[f"checkpoint, {name}"] = by_turns(script, runs, arguments.rounds, after=remove_checkpoints), goal
        show(f"The next checkpoint of {files:,} files, V2 and classic (medians of {arguments.rounds})", written)
        middle = (files // 2 + 7) * ROWS_PER_FILE + 1  # of a file that no commit removed
        runs = {"Tahoe": ["plan", str(v2), str(middle)], f"× {arguments.times}": ["plan", str(larger), str(middle)]}
        rounds = 3 * arguments.rounds  # they are short
        planned = {f"plan, V2, {files:,} files": (by_turns(script, runs, rounds), "≤ 1.5")}
        runs = {"Tahoe": ["plan", str(v2), str(middle)], "classic": ["plan", str(classic), str(middle)]}
        planned["plan, V2 and classic"] = by_turns(script, runs, rounds), "≥ 1"
        assert all(each.found == 1 for measured, _ in planned.values() for of_one in measured.values() for each in of_one)
        show(f"One file of many (medians of {rounds})", planned)


def make_v2_table(root: Path, files: int) -> None:
    """The table that `make_table` makes with structs, with a V2 checkpoint by Tahoe: piece by piece, so that a large one takes no memory."""
    import pyarrow as pa

    from tahoe.base.clock import SYSTEM_CLOCK
    from tahoe.base.progress import silent
    from tahoe.log.checkpoints.checkpoint_rows import AddColumns
    from tahoe.log.checkpoints.v2_writer import SidecarWriter, V2Writer, rows_in_sidecar
    from tahoe.log.files.columns import concat
    from tahoe.log.files.last_checkpoint import publish
    from tahoe.log.files.live_files import FILES_SCHEMA
    from tahoe.protocol.actions import Metadata, Protocol
    from tahoe.protocol.config import TableConfig
    from tahoe.protocol.table_state import TableState
    from tahoe.schema.arrow_values import empty_table
    from tahoe.store.object_store import open_store

    (root / "_delta_log").mkdir(parents=True)
    features = frozenset({"v2Checkpoint"})
    metadata = METADATA | {"configuration": {"delta.checkpointPolicy": "v2"}}
    first = [{"commitInfo": {"operation": "WRITE"}}, {"protocol": _V2_PROTOCOL}, {"metaData": metadata}]
    Path(root, "_delta_log", f"{10:020d}.json").write_text("".join(json.dumps(line) + "\n" for line in first))
    store = open_store(str(root))
    state = TableState(
        Protocol(3, 7, features, features),
        Metadata(
            id=str(metadata["id"]),
            schema_string=str(metadata["schemaString"]),
            partition_columns=("region",),
            configuration={"delta.checkpointPolicy": "v2"},
            created_time=1_700_000_000_000,
        ),
        {},
        {},
    )
    config = TableConfig(state.protocol, state.metadata, store.url)
    now_ms = SYSTEM_CLOCK.now_ms()
    writer = SidecarWriter(store, 10, AddColumns.of(config), now_ms, SYSTEM_CLOCK.uuid)
    full, sidecars = rows_in_sidecar(files), []
    for start in range(0, files, full):
        rows: pa.Table = concat([empty_table(FILES_SCHEMA), live_files(range(start, min(start + full, files)))], FILES_SCHEMA)
        sidecars.append(writer.adds(rows))
    publish(store, V2Writer(store, 10, state, config, SYSTEM_CLOCK, now_ms, silent).top_level(sidecars))


def _log_of(table: Path) -> set[Path]:
    return {path for path in (table / "_delta_log").rglob("*") if path.is_file()}


def _ready() -> None:
    import pyarrow as pa

    from tahoe.expr.row_condition import row_condition
    from tahoe.schema.types import PrimitiveType, StructField, StructType

    row_condition("a = 1", StructType((StructField("a", PrimitiveType("long")),)))
    pa.array([1])  # the first conversion imports pandas, where it is installed


def checkpoint(table: str) -> Callable[[], object]:
    _ready()
    from tahoe.base.clock import SYSTEM_CLOCK
    from tahoe.log.checkpoints import checkpoint_writer, v2_writer  # noqa: F401 - the measurement excludes imports
    from tahoe.snapshot.snapshot import Snapshot
    from tahoe.store.object_store import open_store
    from tahoe.txn import next_checkpoint  # noqa: F401
    from tahoe.txn.hooks import checkpoint_snapshot

    return lambda: checkpoint_snapshot(Snapshot.at(open_store(table)), SYSTEM_CLOCK).version


def plan(table: str, value: str) -> Callable[[], object]:
    _ready()
    from tahoe.expr.row_condition import row_condition
    from tahoe.snapshot.snapshot import Snapshot
    from tahoe.store.object_store import open_store

    def work() -> object:
        snapshot = Snapshot.at(open_store(table))
        return snapshot.files_matching(row_condition(f"id = {value}", snapshot.schema).predicate).num_rows

    return work


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        answer(globals()[sys.argv[1]](*sys.argv[2:]))
    else:
        main()
