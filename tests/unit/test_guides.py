"""The guides that need no Spark run as they are written, and no example of the documentation is without a test."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from scripts.follow_page import examples, follow, is_run
from tahoe import Table
from tahoe.cli.main import app, main
from tests.pages import NOT_RUN, PAGES, ROOT, TESTED_BY, WITH_SPARK, WITHOUT_SPARK


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return tmp_path


@pytest.fixture
def tahoe_here(monkeypatch: pytest.MonkeyPatch):
    """Run a command line of Tahoe in this process and return its exit code."""

    def run(line: str) -> int:
        monkeypatch.setattr(sys, "argv", shlex.split(line, comments=True))
        with pytest.raises(SystemExit) as ended:
            sys.exit(main())
        return int(ended.value.code or 0)

    return run


@pytest.mark.damages_tables
@pytest.mark.every_case
@pytest.mark.parametrize("page", WITHOUT_SPARK)
def test_every_example_of_a_page_runs_in_order(page: str, folder: Path, tahoe_here) -> None:
    assert follow(ROOT / page, folder, tahoe_here) > 0
    if page.endswith("operations.md"):
        assert Table("orders").check(deep=True) == []
        # Of five rows, one was removed with the lost file, and the row that a job appended twice is there once.
        assert len(Table("orders").to_arrow()) < 5


def blocks_without_a_test() -> list[tuple[str, str]]:
    """Return the pages and beginnings of the fenced blocks that nothing runs."""
    followed = {*WITHOUT_SPARK, *WITH_SPARK}
    missing = []
    for path in PAGES:
        page = path.relative_to(ROOT).as_posix()
        for example in examples(path):
            excused = any(page == of and example.text.startswith(beginning) for of, beginning in NOT_RUN)
            run = is_run(example) if page in followed else page in TESTED_BY
            if not run and not excused:
                missing.append((page, example.text[:60]))
    return missing


def test_every_example_is_run_or_excused_with_a_reason() -> None:
    assert blocks_without_a_test() == [], "follow the page in a test, or add the block to NOT_RUN of tests/pages.py with a reason"


def test_every_excuse_is_needed() -> None:
    blocks = {path.relative_to(ROOT).as_posix(): list(examples(path)) for path in PAGES}
    unused = [key for key in NOT_RUN if not any(example.text.startswith(key[1]) for example in blocks[key[0]])]
    assert unused == []
    for page, test in TESTED_BY.items():
        assert blocks[page], page
        assert Path(page).name.removesuffix(".md") in (ROOT / test).read_text(encoding="utf-8").replace(
            "page_of_examples", "testing"
        ), test


def test_an_example_that_nothing_runs_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    page = tmp_path / "new.md"
    page.write_text("# New\n\n```python\nimport tahoe\n```\n")
    monkeypatch.setattr("tests.unit.test_guides.PAGES", [page])
    monkeypatch.setattr("tests.unit.test_guides.ROOT", tmp_path)
    assert blocks_without_a_test() == [("new.md", "import tahoe\n")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("false", "exits with 1 instead of 0"),
        ("tahoe head nothing", "exits with 2 instead of 0"),
        ("tahoe --version  # exits with 2", "exits with 0 instead of 2"),
    ],
)
def test_a_command_with_another_exit_code_than_stated_fails(line: str, message: str, folder: Path, tahoe_here) -> None:
    (folder / "page.md").write_text(f"```sh\n{line}\n```\n")
    with pytest.raises(RuntimeError, match=message):
        follow(folder / "page.md", folder, tahoe_here)


def test_the_page_of_the_command_line_lists_every_command() -> None:
    page = (ROOT / "docs/guide/command-line.md").read_text(encoding="utf-8")
    names = [command.name or command.callback.__name__.replace("_", "-") for command in app.registered_commands]
    names += [group.name for group in app.registered_groups]
    assert len(names) > 30
    assert [name for name in names if f"| `tahoe {name}" not in page] == []
