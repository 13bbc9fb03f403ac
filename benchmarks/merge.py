"""MERGE of 1 % of the rows, half of them existing and half of them new, without Spark: Tahoe (by vectors and by copying) against
deltalake, on tables with the same initial files. Every measurement is a separate process, peak memory included.

The matching rows are scattered over every file. Goal: no slower than deltalake, which copies the files that it changes.

    python benchmarks/merge.py [--rows 10000000] [--files 10] [--rounds 3]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from _processes import answer, by_turns, show


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--files", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    script = Path(__file__)
    with tempfile.TemporaryDirectory() as folder:
        places = {name: Path(folder) / name for name in ("vectors", "copying", "deltalake")}
        for name, place in places.items():
            make_table(place, arguments.rows, arguments.files, vectors=name == "vectors")
        remaining = {name: {file: file.read_bytes() for file in logs(place)} for name, place in places.items()}

        def begin_again() -> None:
            """The tables before the merge: its new files are deleted, and no old file has changed."""
            for name, place in places.items():
                for file in set(logs(place)) - set(remaining[name]):
                    file.unlink()
                for file, content in remaining[name].items():
                    file.write_bytes(content)

        cases = {}
        for name, goal in (("vectors", "≥ 1"), ("copying", "≥ 1")):
            runs = {
                "Tahoe": ["tahoe_merge", str(places[name]), str(arguments.rows)],
                "deltalake": ["deltalake_merge", str(places["deltalake"]), str(arguments.rows)],
            }
            measured = by_turns(script, runs, arguments.rounds, after=begin_again)
            assert len({str(each.found) for some in measured.values() for each in some}) == 1, measured
            cases[f"MERGE, {name}"] = (measured, goal)
        show(
            f"{arguments.rows // 100:,} rows into {arguments.rows:,} in {arguments.files} files (medians of {arguments.rounds})",
            cases,
        )


def logs(place: Path) -> list[Path]:
    return [file for file in (place / "_delta_log").rglob("*") if file.is_file()]


def make_table(place: Path, rows: int, files: int, *, vectors: bool) -> None:
    import pyarrow as pa

    import tahoe

    table = tahoe.Table.create(
        place, data(pa.array([0])).schema, properties={"delta.enableDeletionVectors": str(vectors).lower()}
    )
    step = -(-rows // files)
    for start in range(0, rows, step):
        table.append(data(pa.array(range(start, min(start + step, rows)), pa.int64())))


def data(ids):  # type: ignore[no-untyped-def] # pyarrow is imported where it is measured
    import pyarrow as pa
    import pyarrow.compute as pc

    return pa.table(
        {
            "id": ids.cast(pa.int64()),
            "value": pc.multiply(ids.cast(pa.float64()), 1.25),
            "text": pc.binary_join_element_wise("a text about number", ids.cast(pa.string()), " "),
        }
    )


def source(rows: int):  # type: ignore[no-untyped-def]
    """1 % of the rows: every 200th of the table, and as many that are not there."""
    import pyarrow as pa

    return data(pa.array([*range(7, rows, 200), *range(rows, rows + rows // 200)], pa.int64()))


def tahoe_merge(path: str, rows: str) -> Callable[[], object]:
    import tahoe
    import tahoe.ops.merge.merge
    from tahoe.expr.parse.parse_expression import parse_condition
    from tahoe.schema.arrow import from_arrow_schema

    changed = source(int(rows))
    parse_condition("id = 1", from_arrow_schema(changed.schema))  # imports the parser

    def work() -> object:
        done = tahoe.Table(path).merge(changed, "target.id = source.id")
        outcome = done.when_matched_update_all().when_not_matched_insert_all().execute()
        return [outcome.num_updated_rows, outcome.num_inserted_rows]

    return work


def deltalake_merge(path: str, rows: str) -> Callable[[], object]:
    import deltalake

    changed = source(int(rows))

    def work() -> object:
        done = deltalake.DeltaTable(path).merge(changed, "target.id = source.id", source_alias="source", target_alias="target")
        metrics = done.when_matched_update_all().when_not_matched_insert_all().execute()
        return [metrics["num_target_rows_updated"], metrics["num_target_rows_inserted"]]

    return work


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        answer(globals()[sys.argv[1]](*sys.argv[2:]))
    else:
        main()
