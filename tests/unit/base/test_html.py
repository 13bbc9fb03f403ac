"""HTML for notebooks: escaped, aligned, and limited."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.html import Listing, html_pairs, html_size, html_table


@dataclass
class Finding:
    code: str
    count: int | None
    nothing: str | None = None


def test_text_is_escaped_and_numbers_are_aligned() -> None:
    html = html_table(("<a>", "n"), [("<b>", 12345), (None, None)], title="&")
    assert "<a>" not in html
    assert '<td class="number">12,345</td>' in html
    assert "<caption>&amp;</caption>" in html


def test_long_tables_are_cut_and_counted() -> None:
    assert html_table(("n",), [(number,) for number in range(60)]).endswith("<p>60 rows, 50 shown</p>")
    assert "shown" not in html_table(("n",), [(number,) for number in range(60)], most=None)


@pytest.mark.parametrize(
    ("html", "label"),
    [
        (html_table(("a", "b", "c", "d"), []), "a, b, c"),
        (html_table(("a",), [], title="<1>"), "&lt;1&gt;"),
        (html_pairs({"a": 1}), "details"),
        (html_pairs({"a": 1}, title="Scan"), "Scan"),
    ],
)
def test_a_table_that_is_wider_than_the_window_scrolls_with_the_keyboard_and_has_a_label(html: str, label: str) -> None:
    assert html.startswith(f'<div class="wide" role="group" aria-label="{label}" tabindex="0"><table>')


def test_listings_are_lists_of_dictionaries_or_dataclasses() -> None:
    actual = Listing([Finding("a", 1), Finding("b", None)])
    assert actual == [Finding("a", 1), Finding("b", None)]
    html = actual._repr_html_()
    assert "nothing" not in html
    assert "count" in html
    assert "Empty" in Listing()._repr_html_()
    assert "x = 1" in Listing([{"map": {"x": "1"}}])._repr_html_()


@pytest.mark.parametrize(("count", "text"), [(0, "0 B"), (999, "999 B"), (1536, "1.5 KiB"), (200 * 1024**2, "200 MiB")])
def test_sizes(count: int, text: str) -> None:
    assert html_size(count) == text


def test_pairs_leave_out_empty_values() -> None:
    html = html_pairs({"a": 0, "b": None})
    assert '<th scope="row">a</th>' in html
    assert '<th scope="row">b</th>' not in html


def test_every_result_of_a_table_has_html_and_text(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", {"id": "long"}, properties={"delta.enableDeletionVectors": "true"})
    table.append(pa.table({"id": [1, 2]}))
    table.append(pa.table({"id": [3]}))
    results = [
        table,
        table.snapshot(),
        table.snapshot().scan(),
        table.history(),
        table.check(),
        table.compat(),
        table.delete("id = 1"),
        table.layout(),
        table.optimize(),
        table.vacuum(dry_run=True),
        table.diff(1),
        table.column_statistics(),
        table.storage_use(),
        table.report(),
        table.restore(1),
        table.fsck(dry_run=True),
        table.compute_statistics(dry_run=True),
        table.repair_log(dry_run=True),
        table.uniform.status(),
    ]
    for result in results:
        assert 'class="tahoe"' in result._repr_html_(), type(result)  # type: ignore[attr-defined]
        assert "object at 0x" not in str(result), type(result)
    assert "DELTA_TABLE_NOT_FOUND" in Table(tmp_path / "none")._repr_html_() or "no" in Table(tmp_path / "none")._repr_html_()
