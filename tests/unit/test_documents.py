"""The documents mention only names, files, commands and pages that exist, and their lists agree with the code."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts import coming_from_delta_spark, error_reference, sql_reference
from tests.document_mentions import ROOT, stale_mentions, stale_names

# A page is as likely to be wrong as any other page.
pytestmark = pytest.mark.every_case

DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
# The changelog may mention things that no longer exist.
CURRENT = [path for path in DOCUMENTS if path.name != "CHANGELOG.md"]
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
DESIGN = sorted((ROOT / "docs/design").glob("[0-9]*.md"))
STATUS = re.compile(r"^Status: (accepted|proposed|superseded by \[\d{3}\]\(\d{3}-[\w-]+\.md\))\.?( .*)?$", re.MULTILINE)


@pytest.mark.parametrize("path", CURRENT, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_mention_in_a_document_resolves(path: Path) -> None:
    assert stale_mentions(path.read_text(encoding="utf-8"), path.parent) == []


def test_every_qualified_name_in_a_docstring_or_comment_resolves() -> None:
    folders = ("tahoe", "pyspark_delta", "benchmarks", "scripts")
    sources = {path: path.read_text(encoding="utf-8") for folder in folders for path in (ROOT / folder).rglob("*.py")}
    stale = {path.relative_to(ROOT).as_posix(): stale_names(source) for path, source in sources.items()}
    assert {path: names for path, names in stale.items() if names} == {}


@pytest.mark.parametrize(
    ("text", "stale"),
    [
        ("`tahoe.nowhere`", ["tahoe.nowhere"]),
        ("`tahoe.Table.no_method`", ["tahoe.Table.no_method"]),
        ("`Table.no_method()`", ["tahoe.Table.no_method"]),
        ("```python\nfrom tahoe.testing.table_laws import assert_laws, no_law\n```", ["tahoe.testing.table_laws.no_law"]),
        ("`tahoe.noSuchProperty`", ["tahoe.noSuchProperty"]),
        ("`log/no_module.py`", ["log/no_module.py"]),
        ("`no_such_module.py`", ["no_such_module.py"]),
        ("`tests/nothing`", ["tests/nothing"]),
        ("`tahoe/nothing/`", ["tahoe/nothing/"]),
        ("`make nothing`", ["make nothing"]),
        ("```\nmake nothing  # a comment\n```", ["make nothing"]),
        ("`tahoe nothing PATH`", ["tahoe nothing"]),
        ("`tahoe uniform nothing`", ["tahoe uniform nothing"]),
        ("`tahoe check --nothing`", ["tahoe check --nothing"]),
        ("`TAHOE_NO_SUCH_ERROR`", ["TAHOE_NO_SUCH_ERROR"]),
        ("[a page](docs/nothing.md)", ["docs/nothing.md"]),
        ("[a heading](README.md#nothing)", ["README.md#nothing"]),
        ("decided in 099", ["docs/design/099-*.md"]),
        ("docs/design/001-nothing.md", ["docs/design/001-nothing.md"]),
    ],
)
def test_a_stale_mention_is_reported(text: str, stale: list[str]) -> None:
    assert stale_mentions(text) == stale


def test_a_stale_name_in_a_docstring_is_reported() -> None:
    assert stale_names('"""See `tahoe.nowhere` and `tahoe.Table`."""') == ["tahoe.nowhere"]


def test_mentions_that_resolve_are_not_reported() -> None:
    text = """`tahoe.Table.append`, `tahoe.bloomFilterColumns`, `log/replay.py`, `spark/jvm/`, `make test`, `tahoe check PATH --deep`,
    `TAHOE_SPARK_VERSION`, `_delta_log/_sidecars`, `PROTOCOL.md`, [a heading](README.md#install), 001, docs/design/002"""
    assert stale_mentions(text) == []


@pytest.mark.parametrize(
    ("name", "page"),
    [("coming-from-delta-spark", coming_from_delta_spark.page), ("errors", error_reference.page), ("sql", sql_reference.page)],
)
def test_a_generated_page_is_up_to_date(name: str, page: Callable[[], str]) -> None:
    assert f"{page()}\n" == (ROOT / f"docs/{name}.md").read_text(encoding="utf-8"), "run `make docs`"


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in DOCUMENTS if path.is_relative_to(ROOT / "docs")}
    assert {page for page in pages if not page.startswith("design/")} == set(
        re.findall(r"([\w/-]+\.md)$", site, re.MULTILINE)
    ) - {"design/README.md"}


def test_design_pages_are_numbered_without_gaps_and_indexed_with_their_titles() -> None:
    assert [int(path.name[:3]) for path in DESIGN] == list(range(1, len(DESIGN) + 1))
    titles = [re.match(r"# (\d{3}: .+)", path.read_text(encoding="utf-8")) for path in DESIGN]
    index = re.findall(
        r"^\* \[(.+)\]\((\d{3}-[^)]+)\)", (ROOT / "docs/design/README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert index == [(title[1] if title else "", path.name) for title, path in zip(titles, DESIGN, strict=True)]


@pytest.mark.parametrize("path", DESIGN, ids=lambda path: path.name)
def test_a_design_page_states_its_status_below_the_title(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert STATUS.match(lines[2]), f"the third line must be a status, not {lines[2]!r}"


def contract_layers() -> list[list[str]]:
    """Return the layers of the import contract, each with the modules that stand side by side."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    return [[name.strip(" ()") for name in layer.split("|")] for layer in contracts[0]["layers"]]


def test_the_layers_in_the_architecture_page_are_those_of_the_import_contract() -> None:
    (chain,) = re.findall(r"^\w.* ─► .*$", ARCHITECTURE, re.MULTILINE)
    assert [[name.strip() for name in layer.split("|")] for layer in chain.split("─►")] == contract_layers()


def test_the_table_of_layers_lists_every_layer_with_its_folders() -> None:
    rows = re.findall(r"^\| (`[^|]+) \| ([^|]*)\|", ARCHITECTURE, re.MULTILINE)
    table = {name: re.findall(r"`(\w+)`", folders) for layers, folders in rows for name in re.findall(r"`(\w+)`", layers)}
    names = {name for layer in contract_layers() for name in layer} | {"testing"}
    assert table.keys() == names
    for name, folders in table.items():
        path = ROOT / "tahoe" / name
        actual = sorted(entry.name for entry in path.iterdir() if (entry / "__init__.py").exists()) if path.is_dir() else []
        assert sorted(folders) == actual, f"the folders of {name}"


def test_the_testing_page_lists_every_module_of_the_testing_package() -> None:
    rows = re.findall(r"^\| (`tahoe\.testing.*) \|$", (ROOT / "docs/testing.md").read_text(encoding="utf-8"), re.MULTILINE)
    listed = {name.rpartition(".")[2] for row in rows for name in re.findall(r"`([\w.]+)`", row)}
    assert listed == {path.stem for path in (ROOT / "tahoe/testing").glob("*.py")} - {"__init__", "extras"}
