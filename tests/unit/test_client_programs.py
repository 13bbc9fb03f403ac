"""The programs of `make clients` have Delta by configuration alone, and its page lists each client's test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.document_mentions import ROOT

CLIENTS = ROOT / "tests/clients"
PROGRAMS = sorted(path for path in [*(CLIENTS / "programs").rglob("*"), *(CLIENTS / "dbt_project").rglob("*")] if path.is_file())


@pytest.mark.parametrize("path", [path for path in PROGRAMS if path.suffix != ".pyc"], ids=lambda path: path.name)
def test_a_program_imports_nothing_of_tahoe(path: Path) -> None:
    assert not re.search(r"\b(import|from) +tahoe\b", path.read_text(encoding="utf-8"))


def test_the_page_of_clients_names_each_test() -> None:
    page = (ROOT / "docs/clients.md").read_text(encoding="utf-8")
    tests = [path.relative_to(ROOT).as_posix() for path in CLIENTS.glob("test_*.py")]
    assert [name for name in sorted(tests) if f"`{name}`" not in page] == []
