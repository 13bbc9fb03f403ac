"""The web pages of `tahoe serve`: the tables of a warehouse, and the history, differences and report of each.

Pages are HTML without scripts. All text from tables is escaped, and the response forbids scripts and other sources.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, unquote

from tahoe.base.exceptions import InvalidRequest, NotFound, TahoeError
from tahoe.base.html import html_page, html_pairs, html_size, html_table, html_wide
from tahoe.ops.reports.report_page import commits_table
from tahoe.ops.tables.detail import detail, shown_detail
from tahoe.uniform.serve.rest_protocol import ReadOnlyCatalog, Request
from tahoe.uniform.serve.warehouse import DEFAULT, Namespace, Warehouse

if TYPE_CHECKING:
    from tahoe.api.table import Table

logger = logging.getLogger(__name__)

_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_MOST_COMMITS = 50


@dataclass(frozen=True, slots=True)
class Page:
    """A response with HTML."""

    status: int
    text: str
    headers: Mapping[str, str]

    @property
    def body(self) -> bytes:
        """The page in UTF-8."""
        return self.text.encode("utf-8", "replace")


class WebPages:
    """Answers requests for pages: ``/``, and ``/table/NAME``, ``/diff/NAME?from=&to=``, ``/report/NAME`` of tables.

    Args:
        warehouse: the tables.
        catalog: decides who may read.
        open_table: opens a table by its URL.
    """

    def __init__(self, warehouse: Warehouse, catalog: ReadOnlyCatalog, open_table: Callable[[str], Table]) -> None:
        self._warehouse = warehouse
        self._catalog = catalog
        self._open = open_table

    def answer(self, request: Request) -> Page:
        """Return the answer to a request; never raises for an error in the request, the table or storage."""
        refused = self._catalog.refused(request)
        if refused is not None:
            headers = {"WWW-Authenticate": 'Basic realm="Tahoe"'} if refused.status == 401 else {}
            return _page(
                refused.status, "Not permitted", "<p>Sign in with any name, and the server's token as password.</p>", headers
            )
        try:
            return self._routed(request)
        except TahoeError as error:
            status = 404 if isinstance(error, NotFound) else 400 if isinstance(error, InvalidRequest) else 500
            return _page(status, "Error", f"<p>{escape(str(error))}</p>{_BACK}")
        except Exception as error:
            logger.exception("%s %s failed", request.method, request.path)
            return _page(500, "Error", f"<p>Unexpected {type(error).__name__}; the server's log says more.</p>{_BACK}")

    def _routed(self, request: Request) -> Page:
        kind, _, name = request.path.strip("/").partition("/")
        if not kind:
            return _page(200, f"Tables in {self._warehouse.url}", self._tables())
        shown = _KINDS.get(kind)
        if shown is None or not name:
            return _page(404, "Not found", f"<p>There is no such page.</p>{_BACK}")
        parts = [unquote(part, errors="replace") for part in name.split("/")]
        table = self._open(self._warehouse.url_of(tuple(parts[:-1]), parts[-1]))
        query = {key: values[-1] for key, values in parse_qs(request.query).items()}
        return shown(table, _path(parts), query)

    def _tables(self) -> str:
        rows = [self._row(namespace, name) for namespace in self._namespaces() for name in self._warehouse.tables(namespace)]
        if not rows:
            return "<p>There is no Delta table.</p>"
        head = "".join(
            f'<th scope="col">{title}</th>' for title in ("table", "version", "changed (UTC)", "files", "size", "Iceberg")
        )
        return html_wide("tables", f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>")

    def _namespaces(self, parent: Namespace = ()) -> Iterator[Namespace]:
        for namespace in self._warehouse.namespaces(parent):
            yield namespace
            if namespace != (DEFAULT,):
                yield from self._namespaces(namespace)

    def _row(self, namespace: Namespace, name: str) -> str:
        link = f'<td><a href="/table/{_path((*namespace, name))}">{escape(".".join((*namespace, name)))}</a></td>'
        try:
            snapshot = self._warehouse.snapshot(namespace, name)
            facts = detail(snapshot)
            cells: Sequence[object] = (
                snapshot.version,
                f"{facts['lastModified']:%Y-%m-%d %H:%M:%S}",
                f"{facts['numFiles']:,}",
                html_size(facts["sizeInBytes"]),
                self._warehouse.iceberg_note(namespace, name),
            )
        except TahoeError as error:
            return f'<tr>{link}<td class="bad" colspan="5">{escape(str(error))}</td></tr>'
        return f"<tr>{link}{''.join(f'<td>{escape(str(cell))}</td>' for cell in cells)}</tr>"


def _table_page(table: Table, name: str, query: Mapping[str, str]) -> Page:
    snapshot = table.snapshot()
    newest = snapshot.version
    columns = html_table(
        ("column", "type", "nullable"), [(field.name, field.data_type, field.nullable) for field in snapshot.schema]
    )
    commits = table.history(_MOST_COMMITS)
    fields = (
        f'<label>{key} <input name="{key}" type="number" min="0" max="{newest}" value="{version}"></label> '
        for key, version in (("from", max(0, newest - 1)), ("to", newest))
    )
    form = f'<form action="/diff/{name}">{"".join(fields)}<button>Compare</button></form>'
    return _page(
        200,
        table.url,
        f'<p><a href="/">Tables</a> · <a href="/report/{name}">Report</a></p>{html_pairs(shown_detail(snapshot))}<h2>Columns</h2>{columns}'
        f"<h2>Compare versions</h2>{form}<h2>History</h2>{commits_table(commits)}",
    )


def _diff_page(table: Table, name: str, query: Mapping[str, str]) -> Page:
    start, end = (_version(query, key) for key in ("from", "to"))
    return _page(
        200, f"Difference of {table.url}", f'<p><a href="/table/{name}">Table</a></p>{table.diff(start, end)._repr_html_()}'
    )


def _version(query: Mapping[str, str], key: str) -> int:
    text = query.get(key, "")
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise InvalidRequest(f"'{key}' must be a version, a whole number, not '{text}'.", code="DELTA_ILLEGAL_OPTION", option=key)
    return int(text)


def _report_page(table: Table, name: str, query: Mapping[str, str]) -> Page:
    return Page(200, table.report().to_html(), _HEADERS)


def _page(status: int, title: str, content: str, headers: Mapping[str, str] | None = None) -> Page:
    return Page(status, html_page(title, f"<h1>{escape(title)}</h1>", content), {**_HEADERS, **(headers or {})})


def _path(names: Sequence[str]) -> str:
    """Return the names as the path of a link."""
    return "/".join(quote(name, safe="") for name in names)


_BACK = '<p><a href="/">Tables</a></p>'
_KINDS: Mapping[str, Callable[[Table, str, Mapping[str, str]], Page]] = {
    "table": _table_page,
    "diff": _diff_page,
    "report": _report_page,
}
