"""`make demo`: write a year of flights with Spark, read it with every available engine, and compare."""

from __future__ import annotations

import logging
import shutil
import sys
from itertools import groupby
from pathlib import Path
from time import perf_counter

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table as Grid

import tahoe
from demo import IDENTIFIER, OUTPUT, STREAMED
from demo.checksum import checksum
from demo.landing import deliver
from demo.pipeline import SPEED_SINCE, Paths, audit, run_pipeline, start_spark
from demo.readers import Reading, read_with_all
from demo.streams import expected_rows, run_streams

console = Console(width=None if sys.stdout.isatty() else 120, highlight=False)


def main() -> int:
    started = perf_counter()
    shutil.rmtree(OUTPUT, ignore_errors=True)
    OUTPUT.mkdir()
    paths = Paths.below(OUTPUT)

    say("Landing: the flights that left New York in 2013, a CSV file a month")
    deliveries = deliver(OUTPUT / "landing")
    say("Spark starts, and Delta is switched on in it")
    spark = start_spark(OUTPUT / "warehouse")

    say("Each delivery goes through bronze and silver to gold, and the gold commit to Iceberg")
    for step in run_pipeline(spark, deliveries, paths):
        console.print(
            f"  {step.title:32} {step.rows:>7,} rows   bronze {step.bronze:4.1f} s   silver {step.silver:4.1f} s   "
            f"gold v{step.gold_version:<2} {step.gold:4.1f} s   Iceberg {step.iceberg:4.1f} s later"
        )

    say("An audit of one flight in a hundred: a MERGE with deletion vectors, which keeps the files as they are")
    done = audit(spark, paths)
    console.print(
        f"  {done.updated:,} rows updated, {done.deleted:,} deleted, {done.inserted:,} inserted; {done.vectors} files with a vector"
        f"   gold v{done.gold_version} {done.seconds:4.1f} s   Iceberg {done.iceberg:4.1f} s later"
    )

    tables = {name: tahoe.Table(getattr(paths, name)) for name in ("bronze", "silver", "gold")}
    for name, table in tables.items():
        describe(name, table)

    versions = (done.gold_version, done.gold_version - 2, SPEED_SINCE - 2)
    say(
        "The gold table, read at versions {} (after the audit), {} (before it) and {} (before the column was added)".format(
            *versions
        )
    )
    readings = [reading for version in versions for reading in read_with_all(spark, paths.gold, version, IDENTIFIER)]
    agreed = report(readings)
    agreed = second_act(spark, deliveries) and agreed
    wrong = [violation for table in tables.values() for violation in table.check()]
    for violation in wrong:
        console.print(f"[red]wrong[/red]: {violation}")
    spark.stop()
    verdict = "All agree, and check() finds nothing wrong." if agreed and not wrong else "THEY DO NOT AGREE."
    say(f"{verdict} {perf_counter() - started:.0f} s in all; everything is below {OUTPUT.name}/")
    return 0 if agreed and not wrong else 1


def second_act(spark: SparkSession, deliveries: dict[str, Path]) -> bool:
    """Late deliveries through three streams; returns whether all engines agree after each batch."""
    say(
        "March once more, as streams: bronze takes files, silver merges flights, and silver's change feed drives a MERGE into gold"
    )
    folder = OUTPUT / "streams"
    for done in run_streams(spark, deliveries, folder):
        console.print(
            f"  {done.title:32} bronze {done.bronze:>6,} rows   silver {done.silver:>6,}   gold {done.gold:>6,}   "
            f"gold v{done.gold_version:<2} {done.seconds:4.1f} s"
        )
    agreed = report(list(read_with_all(spark, str(folder / "gold"), done.gold_version, STREAMED)))
    gold = tahoe.Table(folder / "gold")
    equal = checksum(gold.to_arrow()) == checksum(expected_rows(spark, deliveries).toArrow())
    console.print(f"  The streams' gold is {'what' if equal else '[red]NOT what[/red]'} a batch makes of the corrected month")
    return agreed and equal and gold.check() == []


def say(text: str) -> None:
    console.print(f"[bold]▸ {text}[/bold]")


def describe(name: str, table: tahoe.Table) -> None:
    detail = table.detail()
    partitioned = f"by {', '.join(detail['partitionColumns'])}" if detail["partitionColumns"] else "unpartitioned"
    checkpoints = sorted(path.name for path in (OUTPUT / name / "_delta_log").glob("*.checkpoint*.parquet"))
    console.print(
        f"  {name:6} version {table.version()}, {detail['numFiles']} files, {detail['sizeInBytes'] / 2**20:.1f} MiB, "
        f"{partitioned}, checkpoint at version {', '.join(str(int(checkpoint.split('.')[0])) for checkpoint in checkpoints)}"
    )


def report(readings: list[Reading]) -> bool:
    """Print the result of each engine; True when all agree on each version."""
    grid = Grid()
    for header, justify in (
        ("engine", "left"),
        ("format", "left"),
        ("version", "right"),
        ("rows", "right"),
        ("columns", "right"),
    ):
        grid.add_column(header, justify=justify)  # type: ignore[arg-type]
    grid.add_column("checksum of the rows")
    grid.add_column("seconds", justify="right")
    agreed = True
    for version, group in groupby(readings, key=lambda reading: reading.version):
        found = list(group)
        same = len({(reading.rows, reading.checksum) for reading in found}) == 1
        agreed = agreed and same
        for reading in found:
            differs = (reading.rows, reading.checksum) != (found[0].rows, found[0].checksum)
            grid.add_row(
                reading.engine,
                reading.format,
                str(version),
                f"{reading.rows:,}",
                str(reading.columns),
                f"[red]{reading.checksum} differs[/red]" if differs else reading.checksum,
                f"{reading.seconds:.2f}",
            )
        grid.add_section()
    console.print(grid)
    return agreed


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    sys.exit(main())
