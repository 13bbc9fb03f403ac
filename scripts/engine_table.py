"""Print docs/engines.md: other engines that read and write Tahoe's tables. `make docs` runs it; a test compares the page."""

# ruff: noqa: E501 - rows and prose of a page

from __future__ import annotations

import re
from pathlib import Path

from tahoe.ops.features.engines import ENGINES, Engine
from tahoe.protocol.features import FEATURES

ROOT = Path(__file__).resolve().parents[1]

HEAD = """# Engines

Which other engines read and write tables of Tahoe. Printed by `make docs` from the lock files and from `tahoe/ops/features/engines.py`.
`tahoe compat PATH` answers the question for one table, with the features that prevent an engine.

## Run by the tests

The versions are those that the tests run. `make test` runs tests in `tests/interop`; `make interop` also runs those in `tests/jvm` and the readers
ClickHouse, Sail and DataFusion. [Guarantees](guarantees.md) states the results, [Limitations](limitations.md#other-readers) the known errors of other readers.

| engine | version | side | what it does in the tests | tests |
|---|---|---|---|---|
"""
_LOCK = "requirements.lock"
_OLDEST = "requirements-oldest.lock"
_DELTA_SPARK = r"delta-spark_2\.13:([\d.]+)"
_ICEBERG_JAVA = r"iceberg-spark-runtime-[\d.]+_2\.13:([\d.]+)"
_JARS = "tests/jvm/conftest.py"
TESTED = (
    ("delta-spark", _JARS, _DELTA_SPARK, "Delta", "reads and writes by turns: each table feature", "tests/jvm/test_every_feature.py"),
    ("delta-spark", _JARS, _DELTA_SPARK, "Delta", "reads and writes by turns: random histories, with deltalake", "tests/jvm/test_histories_jvm.py"),
    ("delta-spark", _JARS, _DELTA_SPARK, "Delta", "continues streams, as source and as sink", "tests/jvm/test_streams_jvm.py, tests/jvm/test_stream_sinks_jvm.py"),
    ("deltalake", _LOCK, "deltalake", "Delta", "reads and writes by turns: random histories", "tests/interop/test_histories_by_turns.py"),
    ("deltalake", _LOCK, "deltalake", "Delta", "reads every type, old versions, V2 checkpoints, column mapping", "tests/interop/test_readers_of_others.py"),
    ("deltalake", _LOCK, "deltalake", "Delta", "reads deletion vectors and the change data feed", "tests/interop/test_row_changes.py"),
    ("DuckDB, extension delta", _LOCK, "duckdb", "Delta", "reads every type, old versions, V2 checkpoints, column mapping", "tests/interop/test_readers_of_others.py"),
    ("DuckDB, extension delta", _LOCK, "duckdb", "Delta", "reads deletion vectors", "tests/interop/test_row_changes.py"),
    ("Polars", _LOCK, "polars", "Delta", "reads every type, old versions, checkpoints", "tests/interop/test_readers_of_others.py"),
    ("PyIceberg", _LOCK, "pyiceberg", "Iceberg v2, v3", "reads old snapshots and filters, of random histories", "tests/interop/test_iceberg_histories.py"),
    ("PyIceberg", _LOCK, "pyiceberg", "Iceberg v2", "reads through SQL, Hive and Glue catalogs", "tests/interop/test_iceberg_catalog.py"),
    ("PyIceberg", _LOCK, "pyiceberg", "Iceberg REST", "lists and reads through `tahoe serve`", "tests/interop/test_iceberg_rest.py"),
    ("PyIceberg", _LOCK, "pyiceberg", "Iceberg REST", "creates and writes through `tahoe serve --writable`, random histories", "tests/interop/test_iceberg_commit_histories.py"),
    ("DuckDB, extension iceberg", _LOCK, "duckdb", "Iceberg v2, v3", "reads old snapshots and filters, of random histories", "tests/interop/test_iceberg_histories.py"),
    ("DuckDB, extension iceberg", _LOCK, "duckdb", "Iceberg REST", "lists and reads through `tahoe serve`", "tests/interop/test_iceberg_rest.py"),
    ("DuckDB, extension iceberg", _LOCK, "duckdb", "Iceberg REST", "creates and writes through `tahoe serve --writable`", "tests/interop/test_iceberg_commits.py"),
    ("Iceberg's Java library on Spark", _JARS, _ICEBERG_JAVA, "Iceberg v2, v3", "reads random histories", "tests/jvm/test_iceberg_jvm.py"),
    ("ClickHouse (chdb)", _OLDEST, "chdb", "Iceberg v2, v3 without Puffin", "reads random histories", "tests/interop/test_iceberg_further_readers.py"),
    ("DataFusion", _OLDEST, "datafusion", "Iceberg v2, v3 without Puffin", "reads random histories", "tests/interop/test_iceberg_further_readers.py"),
    ("Sail", _OLDEST, "pysail", "Iceberg v2, v3", "reads random histories", "tests/interop/test_iceberg_further_readers.py"),
)  # fmt: skip
"""The engine, the file with its version, the version's package or pattern, the side of the table, the operations, and their tests."""

FEATURES_HEAD = """
Tables of other writers are read too: the Delta Acceptance Tests and Delta's golden tables, which delta-spark, Delta Standalone and delta-rs wrote (`tests/tables`).

## Features by engine

From the code or the documentation of each engine (column *source*), not from tests. **Bold**: the engine reads and writes the feature. Plain: it only reads it. *Italic*: it writes
tables with this writer feature, for which reading needs no support. An engine whose list comes from its code refuses other features; where the list comes from documentation
(†), the others are unknown. Tahoe's own support is on the page [Table features](features.md).

| engine | versions | features | source |
|---|---|---|---|
"""


def version_of(file: str, name: str) -> str:
    """Return the version in a lock file, or that which a pattern finds in another file."""
    pattern = name if "(" in name else rf"^{re.escape(name)}==(\S+)"
    actual = re.search(pattern, (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    if actual is None:
        raise LookupError(f"{file} has no version of {name}")
    return actual[1]


def tested(row: tuple[str, ...]) -> str:
    """Return one row of the table of tested engines."""
    engine, file, name, side, use, tests = row
    places = ", ".join(f"`{test}`" for test in tests.split(", "))
    return f"| {engine} | {version_of(file, name)} | {side} | {use} | {places} |"


def documented(engine: Engine) -> str:
    """Return one row of the table of features by engine."""
    reads, writes = set(engine.reads.split()), set((engine.writes or "").split())
    names = [name for name in FEATURES if name in reads | writes]
    cells = [_feature(name, name in reads, name in writes) for name in names]
    return f"| {engine.name} | {engine.versions}{'' if engine.is_complete else ' †'} | {', '.join(cells)} | {_links(engine.source)} |"


def _feature(name: str, reads: bool, writes: bool) -> str:
    if reads and writes:
        return f"**{name}**"
    return name if reads else f"*{name}*"


def _links(source: str) -> str:
    return ", ".join(f"[source]({url})" for url in source.split(" and "))


def page() -> str:
    """Return the page."""
    return f"{HEAD}{chr(10).join(map(tested, TESTED))}\n{FEATURES_HEAD}{chr(10).join(map(documented, ENGINES))}"


if __name__ == "__main__":
    print(page())
