"""coming_from_delta_spark.py: prints docs/coming-from-delta-spark.md. `make docs` writes it; a test holds it.

Settings come from `tahoe/settings/`; differences between statements and the excluded tests come from the lists that the tests use.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.delta_spark_tests_left import LEFT
from tahoe.settings.dataframe_options import READER_OPTIONS, STREAM_READER_OPTIONS, WRITER_OPTIONS
from tahoe.settings.property_settings import PROPERTIES
from tahoe.settings.session_settings import SESSION_SETTINGS
from tahoe.settings.setting import Setting, State
from tahoe.settings.stream_writer_options import STREAM_WRITER_OPTIONS
from tests.statements.differences import DIFFERENCES, Difference
from tests.statements.lives import LIVES

HEAD = """# Coming from delta-spark

Printed by `make docs`; the lists are those that tests hold.

## What to change

```diff
-from delta import configure_spark_with_delta_pip
-from delta.tables import DeltaTable
+import tahoe
+from tahoe.tables import DeltaTable

-builder = (SparkSession.builder
-    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
-    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"))
-spark = configure_spark_with_delta_pip(builder).getOrCreate()
+spark = tahoe.enable(SparkSession.builder.getOrCreate())
```

The two settings may stay: `tahoe.configure_spark_with_delta_pip(builder)` leaves them out and makes sessions that are switched on, and
`tahoe.enable` gives a session that names delta-spark's catalog Spark's own again, and says so.
`delta.exceptions` is `tahoe.exceptions`, with the reference's names and PySpark's bases. Where the imports cannot be changed, one call at the
head of the program lets them stay: `from tahoe import as_delta; as_delta.install()` (design/017-delta-modules.md).

## What is no longer needed

- `spark.jars.packages` and JARs of Delta; `spark.sql.extensions` and `spark.sql.catalog.spark_catalog` with Delta's classes. Tahoe
  answers in sessions that `tahoe.enable` was called on, in sessions made by their `newSession()`, and in copies that Spark makes of them.
- `spark.delta.logStore.*`: local disks and object stores with conditional PUT need no LogStore and no lock table.
- `spark.databricks.delta.snapshotPartitions` and the like: the log is read in the driver's Python process, in Arrow.

## What stays

Tables, names, properties, options, statements, the entries in a metastore, the form of the history: `tests/statements` has {statements}
statements in {lives} lives of tables, each by name, external and by path, and holds rows, schemas, entries of the catalog and the history's
operations, parameters and metrics against what delta-spark 4.0.1 made of the same statements."""

WHY = """## Where statements do otherwise

Everything else that these statements do is the same."""

SETTINGS = """## Settings

Each setting of delta-spark works, is told of once (`TahoeWarning`) or is refused by name; [settings.md](settings.md) has them all."""

TESTS = """## delta-spark's own Python tests

`python scripts/delta_spark_tests.py --checkout DIR` runs those of a clone of delta-io/delta against Tahoe. They pass, but for these:"""


def page() -> str:
    """The whole of docs/coming-from-delta-spark.md."""
    statements = sum(len(life) for life in LIVES.values())
    parts = [HEAD.replace("{statements}", str(statements)).replace("{lives}", str(len(LIVES)))]
    parts += [WHY, "\n".join(_differences(DIFFERENCES))]
    parts += [SETTINGS, "\n".join(_settings())]
    parts += [TESTS, "\n".join(f"- {why}: {', '.join(tests)}" for why, tests in _by_reason(LEFT).items())]
    return "\n\n".join(parts)


def _differences(differences: Iterable[Difference]) -> Iterator[str]:
    yield "| why | where |"
    yield "|---|---|"
    reasons: dict[str, list[str]] = {}
    for one in differences:
        where = "errors" if one.statement == "*" and one.key == "error" else _code(one.statement)
        reasons.setdefault(one.reason, []).append(where)
    for reason, places in reasons.items():
        yield f"| {reason} | {', '.join(dict.fromkeys(places))} |"


def _code(text: str) -> str:
    """In a cell of a table; a text may have the marks that code stands between."""
    escaped = text.replace("|", "\\|")
    return f"`` {escaped} ``" if "`" in text else f"`{escaped}`"


def _settings() -> Iterator[str]:
    yield "| | " + " | ".join(state.value for state in State) + " |"
    yield "|---|" + "---|" * len(State)
    kinds: Mapping[str, Iterable[Setting]] = {
        "table properties": PROPERTIES,
        "options of writers": WRITER_OPTIONS,
        "options of readers": READER_OPTIONS,
        "options of readers of streams": STREAM_READER_OPTIONS,
        "options of writers of streams": STREAM_WRITER_OPTIONS,
        "settings of a session": SESSION_SETTINGS,
    }
    for kind, settings in kinds.items():
        yield f"| {kind} | " + " | ".join(str(sum(setting.state is state for setting in settings)) for state in State) + " |"


def _by_reason(left: Mapping[str, str]) -> dict[str, list[str]]:
    reasons: dict[str, list[str]] = {}
    for test, why in left.items():
        reasons.setdefault(why, []).append(f"`{test}`")
    return reasons


if __name__ == "__main__":
    print(page())
