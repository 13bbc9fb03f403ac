"""The cost of Spark Connect: commands and a scan in a session of a server without Tahoe, compared with a classic session.

The server and the classic session have two cores each, and run by turns on copies of the same table. The MERGE updates and inserts 1 % of
the rows; a tenth of them are new. Goal: a MERGE in at most 2 times the time of the classic session.

    python benchmarks/spark_connect.py [--rows 2000000] [--files 8] [--rounds 3]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks._spark import COLUMNS, by_turns, numbered, rows, session, show
from tahoe.tables import DeltaTable
from tests.spark.connect_server import connected, remote, server

VECTORS = "delta.enableDeletionVectors"
GOALS = {"connect": "2 for MERGE"}
Command = Callable[[Any, str, int], object]


def main() -> None:
    """Measure each command in both sessions, and print the ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    spark = session()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for way in ("classic", "connect"):
            for kind, vectors in (("vectors", "true"), ("rewriting", "false")):
                frame = rows(spark, arguments.rows, arguments.files)
                frame.write.format("delta").option(VECTORS, vectors).save(f"{folder}/{way}-{kind}")
        (folder / "server").mkdir()
        with server(folder / "server", "-XX:-UsePerfData", "4g") as url:
            remote_session = connected(url)
            table = {
                case: by_turns(ways(spark, remote_session, command, f"{folder}/{{way}}-{kind}"), arguments.rounds)
                for case, (kind, command) in cases(arguments.rows).items()
            }
            with remote():
                remote_session.stop()
    show(f"{arguments.rows:,} rows in {arguments.files} files", "command", table, "classic", GOALS)
    spark.stop()


def ways(spark: Any, remote_session: Any, command: Command, path: str) -> dict[str, Callable[[], object]]:
    """Return the runs of a command by session."""
    run = numbered(command, remote_session, path.format(way="connect"))

    def connect() -> object:
        with remote():
            return run()

    return {"classic": numbered(command, spark, path.format(way="classic")), "connect": connect}


def cases(count: int) -> dict[str, tuple[str, Command]]:
    """Return the kind of table and the command by name. Commands that change rows choose other rows in each round."""
    return {
        "MERGE of 1 %, vectors": ("vectors", partial(merge, count)),
        "MERGE of 1 %, rewriting": ("rewriting", partial(merge, count)),
        "UPDATE of 1 %, vectors": (
            "vectors",
            lambda spark, path, turn: table(spark, path).update(f"id % 100 = {turn}", {"k": "k + 1"}),
        ),
        "DELETE of 1 %, vectors": ("vectors", lambda spark, path, turn: table(spark, path).delete(f"id % 100 = {turn + 50}")),
        "append of 1 %": ("vectors", lambda spark, path, turn: appended(spark, path, count)),
        "sum of a column": ("vectors", lambda spark, path, turn: spark.sql(f"SELECT sum(x) FROM delta.`{path}`").collect()),
    }


def table(spark: Any, path: str) -> DeltaTable:
    return DeltaTable.forPath(spark, path)


def merge(count: int, spark: Any, path: str, turn: int) -> None:
    """Upsert every hundredth row and a tenth as many new ones."""
    old = spark.range(turn % 100, count, 100, 2)
    new = spark.range(count * (2 + turn), count * (2 + turn) + count // 1000, 1, 1)
    source = old.union(new).selectExpr(*COLUMNS).alias("s")
    merged = table(spark, path).alias("t").merge(source, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert merged.first()["num_inserted_rows"] == count // 1000


def appended(spark: Any, path: str, count: int) -> None:
    spark.range(count * 100, count * 100 + count // 100, 1, 2).selectExpr(*COLUMNS).write.format("delta").mode("append").save(
        path
    )


if __name__ == "__main__":
    main()
