"""The lines that `make accessibility` prints for the outcomes of axe-core, and the pages that it checks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from scripts import accessibility
from scripts.accessibility import View, problems, sample_pages

VIOLATION = {"rule": "color-contrast", "help": "Text is legible", "target": "p", "reason": "2:1"}


def view(passed: int = 9, blocked: Sequence[str] = (), violations: Sequence[dict[str, str]] = ()) -> View:
    return View("report", "dark", "narrow", passed, blocked, violations)


def test_each_violation_and_each_blocked_script_is_a_problem() -> None:
    assert problems([view()]) == []
    assert problems([view(), view(blocked=["a script"], violations=[VIOLATION])]) == [
        "report (dark, narrow): blocked: a script",
        "report (dark, narrow): color-contrast: Text is legible: p: 2:1",
    ]


def test_a_page_that_was_not_checked_is_an_error() -> None:
    with pytest.raises(ValueError, match="the page was not checked"):
        problems([view(passed=0)])


@pytest.mark.damages_tables
def test_the_pages_have_violations_advice_drawings_and_forms(tmp_path: Path) -> None:
    pages = {page.name: page for page in sample_pages(tmp_path / "warehouse")}
    assert len(pages) == 10
    for name in ("tables", "table", "difference", "served-report", "not-found"):
        assert "default-src 'none'" in pages[name].headers["Content-Security-Policy"]
    for name, text in {
        "tables": "/table/shop/sales",
        "table": "<form",
        "difference": "delta.logRetentionDuration",
        "served-report": "Recommended actions",
        "not-found": "A table is a folder",
        "report": "metadata location",
        "report-of-a-damaged-table": "is missing",
        "layout": "<svg",
        "notebook": "inserted",
        "notebook-report": "<svg",
    }.items():
        assert text in pages[name].html, name


def test_a_missing_program_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", "")
    assert accessibility.main(None) == 0
    assert "SKIPPED: Chromium and npm must be installed" in capsys.readouterr().out
