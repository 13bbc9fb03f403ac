"""An HTML page of a table's layout: files as rectangles over two columns, now and after OPTIMIZE, and the reads of typical predicates. Pure.

The page is self-contained, without scripts, external fonts or images. All text from the table is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Protocol

from tahoe.base.html import html_page, html_part, html_size, html_wide
from tahoe.base.wording import counted, shortened, utc_minute
from tahoe.ops.layout.boxes import Box, ColumnLayout, PredicateCost
from tahoe.snapshot.file_row_groups import evenly

_MOST_DRAWN = 2_000
_WIDTH, _HEIGHT, _MARGIN = 460, 340, 58
_LEAST_SIDE = 2.5
_MUCH_WORSE = 1.2
"""A column becomes worse if a predicate reads this many times the bytes."""

STYLE = """
.tahoe .views{display:flex;flex-wrap:wrap;gap:1.5rem}.tahoe figure{margin:0;flex:1 1 26rem}
.tahoe figure svg{width:100%;height:auto;overflow:visible}.tahoe figure text{fill:var(--faint);font-size:11px}
.tahoe .frame{fill:none;stroke:var(--line)}
.tahoe .file{fill-opacity:.16;stroke-opacity:.75;stroke-width:1}.tahoe .file:hover{fill-opacity:.6;stroke-width:2}
.tahoe .layout{margin-top:1.5rem;width:100%}.tahoe .layout th,.tahoe .layout td{text-align:right}
.tahoe .layout th:first-child,.tahoe .layout td:first-child{text-align:left}
.tahoe .bar{display:inline-block;height:.6em;border-radius:2px;margin-right:.5em;vertical-align:baseline}
.tahoe .key{font-weight:600}.tahoe .legend span{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin:0 .35em 0 1em}
"""


class LayoutView(Protocol):
    """The layout to draw: the members of `tahoe.ops.layout.table_layout.TableLayout` that the page uses."""

    @property
    def table(self) -> str:
        """The URL of the table."""

    @property
    def version(self) -> int:
        """The version to draw."""

    @property
    def size(self) -> int:
        """The total size of its files in bytes."""

    @property
    def columns(self) -> tuple[ColumnLayout, ...]:
        """The columns, with the reads of typical predicates."""

    @property
    def before(self) -> tuple[Box, ...]:
        """The existing files."""

    @property
    def after(self) -> tuple[Box, ...]:
        """The files after OPTIMIZE."""

    @property
    def lengths(self) -> tuple[float, ...]:
        """The lengths of the columns' lines."""

    @property
    def marks(self) -> tuple[tuple[tuple[float, str], ...], ...]:
        """For each column, positions on its line and the values there."""

    @property
    def axes(self) -> tuple[int, int]:
        """The indices of the two columns of the axes."""

    def gain(self) -> str:
        """Describe the effect of OPTIMIZE in a sentence."""


def page_of(layout: LayoutView) -> str:
    """Return the page as HTML."""
    return html_page(f"Layout of {layout.table}", f"<h1>{escape(layout.table)}</h1>", part_of(layout), style=STYLE)


def notebook_part_of(layout: LayoutView) -> str:
    """Return the page's content as HTML for a notebook."""
    return html_part(f"<style>{STYLE}</style><h2>{escape(layout.table)}</h2>", part_of(layout))


def part_of(layout: LayoutView) -> str:
    """Return the content of the page, to be used inside a page with `STYLE`."""
    facts = f"Version {layout.version}, {counted(len(layout.before), 'file')}, {html_size(layout.size)}. {layout.gain()}"
    note = "The layout after OPTIMIZE is an estimate from the log's statistics: it assumes that values are spread evenly in each file."
    return "\n".join(
        [
            f"<p>{escape(facts)}</p>",
            _legend(layout),
            '<div class="views">',
            _view(layout, "Now", layout.before, by_age=True),
            _view(layout, "After OPTIMIZE", layout.after, by_age=False),
            "</div>",
            _table(layout.columns),
            *map(_worse, filter(is_worse, layout.columns)),
            f"<p>{note}</p>",
        ]
    )


def is_worse(column: ColumnLayout) -> bool:
    """Whether predicates on a column would read clearly more bytes after OPTIMIZE."""
    now, then = column.now, column.then
    return now is not None and then is not None and then.point_bytes > _MUCH_WORSE * now.point_bytes


def _worse(column: ColumnLayout) -> str:
    assert column.now is not None and column.then is not None
    bytes_now, bytes_then = html_size(column.now.point_bytes), html_size(column.then.point_bytes)
    return (
        f'<p class="bad">OPTIMIZE makes column {escape(column.name)} worse: a predicate on one value would read {bytes_then} instead of '
        f"{bytes_now}.</p>"
    )


def _legend(layout: LayoutView) -> str:
    times = [box.modified_ms for box in layout.before]
    if not times:
        return ""
    old, new = (utc_minute(time) for time in (min(times), max(times)))
    return (
        '<p class="legend">Each rectangle is a file, from its least to its greatest values.'
        f'<span style="background:var(--old)"></span>{old}<span style="background:var(--new)"></span>{new}</p>'
    )


