"""HTML for notebooks and reports: tables and pages without scripts, external fonts or images. All text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from html import escape
from typing import TypeVar

T = TypeVar("T")

MOST_ROWS = 50
"""The rows of a table in a notebook; more are counted below it."""
_MOST_NAMES = 3
"""The columns that a screen reader names before it reads a table without a title."""

STYLE = """
.tahoe{--paper:#fff;--ink:#1c2430;--faint:#5b6472;--line:#dde2ea;--old:#2c5d8f;--new:#b8641a;--after:#1f7a5c;--bad:#b3261e;
  font:14px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);color-scheme:light dark}
@media (prefers-color-scheme:dark){.tahoe{--paper:#14181f;--ink:#e6e9ee;--faint:#98a2b3;--line:#2b3340;--old:#6aa3dc;--new:#f0a95a;
  --after:#5cc4a3;--bad:#f2857d}}
.tahoe h1{font-size:1.25rem;margin:0 0 .25rem}.tahoe h2{font-size:1rem;margin:1.5rem 0 .25rem}
.tahoe h1,.tahoe h2{overflow-wrap:anywhere}
.tahoe p{margin:.25rem 0 .75rem;color:var(--faint)}.tahoe code{font:.92em ui-monospace,monospace;color:var(--ink);overflow-wrap:anywhere}
.tahoe .wide{overflow-x:auto}
.tahoe table{border-collapse:collapse;margin:.25rem 0}
.tahoe caption{text-align:left;font-weight:600;padding:.2rem 0}
.tahoe th,.tahoe td{text-align:left;vertical-align:top;padding:.25rem .8rem .25rem 0;border-bottom:1px solid var(--line);
  font-variant-numeric:tabular-nums;background:none;color:var(--ink);max-width:40rem;overflow-wrap:break-word}
.tahoe a{color:var(--old)}.tahoe input{width:7rem}
.tahoe th{color:var(--faint);font-weight:600;white-space:nowrap}.tahoe .number{text-align:right}.tahoe .bad{color:var(--bad)}
"""


def html_part(*parts: str) -> str:
    """Return parts of HTML with Tahoe's style, for a notebook."""
    return f'<div class="tahoe"><style>{STYLE}</style>{"".join(parts)}</div>'


def html_page(title: str, *parts: str, style: str = "") -> str:
    """Return a page.

    Args:
        title: text.
        parts: HTML.
        style: more CSS rules.
    """
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="viewport" content="width=device-width">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}\n{style}</style>\n</head>\n"
        f'<body class="tahoe" style="margin:0;padding:1.5rem"><main style="max-width:68rem;margin:auto">\n{"".join(parts)}\n</main></body>\n'
        "</html>\n"
    )


def html_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str = "", most: int | None = MOST_ROWS) -> str:
    """Return a table. Columns that contain only numbers are aligned to the right.

    Args:
        columns: the headers.
        rows: values; numbers get thousands separators, and None is empty.
        title: text above the table.
        most: the greatest number of rows; None for no limit.
    """
    rows = list(rows)
    shown = rows if most is None else rows[:most]
    numbers = [all(_is_number(row[place]) for row in shown) for place in range(len(columns))]
    head = "".join(f'<th scope="col"{_class(number)}>{escape(name)}</th>' for name, number in zip(columns, numbers, strict=True))
    lines = (
        "".join(f"<td{_class(number)}>{_cell(value)}</td>" for value, number in zip(row, numbers, strict=True)) for row in shown
    )
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    more = f"<p>{len(rows):,} rows, {len(shown):,} shown</p>" if len(shown) < len(rows) else ""
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    table = f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return html_wide(title or ", ".join(columns[:_MOST_NAMES]), table) + more


def html_pairs(pairs: Mapping[str, object], *, title: str = "") -> str:
    """Return a table of names and values; names with the value None or with an empty one are left out."""
    lines = (
        f'<tr><th scope="row">{escape(name)}</th><td>{_cell(value)}</td></tr>'
        for name, value in pairs.items()
        if value not in (None, "", [], {})
    )
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    return html_wide(title or "details", f"<table>{caption}<tbody>{''.join(lines)}</tbody></table>")


def html_wide(label: str, content: str) -> str:
    """Return content that scrolls sideways if the window is narrower, also with the keyboard.

    Args:
        label: a text for screen readers, which is not shown.
        content: HTML.
    """
    return f'<div class="wide" role="group" aria-label="{escape(label)}" tabindex="0">{content}</div>'


def html_size(count: float) -> str:
    """Format bytes in IEC units: ``512 B``, ``1.5 KiB``."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if count < 1000 or unit == "TiB":
            break
        count /= 1024
    return f"{count:,.0f} {unit}" if unit == "B" or count >= 99.95 else f"{count:,.1f} {unit}"


class Listing(list[T]):
    """A list of dictionaries or dataclasses that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        return html_part(html_listing(self))


def html_listing(items: Sequence[object]) -> str:
    """Return a table of dictionaries or dataclasses; members without a value in any row are left out."""
    rows = [item if isinstance(item, Mapping) else {f.name: getattr(item, f.name) for f in fields(item)} for item in items]  # type: ignore[arg-type]
    if not rows:
        return "<p>Empty.</p>"
    columns = [name for name in rows[0] if any(row[name] not in (None, "", {}, ()) for row in rows)]
    return html_table(columns, [[row[name] for name in columns] for row in rows])


class ShownAsText:
    """A base class of results whose `str` is a readable summary: a notebook shows that text."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return html_part(f'<pre style="white-space:pre-wrap">{escape(str(self))}</pre>')


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _class(is_number: bool) -> str:
    return ' class="number"' if is_number else ""


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return escape(", ".join(f"{name} = {member}" for name, member in value.items()))
    if isinstance(value, list | tuple):
        return escape(", ".join(map(str, value)))
    if isinstance(value, datetime):
        return escape(f"{value:%Y-%m-%d %H:%M:%S %Z}".strip())
    return escape(str(value))
