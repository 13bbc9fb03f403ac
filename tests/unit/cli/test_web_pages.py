"""The web pages of `tahoe serve`."""

from __future__ import annotations

import base64
from pathlib import Path

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.cli.web_pages import Page, WebPages
from tahoe.uniform.serve.rest_protocol import ReadOnlyCatalog, Request
from tests.unit.ops.reports.test_table_report import Page as ParsedPage
from tests.unit.uniform.serve.serving import LOCAL, make_table, warehouse_of

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_table(tmp_path / "top")
    plain = make_table(tmp_path / "sales eu" / "plain", {"my.access_key": "hunter2hunter2"})
    plain.append(pa.table({"id": [7]}), user_metadata=HOSTILE)
    return tmp_path


def pages_of(root: Path, token: str | None = None) -> WebPages:
    warehouse = warehouse_of(root)
    return WebPages(warehouse, ReadOnlyCatalog(warehouse, token), Table)


def get(pages: WebPages, path: str, query: str = "", **headers: str) -> Page:
    page = pages.answer(Request("GET", path, query, {**LOCAL, **headers}))
    parsed = ParsedPage(page.text)
    assert parsed.open == []
    assert "script" not in parsed.tags
    return page


def test_the_first_page_lists_every_table(root: Path) -> None:
    page = get(pages_of(root), "/")
    assert page.status == 200
    assert 'href="/table/default/top"' in page.text
    assert 'href="/table/sales%20eu/plain"' in page.text
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]


def test_a_table_has_a_history_a_difference_and_a_report(root: Path) -> None:
    pages = pages_of(root)
    page = get(pages, "/table/sales%20eu/plain")
    assert page.status == 200
    assert "&lt;script&gt;" in page.text
    assert "hunter2" not in page.text
    difference = get(pages, "/diff/sales%20eu/plain", "from=0&to=2")
    assert "files: 2 added" in difference.text
    report = get(pages, "/report/sales%20eu/plain")
    assert "Recommended actions" in report.text
    assert "hunter2" not in report.text


@pytest.mark.parametrize(
    ("path", "query", "status"),
    [
        ("/table/default/none", "", 404),
        ("/table/none/top", "", 404),
        ("/table/default/..%2Ftop", "", 404),
        ("/table/../../etc/passwd", "", 404),
        ("/table/", "", 404),
        ("/other/default/top", "", 404),
        ("/diff/default/top", "from=x", 400),
        ("/diff/default/top", "from=0&to=99", 404),
        ("/table/default/%ff", "", 404),
    ],
)
def test_wrong_requests_are_answered_with_the_reason(root: Path, path: str, query: str, status: int) -> None:
    page = get(pages_of(root), path, query)
    assert page.status == status
    assert "<p>" in page.text


def test_a_token_is_the_password_of_the_browser(root: Path) -> None:
    pages = pages_of(root, "s3cr3t-t0ken")
    refused = get(pages, "/")
    assert (refused.status, refused.headers["WWW-Authenticate"]) == (401, 'Basic realm="Tahoe"')
    credential = base64.b64encode(b"me:s3cr3t-t0ken").decode()
    assert get(pages, "/", authorization=f"Basic {credential}").status == 200
    wrong = base64.b64encode(b"me:s3cr3t").decode()
    assert get(pages, "/", authorization=f"Basic {wrong}").status == 401
    assert get(pages, "/", authorization="Basic not base64!").status == 401


def test_another_host_name_is_refused_without_a_token(root: Path) -> None:
    assert get(pages_of(root), "/", host="attacker.example").status == 403


def test_a_damaged_table_does_not_hide_the_others(root: Path) -> None:
    (root / "top" / "_delta_log" / f"{0:020d}.json").write_text("{")
    (root / "top" / "_delta_log" / f"{1:020d}.json").unlink()
    page = get(pages_of(root), "/")
    assert page.status == 200
    assert 'class="bad"' in page.text
    assert "sales eu.plain" in page.text
