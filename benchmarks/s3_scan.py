"""Scans of a table on S3 through Python workers, in a session without hadoop-aws, compared with Spark's own scan through S3A.

Both sessions are of one JVM with hadoop-aws; one of them names a class for `fs.s3a.impl` that does not exist. They run by turns on one table,
served by moto in another process. Goal: at most 1.5 times the time of S3A.

    python benchmarks/s3_scan.py --jars FOLDER [--rows 4000000] [--files 8] [--rounds 5]

The folder has the JARs of hadoop-aws and of AWS's SDK for PySpark's version of Hadoop; `tests/jvm/test_s3a_jvm.py` fetches them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import urllib.request
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from pyspark.sql import DataFrame

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tahoe
from benchmarks._spark import by_turns, rows, session, show
from tests.moto_server import moto_server

KEYS = ("an-access-key", "a-secret-key")
QUERIES: dict[str, Callable[[DataFrame], object]] = {
    "all columns": lambda frame: frame.write.format("noop").mode("overwrite").save(),
    "sum of one column": lambda frame: frame.selectExpr("sum(id)").collect(),
    "filter that keeps 1 %": lambda frame: frame.where("id % 100 = 7").write.format("noop").mode("overwrite").save(),
    "one row by id": lambda frame: frame.where("id = 1234567").collect(),
}


def main() -> None:
    """Measure each query in both sessions, and print the ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--jars", type=Path, required=True, help="a folder with the JAR of hadoop-aws and the bundle of AWS's SDK"
    )
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    here, there = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(there,), daemon=True)
    server.start()
    endpoint = here.recv()
    jars = ":".join(str(jar) for jar in sorted(arguments.jars.glob("*.jar")))
    spark = session(settings={"spark.driver.extraClassPath": jars, **settings(endpoint)})
    url = "s3a://tables/scanned"
    rows(spark, arguments.rows, arguments.files).write.format("delta").save(url)
    without = tahoe.enable(spark.newSession())
    without.conf.set("fs.s3a.impl", "absent.FileSystem")
    frames = {way: reader.read.format("delta").load(url) for way, reader in (("S3A", spark), ("Python", without))}
    table = {
        case: by_turns({way: partial(query, frame) for way, frame in frames.items()}, arguments.rounds)
        for case, query in QUERIES.items()
    }
    show(f"{arguments.rows:,} rows in {arguments.files} files on S3", "query", table, "S3A", {"Python": "1.5"})
    spark.stop()
    server.kill()


def settings(endpoint: str) -> dict[str, str]:
    """Return the settings of S3A."""
    return {
        "spark.hadoop.fs.s3a.endpoint": endpoint,
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.access.key": KEYS[0],
        "spark.hadoop.fs.s3a.secret.key": KEYS[1],
    }


def serve(connection: Connection) -> None:
    """Serve S3 with one bucket, and send the endpoint."""
    with moto_server("s3") as endpoint:
        urllib.request.urlopen(urllib.request.Request(f"{endpoint}/tables", method="PUT")).close()
        connection.send(endpoint)
        connection.recv()


if __name__ == "__main__":
    main()
