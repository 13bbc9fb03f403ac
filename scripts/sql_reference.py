"""Print docs/sql.md: the statements on Delta tables, from the statement registry. `make docs` runs it; a test compares the page.

The registry lists the statements of the newest supported PySpark; run this with that release.
"""

from __future__ import annotations

import inspect
import re

from tahoe.spark.statements.registry import LEFT_TO_SPARK, SPARK_STATEMENTS, STATEMENTS_OF_DELTA
from tahoe.spark.statements.rejected import REJECTED_STATEMENTS

HEAD = """# SQL statements

Printed by `make docs` from the statement registry (`tahoe/spark/statements/registry.py`). A table is a name in the session's catalog, or
``delta.`/path` ``. A statement that is on none of these lists raises an error if it names a
Delta table.
"""


def page() -> str:
    """Return the page."""
    rejected = {statement.words for statement in REJECTED_STATEMENTS}
    supported = {statement.words for statement in SPARK_STATEMENTS.values()} - rejected
    return "\n\n".join(
        [
            HEAD.strip(),
            "## Statements of Delta",
            "Tahoe parses these.",
            "\n".join(f"* {_syntax(inspect.getdoc(statement) or '')}" for statement in STATEMENTS_OF_DELTA),
            "## Spark's statements, executed by Tahoe",
            "Their syntax is in [Spark's SQL reference](https://spark.apache.org/docs/latest/sql-ref-syntax.html).",
            "\n".join(f"* {words}" for words in sorted(supported)),
            "## Spark's statements, rejected on Delta tables",
            "\n".join(f"* {words}" for words in sorted(rejected)),
            "## Executed by Spark",
            "Queries, and statements that read a table or change only catalog entries, views, functions and the session: "
            + ", ".join(f"`{node}`" for node in sorted(LEFT_TO_SPARK))
            + " (the names of Spark's plan nodes).",
        ]
    )


def _syntax(docstring: str) -> str:
    """Return the first paragraph of a docstring in Markdown."""
    return re.sub(r"``(.+?)``", r"`\1`", " ".join(docstring.split("\n\n")[0].split()))


if __name__ == "__main__":
    print(page())
