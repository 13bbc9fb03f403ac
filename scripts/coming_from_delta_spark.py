"""Print docs/coming-from-delta-spark.md. `make docs` runs it; a test compares the page.

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

Printed by `make docs` from the lists that the tests use.

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

The two settings may stay: `tahoe.configure_spark_with_delta_pip(builder)` ignores them and creates sessions with Delta enabled, and
`tahoe.enable` restores Spark's own catalog in a session that names delta-spark's, with a warning.
`delta.exceptions` is `tahoe.exceptions`, with delta-spark's names and PySpark's base classes. If the imports cannot be changed, one call at
the start of the program makes them work: `from tahoe import as_delta; as_delta.install()` ([017](design/017-delta-modules.md)).

## What is no longer needed

- `spark.jars.packages` and JARs of Delta; `spark.sql.extensions` and `spark.sql.catalog.spark_catalog` with Delta's classes. Tahoe
  is active in sessions on which `tahoe.enable` was called, in sessions created by their `newSession()`, and in Spark's copies of them.
- `spark.delta.logStore.*`: local disks and object stores with conditional PUT need neither LogStore nor lock table.
- `spark.databricks.delta.snapshotPartitions` and similar settings: the log is read in the driver's Python process, in Arrow.

## What stays

Tables, names, properties, options, statements, metastore entries, and the format of the history: `tests/statements` has {statements}
statements in {lives} sequences, each on tables by name, external and by path, and compares rows, schemas, catalog entries and the history's
operations, parameters and metrics with the results of delta-spark 4.0.1 for the same statements."""

WHY = """## Different results of statements

All other results of these statements are the same."""

OTHER = """Texts in `char(n)` columns are padded, and blanks beyond the limit of a `varchar(n)` are removed, as in Spark's own tables;
delta-spark stores the first as they are, and refuses the second. `saveAsTable` with mode `overwrite` does not replace a table of another
format: drop it first. REPLACE TABLE keeps the table's id, so streams from the table continue, as after an overwrite;
delta-spark gives it another id, and streams stop."""

SETTINGS = """## Settings

Each setting of delta-spark works, causes one warning (`TahoeWarning`) or is refused by name; [settings.md](settings.md) lists them."""

TESTS = """## delta-spark's own Python tests

`python scripts/delta_spark_tests.py --checkout DIR` runs the tests of a clone of delta-io/delta with Tahoe. All pass except these:"""


def page() -> str:
    """Return the content of docs/coming-from-delta-spark.md."""
    statements = sum(len(life) for life in LIVES.values())
    parts = [HEAD.replace("{statements}", str(statements)).replace("{lives}", str(len(LIVES)))]
    parts += [WHY, "\n".join(_differences(DIFFERENCES)), OTHER]
    parts += [SETTINGS, "\n".join(_settings())]
    parts += [TESTS, "\n".join(f"- {why}: {', '.join(tests)}" for why, tests in _by_reason(LEFT).items())]
    return "\n\n".join(parts)


def _differences(differences: Iterable[Difference]) -> Iterator[str]:
    yield "| reason | statements |"
    yield "|---|---|"
    reasons: dict[str, list[str]] = {}
    for difference in differences:
        of_errors = difference.statement == "*" and difference.key == "error"
        reasons.setdefault(difference.reason, []).append("errors" if of_errors else _code(difference.statement))
    for reason, statements in reasons.items():
        yield f"| {reason} | {', '.join(dict.fromkeys(statements))} |"


def _code(text: str) -> str:
    """Format code for a cell of a table; the text may contain pipes and backticks."""
    escaped = text.replace("|", "\\|")
    return f"`` {escaped} ``" if "`" in text else f"`{escaped}`"


def _settings() -> Iterator[str]:
    yield "| | " + " | ".join(state.value for state in State) + " |"
    yield "|---|" + "---|" * len(State)
    kinds: Mapping[str, Iterable[Setting]] = {
        "table properties": PROPERTIES,
        "writer options": WRITER_OPTIONS,
        "reader options": READER_OPTIONS,
        "stream reader options": STREAM_READER_OPTIONS,
        "stream writer options": STREAM_WRITER_OPTIONS,
        "session settings": SESSION_SETTINGS,
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
