"""The HTML page of a table's report. Pure; all text from the table is escaped, and the page has no scripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from tahoe.base.html import html_page, html_pairs, html_part, html_size, html_table
from tahoe.base.wording import counted, utc_minute
from tahoe.ops.layout import layout_page
from tahoe.ops.reports import charts
from tahoe.ops.reports.charts import Bar, Point
from tahoe.ops.reports.report_facts import ReportFacts

_MOST_COLUMNS = 20


def page_of(report: ReportFacts) -> str:
    """Return the whole report as an HTML page."""
    style = charts.STYLE + ("" if report.layout is None else layout_page.STYLE)
    return html_page(f"Report on {report.table}", *_sections(report), style=style)


def part_of(report: ReportFacts) -> str:
    """Return the report as HTML for a notebook."""
    style = charts.STYLE + ("" if report.layout is None else layout_page.STYLE)
    return html_part(f"<style>{style}</style>", *_sections(report))


def _sections(report: ReportFacts) -> Iterator[str]:
    yield f"<h1>{escape(report.table)}</h1>"
    yield f"<p>Version {report.version}, {counted(report.statistics.rows, 'row')}, {utc_minute(report.created_ms)} UTC</p>"
    yield _advice(report)
    yield html_pairs(report.facts)
    yield _health(report)
    yield _growth(report)
    yield _storage(report)
    yield _file_sizes(report)
    yield _commits(report)
    yield _skipping(report)
    if report.layout is not None:
        yield f"<h2>Layout</h2>{layout_page.part_of(report.layout)}"
    yield _iceberg(report)
    yield _streams(report)


def _advice(report: ReportFacts) -> str:
    if not report.advice:
        return "<h2>Recommended actions</h2><p>None.</p>"
    items = "".join(f"<li>{escape(advice.reason)} <code>{escape(advice.command)}</code></li>" for advice in report.advice)
    return f"<h2>Recommended actions</h2><ul>{items}</ul>"


def _health(report: ReportFacts) -> str:
    if not report.violations:
        return "<h2>Health</h2><p>The check found no problem.</p>"
    rows = [(violation.code, violation.message) for violation in report.violations]
    return f'<h2>Health</h2><p class="bad">{counted(len(rows), "problem")}</p>{html_table(("code", "problem"), rows)}'


def _growth(report: ReportFacts) -> str:
    sizes = charts.line("size of the table by version", [(at.version, at.size, html_size(at.size)) for at in report.growth])
    files = charts.line("files of the table by version", [(at.version, at.files, f"{at.files:,} files") for at in report.growth])
    note = "" if report.growth else "<p>No version has a checksum file.</p>"
    return f"<h2>Growth</h2>{note}{sizes}{files}"


def _storage(report: ReportFacts) -> str:
    kinds = report.storage.kinds
    items = [Bar(kind.kind, kind.size, f"{html_size(kind.size)}, {counted(kind.files, 'file')}") for kind in kinds]
    return f"<h2>Storage: {html_size(report.storage.size)}</h2>{charts.bars('storage by kind of file', items)}"


def _file_sizes(report: ReportFacts) -> str:
    counts = Counter(max(0, size).bit_length() for size in report.file_sizes)
    if not counts:
        return "<h2>File sizes</h2><p>The table has no files.</p>"
    items = [
        Bar(f"under {html_size(2**power)}", counts[power], counted(counts[power], "file"))
        for power in range(min(counts), max(counts) + 1)
    ]
    return f"<h2>File sizes</h2>{charts.bars('number of files by size', items)}"


def _commits(report: ReportFacts) -> str:
    points = [
        Point(
            round(commit["timestamp"].timestamp() * 1000),
            commit["operation"] or "unknown",
            commit["engineInfo"] or "unknown writer",
            f"version {commit['version']}, {commit['timestamp']:%Y-%m-%d %H:%M:%S} UTC",
        )
        for commit in report.commits
    ]
    return (
        f"<h2>Newest commits</h2>{charts.timeline('commits by operation and writer', points)}{commits_table(report.commits[:10])}"
    )


def commits_table(commits: Sequence[Mapping[str, Any]]) -> str:
    """Return a table of commits, without the parameters of operations, which may contain properties."""
    rows = [
        (
            str(commit["version"]),
            commit["timestamp"],
            commit["operation"],
            (commit["operationMetrics"] or {}).get("numOutputRows"),
            commit["engineInfo"],
            commit["userName"],
            commit["userMetadata"],
        )
        for commit in commits
    ]
    return html_table(("version", "time", "operation", "rows written", "writer", "user", "metadata"), rows)


def _skipping(report: ReportFacts) -> str:
    statistics = report.statistics
    rows = [
        (column.column, column.data_type, column.files, column.nulls, _text(column.least), _text(column.greatest))
        for column in statistics.columns
    ]
    table = html_table(("column", "type", "files with statistics", "nulls", "least", "greatest"), rows)
    if report.layout is None:
        return f"<h2>Skipping</h2><p>No column has bounds, so no file can be skipped.</p>{table}"
    items = [
        Bar(column.name, column.now.point_files, f"{column.now.point_files:,.1f} of {statistics.files:,} files")
        for column in report.layout.columns[:_MOST_COLUMNS]
        if column.now is not None
    ]
    return (
        f"<h2>Skipping</h2><p>Files that a predicate <code>column = value</code> reads on average.</p>"
        f"{charts.bars('files that a predicate reads, by column', items)}{table}"
    )


def _iceberg(report: ReportFacts) -> str:
    if report.iceberg is None:
        return "<h2>Iceberg</h2><p>UniForm is disabled.</p>"
    return f"<h2>Iceberg</h2>{html_pairs({name.replace('_', ' '): value for name, value in report.iceberg.items()})}"


def _streams(report: ReportFacts) -> str:
    rows = [
        (stream.checkpoint, stream.version, max(0, report.version - stream.version + 1), utc_minute(stream.modified_ms))
        for stream in report.streams
    ]
    if not rows:
        return ""
    return f"<h2>Streams</h2>{html_table(('checkpoint', 'next version', 'versions behind', 'recorded (UTC)'), rows)}"


def _text(value: object) -> str:
    return "" if value is None else str(value)
