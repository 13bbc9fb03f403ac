"""Check Tahoe's HTML with axe-core in headless Chromium: reports, layouts, the pages of `tahoe serve`, and notebook output.

Each page is checked in the light and the dark color scheme, in a wide and a narrow window, against the rules of WCAG 2 A and AA. Run by
`make accessibility`; needs Chromium (the Debian package chromium), and npm, which installs axe-core into a temporary folder. The argument
is a folder for screenshots; without it none are taken.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import tahoe
from tahoe.api.process import UNIFORM_RUNTIME
from tahoe.cli.web_pages import WebPages
from tahoe.uniform.serve.rest_protocol import ReadOnlyCatalog, Request
from tahoe.uniform.serve.warehouse import Warehouse

PACKAGES = ("axe-core@4.14.1", "playwright-core@1.65.1")
_UNIFORM = {"delta.universalFormat.enabledFormats": "iceberg", "delta.enableIcebergCompatV2": "true"}
_PARTS = ("rule", "help", "target", "reason")
_HTML = {"Content-Type": "text/html; charset=utf-8"}


@dataclass(frozen=True, slots=True)
class CheckedPage:
    """A page: its name, HTML and HTTP headers."""

    name: str
    html: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class View:
    """The outcome of axe-core for a page in one color scheme and width; `scripts/accessibility.mjs` prints these.

    Args:
        passed: the number of rules that apply and are obeyed.
        blocked: the console's errors.
        violations: mappings with the names `_PARTS`, one for each element that violates a rule.
    """

    page: str
    scheme: str
    width: str
    passed: int
    blocked: Sequence[str]
    violations: Sequence[Mapping[str, str]]


def main(screenshots: str | None) -> int:
    """Check the pages, print the violations by page, and return 1 if there is one."""
    chromium, npm = shutil.which("chromium"), shutil.which("npm")
    if chromium is None or npm is None:
        missing = " and ".join(name for name, path in (("Chromium", chromium), ("npm", npm)) if path is None)
        print(f"make accessibility: SKIPPED: {missing} must be installed (Debian packages chromium and npm).")
        return 0
    if screenshots is not None:
        Path(screenshots).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        pages = sample_pages(Path(folder, "warehouse"))
        modules = Path(folder, "modules")
        subprocess.run([npm, "install", "--prefix", modules, "--no-audit", "--no-fund", "--silent", *PACKAGES], check=True)
        command = [
            "node",
            str(Path(__file__).with_suffix(".mjs")),
            str(modules),
            chromium,
            *([screenshots] if screenshots else []),
        ]
        asked = json.dumps([asdict(page) for page in pages])
        done = subprocess.run(command, input=asked, stdout=subprocess.PIPE, text=True, check=True)
        views = [View(**view) for view in json.loads(done.stdout)]
    lines = problems(views)
    print("\n".join(lines))
    print(f"{len(pages)} pages, {len(views)} views, {sum(view.passed for view in views):,} rules passed, {len(lines)} problems")
    return 1 if lines else 0


def problems(views: Sequence[View]) -> list[str]:
    """Return a line for each violation, and for each script, style or image that the page's policy blocks.

    Raises `ValueError`: no rule passed in a view, so it was not checked.
    """
    lines = []
    for view in views:
        name = f"{view.page} ({view.scheme}, {view.width})"
        if not view.passed:
            raise ValueError(f"{name}: no rule of axe-core applied, so the page was not checked")
        lines += [f"{name}: blocked: {text}" for text in view.blocked]
        lines += [f"{name}: {': '.join(actual[part] for part in _PARTS)}" for actual in view.violations]
    return lines


def sample_pages(folder: Path) -> list[CheckedPage]:
    """Create a warehouse in a folder and return its pages. They have every section: violations, advice, Iceberg, differences."""
    sales, damaged = _tables(folder)
    warehouse = Warehouse(folder, None, runtime=UNIFORM_RUNTIME)
    web = WebPages(warehouse, ReadOnlyCatalog(warehouse, None), tahoe.Table)
    served = {
        "tables": ("/", ""),
        "table": ("/table/shop/sales", ""),
        "difference": ("/diff/shop/sales", "from=0&to=8"),
        "served-report": ("/report/shop/sales", ""),
        "not-found": ("/table/shop/none", ""),
    }
    answers = {
        name: web.answer(Request("GET", path, query, {"host": "127.0.0.1:8181"})) for name, (path, query) in served.items()
    }
    return [
        *(CheckedPage(name, answer.text, answer.headers) for name, answer in answers.items()),
        CheckedPage("report", sales.report().to_html(), _HTML),
        CheckedPage("report-of-a-damaged-table", damaged.report().to_html(), _HTML),
        CheckedPage("layout", sales.layout().to_html(), _HTML),
        CheckedPage("notebook", _notebook(sales, damaged), _HTML),
        CheckedPage("notebook-report", _bare_page(sales.report()._repr_html_()), _HTML),
    ]


def _tables(folder: Path) -> tuple[tahoe.Table, tahoe.Table]:
    """Return a table with UniForm and several versions, and one that lacks a data file."""
    schema = pa.schema(
        {"id": pa.int64(), "day": pa.string(), "amount_in_euros_including_tax": pa.float64(), "customer": pa.string()}
    )
    sales = tahoe.Table.create(folder / "shop" / "sales", schema, partition_by=["day"], properties=_UNIFORM)
    damaged = tahoe.Table.create(folder / "damaged", schema)
    for day in range(6):
        ids = range(day * 100, day * 100 + 100)
        rows = pa.table(
            [[*ids], [f"2026-01-0{1 + day % 3}"] * 100, [each / 7 for each in ids], [f"customer {each % 9}" for each in ids]],
            schema=schema,
        )
        sales.append(rows, user_metadata=f"load of day {day}")
        damaged.append(rows)
    sales.delete("id < 50")
    sales.set_properties({"delta.logRetentionDuration": "interval 60 days"})
    if not UNIFORM_RUNTIME.queue.drain(120):
        raise TimeoutError(f"The Iceberg conversion of {sales.url} did not end within 120 seconds.")
    next((folder / "damaged").glob("*.parquet")).unlink()
    return sales, damaged


def _notebook(sales: tahoe.Table, damaged: tahoe.Table) -> str:
    newest = sales.snapshot()
    return _bare_page(
        sales._repr_html_(),
        sales.history()._repr_html_(),
        damaged.check()._repr_html_(),
        sales.check()._repr_html_(),
        newest._repr_html_(),
        newest.scan()._repr_html_(),
        sales.uniform.status()._repr_html_(),
        sales.diff(0, newest.version, rows=True)._repr_html_(),
        sales.layout()._repr_html_(),
    )


def _bare_page(*parts: str) -> str:
    return f'<!doctype html><html lang="en"><head><title>Notebook</title></head><body><main>{"".join(parts)}</main></body></html>'


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else None))
