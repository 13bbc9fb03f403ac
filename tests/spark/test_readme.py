"""The programs of the README and of the guides run as they are written, in the order of each page."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.util._once import Once

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs/guide").glob("*.md"))]
_PROGRAM = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def _observers_as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Undo the configuration of logging and of OpenTelemetry that a page makes."""
    logger, before = logging.getLogger("tahoe"), list(logging.getLogger("tahoe").handlers)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER_SET_ONCE", Once())
    yield
    for handler in set(logger.handlers) - set(before):
        logger.removeHandler(handler)
        handler.close()
    logger.setLevel(logging.NOTSET)


@pytest.mark.parametrize("page", [page for page in PAGES if _PROGRAM.search(page.read_text())], ids=lambda page: page.stem)
def test_every_program_of_a_page_runs_in_order(page, spark, tmp_path):
    names: dict[str, object] = {}
    database = f"page_{page.stem.replace('-', '_').lower()}"
    spark.sql(f"CREATE DATABASE {database} LOCATION '{tmp_path / 'warehouse'}'")
    spark.sql(f"USE {database}")
    try:
        for block in _PROGRAM.findall(page.read_text()):
            exec(compile(block.replace("/tmp/", f"{tmp_path}/"), page.name, "exec"), names)
    finally:
        spark.sql("USE default")
        spark.sql(f"DROP DATABASE {database} CASCADE")


def test_the_pages_with_programs_are_tested():
    assert sum(bool(_PROGRAM.search(page.read_text())) for page in PAGES) >= 5


def test_the_readme_is_a_first_page():
    assert len(PAGES[0].read_bytes()) <= 8_000
