"""`Table.report`: its facts, its advice, and a page that is safe to open."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa

from tahoe.api.table import Table

HOSTILE = "</title><script>alert('x')</script><img src=x onerror=alert(1)>"


class Page(HTMLParser):
    """Collects the tags and attributes of a page, and checks that each tag is closed."""

    VOID = frozenset({"meta", "input", "line", "circle", "rect", "polyline"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


def table_with_history(folder: Path) -> Table:
    table = Table.create(folder, {"id": "long", "name": "string"}, description=HOSTILE)
    for number in range(6):
        table.append(pa.table({"id": range(number * 10, number * 10 + 10), "name": [HOSTILE] * 10}), user_metadata=HOSTILE)
    return table


def test_the_page_contains_no_script_and_every_section(tmp_path: Path) -> None:
    report = table_with_history(tmp_path / "t").report()
    text = report.to_html()
    page = Page(text)
    assert page.open == []
    assert not page.tags & {"script", "img", "iframe", "link", "object"}
    assert not [name for name in page.attributes if name.startswith("on")]
    assert "http" not in re.sub(r"<(text|td|code|title)[^>]*>[^<]*", "", text)
    for section in (
        "Recommended actions",
        "Health",
        "Growth",
        "Storage",
        "File sizes",
        "Newest commits",
        "Skipping",
        "Layout",
        "Iceberg",
    ):
        assert f"<h2>{section}" in text
    assert Page(report._repr_html_()).open == []


def test_advice_names_the_command(tmp_path: Path) -> None:
    table = table_with_history(tmp_path / "t")
    (tmp_path / "t" / "stray.parquet").write_bytes(b"1")
    advice = [str(item) for item in table.report().advice]
    assert f"tahoe optimize {tmp_path}/t" in advice[0]
    assert any("1 file of 1 B are not in the log" in item and "tahoe vacuum" in item for item in advice)


def test_a_missing_file_is_the_first_advice(tmp_path: Path) -> None:
    table_with_history(tmp_path / "t")
    next((tmp_path / "t").glob("part-*.parquet")).unlink()
    report = Table(tmp_path / "t").report()
    assert report.violations
    assert str(report.advice[0]).startswith("The check found")
    assert "The check found" in str(report)


def test_a_damaged_checksum_only_leaves_a_gap_in_the_growth(tmp_path: Path) -> None:
    table = table_with_history(tmp_path / "t")
    assert [size.version for size in table.report().growth] == list(range(7))
    (tmp_path / "t" / "_delta_log" / f"{3:020d}.crc").write_text("{")
    assert [size.version for size in Table(tmp_path / "t").report().growth] == [0, 1, 2, 4, 5, 6]


def test_facts_of_the_iceberg_side_and_json(tmp_path: Path) -> None:
    table = Table.create(
        tmp_path / "t",
        {"id": "long"},
        properties={"delta.universalFormat.enabledFormats": "iceberg", "delta.enableIcebergCompatV2": "true"},
    )
    table.append(pa.table({"id": [1]}))
    table.uniform.sync()
    report = table.report()
    assert report.iceberg is not None
    assert report.iceberg["iceberg_version"] == 1
    json.dumps(report.to_json_value(), default=str)
    assert "iceberg version" in report.to_html()


def test_an_empty_table_has_a_report(tmp_path: Path) -> None:
    Page(Table.create(tmp_path / "t", pa.schema([("m", pa.map_(pa.string(), pa.int64()))])).report().to_html())
    Page(Table.create(tmp_path / "u", {"id": "long"}).report().to_html())