def _view(layout: LayoutView, title: str, boxes: Sequence[Box], *, by_age: bool) -> str:
    x, y = layout.axes
    drawn = [box for box in boxes if box.intervals[x] is not None and box.intervals[y] is not None]
    some = evenly(drawn, _MOST_DRAWN)
    caption = counted(len(boxes), "file")
    if len(some) < len(boxes):
        caption += f", {len(some):,} of them drawn"
    rectangles = "\n".join(_rectangles(layout, some, x, y, by_age=by_age))
    names = layout.columns[x].name, layout.columns[y].name
    return (
        f"<figure><h2>{title}: {caption}</h2>"
        f'<svg viewBox="0 0 {_WIDTH + _MARGIN + 10} {_HEIGHT + _MARGIN}" role="img" aria-label="{title}: files over '
        f'{escape(names[0])} and {escape(names[1])}">'
        f'<rect class="frame" x="{_MARGIN}" y="4" width="{_WIDTH}" height="{_HEIGHT}"/>{rectangles}'
        f"{''.join(_ticks(layout, x, y))}"
        f'<text x="{_MARGIN + _WIDTH / 2}" y="{_HEIGHT + _MARGIN - 6}" text-anchor="middle">{escape(names[0])}</text>'
        f'<text transform="translate(10 {_HEIGHT / 2}) rotate(-90)" text-anchor="middle">{escape(names[1])}</text>'
        "</svg></figure>"
    )


def _rectangles(layout: LayoutView, boxes: Sequence[Box], x: int, y: int, *, by_age: bool) -> Iterator[str]:
    times = [box.modified_ms for box in boxes]
    oldest, span = min(times, default=0), max(1, max(times, default=0) - min(times, default=0))
    for box in boxes:
        left, right = _side(box, x, layout.lengths[x], _WIDTH)
        low, high = _side(box, y, layout.lengths[y], _HEIGHT)
        share = round(100 * (box.modified_ms - oldest) / span)
        colour = f"color-mix(in srgb,var(--new) {share}%,var(--old))" if by_age else "var(--after)"
        yield (
            f'<rect class="file" x="{_MARGIN + left:.1f}" y="{4 + _HEIGHT - high:.1f}" width="{right - left:.1f}" '
            f'height="{high - low:.1f}" rx="1.5" style="fill:{colour};stroke:{colour}">'
            f"<title>{escape(_tooltip(layout, box, x, y))}</title></rect>"
        )


def _side(box: Box, column: int, length: float, pixels: int) -> tuple[float, float]:
    interval = box.intervals[column]
    assert interval is not None
    low, high = (place / length * pixels for place in interval)
    lacks = max(0.0, _LEAST_SIDE - (high - low)) / 2
    return max(0.0, low - lacks), min(float(pixels), high + lacks)


def _tooltip(layout: LayoutView, box: Box, x: int, y: int) -> str:
    lines = [box.name or "a new file", f"{html_size(box.size)}, {box.rows:,} rows"]
    if box.name:
        lines.append(utc_minute(box.modified_ms))
        lines += [f"{layout.columns[i].name}: {box.bounds[i][0]} … {box.bounds[i][1]}" for i in dict.fromkeys((x, y))]
    return "\n".join(lines)


def _ticks(layout: LayoutView, x: int, y: int) -> Iterator[str]:
    for place, value in layout.marks[x][:: max(1, len(layout.marks[x]) - 1)]:
        at = _MARGIN + place / layout.lengths[x] * _WIDTH
        anchor = "end" if place else "start"
        yield f'<text x="{at:.1f}" y="{_HEIGHT + 20}" text-anchor="{anchor}">{escape(shortened(value, 22))}</text>'
    for place, value in layout.marks[y][:: max(1, len(layout.marks[y]) - 1)]:
        at = 4 + _HEIGHT - place / layout.lengths[y] * _HEIGHT
        yield f'<text x="{_MARGIN - 6}" y="{min(_HEIGHT, max(14.0, at)):.1f}" text-anchor="end">{escape(shortened(value, 7))}</text>'


def _table(columns: Sequence[ColumnLayout]) -> str:
    head = "".join(
        f'<th scope="col">{name}</th>'
        for name in ("column", "a point reads", "a tenth reads", "deepest", "a point then", "a tenth then")
    )
    most = max(
        (max(column.now.point_bytes, column.then.point_bytes) for column in columns if column.now and column.then), default=1.0
    )
    rows = "".join(_row(column, most) for column in columns)
    return html_wide(
        "reads of typical predicates", f'<table class="layout"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    )


def _row(column: ColumnLayout, most: float) -> str:
    name = f'<td class="{"key" if column.is_key else ""}">{escape(column.name)}</td>'
    now, then = column.now, column.then
    if now is None or then is None:
        return f'<tr>{name}<td colspan="5">no values</td></tr>'
    cells = [
        _bar(now, most, "--old"),
        f"{now.range_files:,.1f} files, {html_size(now.range_bytes)}",
        f"{now.deepest:,}",
        _bar(then, most, "--after"),
        f"{then.range_files:,.1f} files, {html_size(then.range_bytes)}",
    ]
    return f"<tr>{name}{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _bar(measured: PredicateCost, most: float, colour: str) -> str:
    width = 6 * measured.point_bytes / max(most, 1e-9)
    bar = f'<span class="bar" style="width:{width:.2f}em;background:var({colour})"></span>'
    return f"{bar}{measured.point_files:,.1f} files, {html_size(measured.point_bytes)}"
