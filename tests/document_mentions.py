"""Find mentions of modules, files, commands and pages that do not exist, in documents and docstrings."""

from __future__ import annotations

import ast
import functools
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from tahoe.cli.main import app

__all__ = ["ROOT", "stale_mentions", "stale_names"]

ROOT = Path(__file__).parents[1]
EXTERNAL = ("PROTOCOL.md", "checkpoint-protection.md", "Geospatial.md", "protocol_rfcs/")
"""Beginnings of the names of files in other repositories."""
TABLE_FOLDERS = ("metadata/", "_delta_log/", "_shallow_clones/")
"""Beginnings of the names of files and folders in tables."""
CLASSES = {
    "Table": "tahoe.Table",
    "DeltaTable": "tahoe.DeltaTable",
    "Snapshot": "tahoe.snapshot.snapshot.Snapshot",
    "Source": "tahoe.stream.source.Source",
    "LogStore": "tahoe.store.log_store.LogStore",
    "Coordinator": "tahoe.coordinator.coordinator.Coordinator",
    "CoordinatedStore": "tahoe.coordinator.coordinated_store.CoordinatedStore",
}
"""Classes that documents name without their module."""

_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def stale_mentions(text: str, folder: Path = ROOT) -> list[str]:
    """Return the mentions in a Markdown text that do not resolve, in order of their kinds.

    Args:
        folder: the folder of the document, to which its links are relative.
    """
    code = list(_code(text))
    prose = _FENCE.sub("", text)
    return [
        *(name for name in _python_names(code) if not _is_python_name(name)),
        *(path for path in _paths(code) if not _exists(path, folder)),
        *(f"make {target}" for target in _matches(r"\bmake ([a-z][a-z-]*)", code) if target not in _make_targets()),
        *(mention for span in code for mention in _stale_commands(span)),
        *(name for name in _matches(r"\b(TAHOE_[A-Z_]+)\b", code) if name not in _sources()),
        *(link for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", prose) if not _is_link(link, folder)),
        *(f"docs/design/{page}" for page in _design_pages(prose) if not list(ROOT.glob(f"docs/design/{page}"))),
    ]


def stale_names(source: str) -> list[str]:
    """Return the qualified names of Tahoe between backticks in Python source that do not resolve."""
    return [name for name in re.findall(r"`(tahoe(?:\.[A-Za-z_]\w*)+)", source) if not _is_python_name(name)]


def _code(text: str) -> Iterator[str]:
    """Yield the lines of fenced blocks and the code spans of a text."""
    for block in _FENCE.findall(text):
        yield from block.splitlines()[1:-1]
    for span in re.findall(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", _FENCE.sub("", text), re.DOTALL):
        yield " ".join(span[1].split())


def _matches(pattern: str, code: list[str]) -> Iterator[str]:
    for span in code:
        yield from re.findall(pattern, span)


def _python_names(code: list[str]) -> Iterator[str]:
    yield from _matches(r"(?<![\w./:-])(tahoe(?:\.[A-Za-z_]\w*)+)", code)
    for module, names in _matches(r"from (tahoe[\w.]*) import ([\w, ]+)", code):
        yield from (f"{module}.{name.strip()}" for name in names.split(",") if name.strip())
    for name, member in _matches(rf"(?<![\w.])({'|'.join(CLASSES)})\.([a-z_]\w*)", code):
        yield f"{CLASSES[name]}.{member}"


def _is_python_name(name: str) -> bool:
    """Whether a name can be imported or is a string in the source, such as a table property or a member of a log file."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            value: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        try:
            functools.reduce(getattr, parts[length:], value)
        except AttributeError:
            break
        return True
    return _is_string_literal(name)


@functools.cache
def _is_string_literal(name: str) -> bool:
    """Whether a string of the package contains the name; docstrings do not count."""
    for source in _package().values():
        if name not in source:
            continue
        nodes = list(ast.walk(ast.parse(source)))
        docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            if (
                isinstance(node, ast.Constant)
                and id(node) not in docstrings
                and re.search(rf"{re.escape(name)}\b", str(node.value))
            ):
                return True
    return False


@functools.cache
def _package() -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in (ROOT / "tahoe").rglob("*.py")}


def _paths(code: list[str]) -> Iterator[str]:
    file = r"(?<![\w./:~<>{}-])((?:[\w*.-]+/)*[\w*-][\w*.-]*\.(?:py|sh|toml|lock|txt|md))(?![\w/])"
    folder = r"^((?:[\w-]+/)+)$"
    inside = r"^((?:tests|tahoe|docs|scripts|benchmarks|demo)/[\w/-]*\w)$"
    for path in dict.fromkeys((*_matches(file, code), *_matches(folder, code), *_matches(inside, code))):
        if not path.startswith((*EXTERNAL, *TABLE_FOLDERS)):
            yield path


def _exists(path: str, folder: Path) -> bool:
    if "/" not in path:
        return any(
            actual for top in ("tahoe", "tests", "scripts", "benchmarks", "docs") for actual in (ROOT / top).rglob(path)
        ) or (any(ROOT.glob(path)))
    return any(actual for root in (ROOT, ROOT / "tahoe", folder) for actual in root.glob(path.rstrip("/")))


@functools.cache
def _make_targets() -> frozenset[str]:
    return frozenset(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


@functools.cache
def _sources() -> str:
    paths = [path for top in ("tahoe", "tests", "scripts") for path in (ROOT / top).rglob("*.py") if "document" not in path.name]
    return "\n".join(path.read_text(encoding="utf-8") for path in (*paths, ROOT / "Makefile"))


def _stale_commands(span: str) -> Iterator[str]:
    """Yield the subcommands and options of the `tahoe` commands in a span that the command line does not have."""
    words = span.partition("#")[0].split()
    if len(words) < 2 or words[0] != "tahoe" or not re.fullmatch(r"[a-z|-]+", words[1]):
        return
    commands = _commands()
    options = {"--help"}
    for name in words[1].split("|"):
        if name not in commands:
            yield f"tahoe {name}"
            continue
        subcommands: dict[str, Any] = getattr(commands[name], "commands", {})
        if subcommands and len(words) > 2:
            yield from (f"tahoe {name} {word}" for word in words[2].split("|") if word not in subcommands)
        for command in (commands[name], *subcommands.values()):
            options |= {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    own = words[:2] if words[1] == "run" else words  # `tahoe run` passes the options of a program on
    for option in re.findall(r"--[a-z][a-z-]*", " ".join(own)):
        if option not in options:
            yield f"{' '.join(words[:2])} {option}"


@functools.cache
def _commands() -> dict[str, Any]:
    return getattr(typer.main.get_command(app), "commands", {})


def _is_link(link: str, folder: Path) -> bool:
    name, _, anchor = link.partition("#")
    page = folder / name if name else None
    if page is None or not anchor:
        return page is None or page.exists()
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE) if page.exists() else []
    return anchor in {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _design_pages(text: str) -> Iterator[str]:
    """Yield a file pattern for each design page that a text names by its number or by its file."""
    for number, rest in re.findall(r"(?<![\w.,/-])(?:docs/)?(?:design/)?\b(0\d\d)(-[\w-]+\.md)?\b(?![.,]\d)", text):
        yield f"{number}{rest or '-*.md'}"
