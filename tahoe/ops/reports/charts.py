"""Charts as SVG, without scripts: a line over versions, bars, and points on lanes over time. Pure; all text is escaped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from tahoe.base.html import html_wide
from tahoe.base.wording import shortened, utc_minute

WIDTH = 640
_LABEL_WIDTH = 170
_BAR_HEIGHT = 18
_LINE_HEIGHT = 160
_COLOURS = ("--old", "--new", "--after", "--bad")

STYLE = """
.tahoe svg{width:100%;max-width:44rem;height:auto;display:block}.tahoe .wide svg{min-width:34rem}
.tahoe svg text{fill:var(--faint);font-size:11px}
.tahoe svg .value{fill:var(--ink)}.tahoe .axis{stroke:var(--line)}
.tahoe .legend span{display:inline-block;width:.8em;height:.8em;border-radius:50%;margin:0 .35em 0 1em}
"""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: its name, its length in any unit, and its value as text."""

    name: str
    length: float
    text: str


@dataclass(frozen=True, slots=True)
class Point:
    """One point on a lane.

    Args:
        time_ms: milliseconds since the epoch.
        lane, group: texts; each lane has a line of its own, each group a colour.
        text: shown while the pointer is over it.
    """

    time_ms: int
    lane: str
    group: str
    text: str


def bars(title: str, items: Sequence[Bar]) -> str:
    """Return horizontal bars, one below the other."""
    most = max((item.length for item in items), default=0) or 1
    room = WIDTH - _LABEL_WIDTH - 120
    lines = (
        f'<text x="{_LABEL_WIDTH - 8}" y="{y + 13}" text-anchor="end">{escape(shortened(item.name, 26))}</text>'
        f'<rect x="{_LABEL_WIDTH}" y="{y + 3}" width="{max(1.0, room * item.length / most):.1f}" height="{_BAR_HEIGHT - 6}" rx="2" '
        'style="fill:var(--old)"/>'
        f'<text class="value" x="{_LABEL_WIDTH + room * item.length / most + 8:.1f}" y="{y + 13}">{escape(item.text)}</text>'
        for y, item in ((place * _BAR_HEIGHT, item) for place, item in enumerate(items))
    )
    return _svg(f"{title}: {'; '.join(f'{item.name} {item.text}' for item in items)}", len(items) * _BAR_HEIGHT, lines)


def line(title: str, values: Sequence[tuple[int, float, str]]) -> str:
    """Return a line over versions.

    Args:
        values: for each version in ascending order: its number, its value, and the value as text.
    """
    if not values:
        return ""
    first, last = values[0][0], values[-1][0]
    most = max(value for _, value, _ in values) or 1
    left, right, top, bottom = 70, WIDTH - 20, 10, _LINE_HEIGHT - 24

    def place(version: int, value: float) -> tuple[float, float]:
        return left + (right - left) * (version - first) / max(1, last - first), bottom - (bottom - top) * value / most

    spots = [(*place(version, value), f"version {version}: {text}") for version, value, text in values]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in spots)
    shown = [
        f'<line class="axis" x1="{left}" x2="{right}" y1="{bottom}" y2="{bottom}"/>',
        f'<polyline points="{path}" style="fill:none;stroke:var(--old);stroke-width:2"/>',
        *(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" style="fill:var(--old)"><title>{escape(text)}</title></circle>'
            for x, y, text in spots
        ),
        f'<text x="{left - 8}" y="{top + 6}" text-anchor="end">{escape(max(values, key=lambda item: item[1])[2])}</text>',
        f'<text x="{left - 8}" y="{bottom}" text-anchor="end">0</text>',
        f'<text x="{left}" y="{_LINE_HEIGHT - 8}">version {first}</text>',
        f'<text x="{right}" y="{_LINE_HEIGHT - 8}" text-anchor="end">version {last}</text>',
    ]
    return _svg(f"{title}: {values[0][2]} at version {first}, {values[-1][2]} at version {last}", _LINE_HEIGHT, shown)


def timeline(title: str, points: Sequence[Point]) -> str:
    """Return points over time, one line for each lane, and a legend of the groups."""
    if not points:
        return ""
    lanes = list(dict.fromkeys(point.lane for point in points))
    groups = list(dict.fromkeys(point.group for point in points))
    first, last = min(point.time_ms for point in points), max(point.time_ms for point in points)
    left, right = _LABEL_WIDTH, WIDTH - 20
    bottom = len(lanes) * 24
    shown = [
        f'<line class="axis" x1="{left}" x2="{right}" y1="{y}" y2="{y}"/>'
        f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{escape(shortened(lane, 26))}</text>'
        for y, lane in ((place * 24 + 12, lane) for place, lane in enumerate(lanes))
    ]
    shown += [
        f'<circle cx="{left + (right - left) * (point.time_ms - first) / max(1, last - first):.1f}" cy="{lanes.index(point.lane) * 24 + 12}" '
        f'r="5" fill-opacity=".7" style="fill:var({_colour(groups, point.group)})"><title>{escape(point.text)}</title></circle>'
        for point in points
    ]
    shown.append(f'<text x="{left}" y="{bottom + 16}">{utc_minute(first)}</text>')
    shown.append(f'<text x="{right}" y="{bottom + 16}" text-anchor="end">{utc_minute(last)}</text>')
    legend = "".join(f'<span style="background:var({_colour(groups, group)})"></span>{escape(group)}' for group in groups)
    return f'{_svg(title, bottom + 22, shown)}<p class="legend">{legend}</p>'


def _svg(label: str, height: int, shown: Iterator[str] | Sequence[str]) -> str:
    """Return a drawing; a screen reader reads the label instead of the texts in it."""
    drawing = f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(label)}">{"".join(shown)}</svg>'
    return html_wide("chart", drawing)


def _colour(groups: Sequence[str], group: str) -> str:
    return _COLOURS[groups.index(group) % len(_COLOURS)]
