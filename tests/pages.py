"""The pages of the documentation with examples, and the tests that run them."""

from __future__ import annotations

from pathlib import Path

__all__ = ["NOT_RUN", "PAGES", "ROOT", "TESTED_BY", "WITHOUT_SPARK", "WITH_SPARK"]

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

WITHOUT_SPARK = ("docs/guide/command-line.md", "docs/guide/iceberg.md", "docs/guide/operations.md", "docs/guide/without-spark.md")
"""Pages that `tests/unit/test_guides.py` follows."""

WITH_SPARK = (
    "README.md",
    "docs/README.md",
    "docs/guide/medallion.md",
    "docs/guide/observing.md",
    "docs/guide/spark.md",
    "docs/guide/streams.md",
)
"""Pages that `tests/spark/test_readme.py` follows."""

TESTED_BY = {
    "docs/testing.md": "tests/unit/testing/test_page_of_examples.py",
    "docs/coming-from-delta-spark.md": "tests/spark/test_readme.py",
    "docs/guide/dbt.md": "scripts/packages.py",
    "docs/guide/connect.md": "tests/spark/test_connect.py",
    "docs/guide/iceberg-writes.md": "tests/interop/test_iceberg_commits.py",
}
"""Pages whose examples need another way to run, each with the file that runs all of them."""

NOT_RUN = {
    ("README.md", "pip install '.[spark]'"): "`make packages` installs the wheel in new environments",
    ("README.md", "make demo"): "tests/demo and the suite itself",
    ("README.md", "flowchart LR"): "a diagram",
    ("ARCHITECTURE.md", "cli ─► as_delta"): "a diagram, compared with the import contract by test_documents.py",
    ("CONTRIBUTING.md", "make test-core"): "the developer's commands; test_documents.py checks that each target exists",
    ("docs/testing.md", "pip install 'tahoe-delta[testing]'"): "`make packages` installs this extra",
    ("docs/guide/dbt.md", "pip install 'tahoe-delta[spark]'"): "`make packages` installs these packages",
    (
        "docs/guide/observing.md",
        "export TAHOE_OPENLINEAGE",
    ): "needs a server; tests/unit/observe has one, and tests/spark/test_lineage.py",
    (
        "docs/guide/spark.md",
        "SELECT * FROM sales CHANGES FROM VERSION",
    ): "needs Spark 4.2; tests/spark/test_changes_clause.py runs such statements",
    ("docs/design/004-uniform.md", "commit ─► hook"): "a diagram",
    ("docs/design/README.md", "# NNN: The decision"): "the outline of a page",
    (
        "docs/design/034-multi-table-transactions.md",
        "with tahoe.transaction(a",
    ): "a fragment; tests/unit/txn/test_together.py has whole programs",
    (
        "docs/design/034-multi-table-transactions.md",
        "with tahoe.transaction(o",
    ): "a fragment; tests/spark/test_in_transaction.py has whole programs",
}
"""Fenced blocks that no test runs, by page and the beginning of the block, each with the reason."""
