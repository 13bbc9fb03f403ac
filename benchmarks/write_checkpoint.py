"""Writing the checkpoint of a table of a million files: Tahoe against deltalake.

Every measurement is a separate process, imports excluded, peak memory included; each checkpoint is removed before the next run.
deltalake writes statistics as text alone. Tahoe writes the same content for comparison, and its default, text and
structs: carried over from an older checkpoint that has structs, or parsed from the text of every file.

Goal: a third of deltalake's time for its content, and for structs that are carried over.

    python benchmarks/write_checkpoint.py [--files 1000000] [--rounds 3]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from _log_tables import make_table
from _processes import answer, by_turns, show


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=1_000_000, help="live files")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    script = Path(__file__)
    with tempfile.TemporaryDirectory() as folder:
        texts, structs = make_table(Path(folder), arguments.files)
        hints = {table: (table / "_delta_log" / "_last_checkpoint").read_bytes() for table in (texts, structs)}

        def remove_checkpoints() -> None:
            for table, hint in hints.items():
                (table / "_delta_log" / f"{20:020d}.checkpoint.parquet").unlink(missing_ok=True)
                (table / "_delta_log" / "_last_checkpoint").write_bytes(hint)

        cases = {}
        for name, table, work, goal in (
            ("write: text, as deltalake's", texts, "text_only", "≥ 3"),
            ("write: text and carried structs", structs, "by_default", "≥ 3"),
            ("write: text and parsed structs", texts, "by_default", ""),
            ("open and write: text", texts, "text_cycle", "≥ 5"),
            ("open and write: text and carried structs", structs, "default_cycle", "≥ 3"),
        ):
            theirs = "deltalake_cycle" if work.endswith("cycle") else "deltalake_write"
            runs = {"Tahoe": [f"tahoe_{work}", str(table)], "deltalake": [theirs, str(table)]}
            cases[name] = (by_turns(script, runs, arguments.rounds, after=remove_checkpoints), goal)
            sizes = {who: measured[0].found for who, measured in cases[name][0].items()}
            print(f"{name}: {', '.join(f'{who} {size:,} bytes' for who, size in sizes.items())}")
    show(f"Checkpoint of {arguments.files:,} files (medians of {arguments.rounds})", cases)


def _tahoe(table: str, *, opened: bool, properties: dict[str, str]) -> Callable[[], object]:
    import pyarrow as pa

    from tahoe.log.checkpoints.checkpoint_writer import write_checkpoint
    from tahoe.snapshot.snapshot import Snapshot
    from tahoe.store.object_store import open_store

    pa.array([1])  # the first conversion imports pandas, where it is installed
    store = open_store(table)

    def whole() -> Snapshot:
        snapshot = Snapshot.at(store)
        snapshot.files()
        return snapshot

    remaining = whole() if opened else None

    def work() -> object:
        snapshot = remaining or whole()
        config = replace(snapshot.config, metadata=replace(snapshot.metadata, configuration=properties))
        hint = write_checkpoint(
            store, snapshot.version, snapshot.state, snapshot.files(), snapshot.tombstones(), config, now_ms=1_700_000_000_000
        )
        return hint.size_in_bytes

    return work


_TEXT_ONLY = {"delta.checkpoint.writeStatsAsStruct": "false"}


def tahoe_text_only(table: str) -> Callable[[], object]:
    return _tahoe(table, opened=True, properties=_TEXT_ONLY)


def tahoe_by_default(table: str) -> Callable[[], object]:
    return _tahoe(table, opened=True, properties={})


def tahoe_text_cycle(table: str) -> Callable[[], object]:
    return _tahoe(table, opened=False, properties=_TEXT_ONLY)


def tahoe_default_cycle(table: str) -> Callable[[], object]:
    return _tahoe(table, opened=False, properties={})


def deltalake_write(table: str) -> Callable[[], object]:
    from deltalake import DeltaTable

    opened = DeltaTable(table)

    def work() -> object:
        opened.create_checkpoint()
        return _size(table)

    return work


def deltalake_cycle(table: str) -> Callable[[], object]:
    from deltalake import DeltaTable

    def work() -> object:
        DeltaTable(table).create_checkpoint()
        return _size(table)

    return work


def _size(table: str) -> int:
    return Path(table, "_delta_log", f"{20:020d}.checkpoint.parquet").stat().st_size


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        answer(globals()[sys.argv[1]](*sys.argv[2:]))
    else:
        main()
