"""What the documents name is there: modules, scripts, pages, and the settings of `make`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.coming_from_delta_spark import page

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
# What the changelog says of the past may be gone.
PRESENT = [path for path in DOCUMENTS if path.name != "CHANGELOG.md"]


def named(path: Path, pattern: str) -> Iterator[str]:
    """The texts of the pattern's first group."""
    yield from (found[1] for found in re.finditer(pattern, path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", PRESENT, ids=lambda path: path.name)
def test_modules_and_scripts_that_a_document_names_are_there(path: Path) -> None:
    missing = [
        name
        for name in named(path, r"`((?:[a-z_]+/)+[a-z_]+\.(?:py|sh|txt))`")
        if not (ROOT / name).exists() and not (ROOT / "tahoe" / name).exists()
    ]
    assert missing == []


@pytest.mark.parametrize("path", PRESENT, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(path: Path) -> None:
    missing = [name for name in named(path, r"\]\((?!https?:)([^)#\s]+)") if not (path.parent / name).exists()]
    assert missing == []


def test_commands_of_make_that_documents_name_are_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    asked = {name for path in PRESENT for name in named(path, r"`make ([a-z-]+)")}
    assert asked - targets == set()


def test_the_page_for_those_who_come_from_delta_spark_is_printed_from_the_lists() -> None:
    assert f"{page()}\n" == (ROOT / "docs/coming-from-delta-spark.md").read_text(encoding="utf-8"), "run `make docs`"


def test_pages_of_decisions_are_numbered_without_gaps_and_indexed() -> None:
    pages = sorted(path.name for path in (ROOT / "docs/design").glob("[0-9]*.md"))
    assert [int(name[:3]) for name in pages] == list(range(1, len(pages) + 1))
    assert list(named(ROOT / "docs/design/README.md", r"\]\((\d{3}-[^)]+)\)")) == pages
