"""Parquet's bloom filters on an unsorted column: the cost for a write, and the gain for a lookup on Spark.

Every file may contain every key, so neither the log's statistics nor those of row groups skip anything. A bloom filter in each row group lets
Spark's reader skip row groups without the key, at the cost of reading the filter. With `adaptive` Parquet derives the size of each
filter from the rows; with `fixed` it is a megabyte, Parquet's default if the number of values is unknown.

    python benchmarks/bloom_filters.py [--rows 2000000] [--files 16] [--rounds 7]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from functools import partial

from _spark import by_turns, session, show
from pyspark.sql import DataFrame, SparkSession

from tahoe.api.table import Table

COLUMNS = (
    "key",
    "concat(hex(key), hex(xxhash64(key, 7))) text",
    "rand(1) x",
    "rand(2) y",
    "sha2(cast(id as string), 256) payload",
)
FILTERS: dict[str, dict[str, str]] = {
    "none": {},
    "adaptive": {"parquet.bloom.filter.adaptive.enabled": "true"},
    "fixed": {},
}
KEYS = ("key", "text")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--files", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    spark = session()
    data = spark.range(0, arguments.rows, 1, arguments.files).selectExpr("id", "xxhash64(id) key").selectExpr(*COLUMNS)
    with tempfile.TemporaryDirectory() as folder:
        write: dict[str, Callable[[], object]] = {name: partial(written, data, f"{folder}/{name}", name) for name in FILTERS}
        table = {"write": by_turns(write, 2)}
        plain = size_of(f"{folder}/none")
        for name in FILTERS:
            size = size_of(f"{folder}/{name}")
            print(f"{name:10} {size:>14,} bytes, {(size - plain) / arguments.rows:6.2f} bytes a row more")
        key, text = spark.read.format("delta").load(f"{folder}/none").select("key", "text").first()
        for case, where in {
            "a number that is there": f"key = {key}",
            "a number that is not": f"key = {key + 1}",
            "a text that is there": f"text = '{text}'",
            "a text that is not": f"text = '{text}0'",
            "ten numbers": f"key in ({', '.join(str(key + i) for i in range(10))})",
            "no point: a range of numbers": f"key between {key} and {key + 1000}",
        }.items():
            table[case] = by_turns({name: partial(found, spark, f"{folder}/{name}", where) for name in FILTERS}, arguments.rounds)
    show(f"{arguments.rows:,} rows in {arguments.files} files", "", table, "none", {})
    spark.stop()


def written(data: DataFrame, path: str, name: str) -> None:
    writer = data.write.format("delta").mode("overwrite").options(**FILTERS[name])
    if name != "none":
        writer = writer.options(**{f"parquet.bloom.filter.enabled#{key}": "true" for key in KEYS})
    writer.save(path)


def size_of(path: str) -> int:
    return sum(Table(path).files()["size"].to_pylist())


def found(spark: SparkSession, path: str, where: str) -> int:
    return len(spark.read.format("delta").load(path).where(where).collect())


if __name__ == "__main__":
    main()
