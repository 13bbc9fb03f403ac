"""check_house.py: what a newcomer relies on when he looks for a room, held by `make lint`.

* a folder of `tahoe` holds at most 20 modules, a file at most 600 lines, a function at most 60;
* no circle of imports, between modules or between folders; imports that only type checkers see count too;
* a file's name stands in two folders only where `MIRRORS` says why;
* the test of `tahoe/<room>/<module>.py` is `tests/unit/<room>/test_<module>.py`, but for what `tested_elsewhere.py` lists with its reason.
  The modules of `tahoe.spark` are tested with a session, in `tests/spark`.

Prints one line for each fault, and fails where there is one.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from tested_elsewhere import TESTED_ELSEWHERE

MODULES_IN_A_FOLDER = 20
LINES_OF_A_FILE = 600
LINES_OF_A_FUNCTION = 60

_TWO_SIDES = "one command: in the core, and on Spark"
_SHELL = "one command: from a shell, and what it tells"

# Names that stand in more than one folder, each with the reason.
MIRRORS: Mapping[str, str] = {
    "assignments": _TWO_SIDES,
    "conditions": _TWO_SIDES,
    "clone": _TWO_SIDES,
    "convert": _TWO_SIDES,
    "create": _TWO_SIDES,
    "delete": _TWO_SIDES,
    "detail": _SHELL,
    "enforce": _TWO_SIDES,
    "history": _SHELL,
    "insert": _TWO_SIDES,
    "match": _TWO_SIDES,
    "merge": _TWO_SIDES,
    "row_changes": _TWO_SIDES,
    "row_ids": _TWO_SIDES,
    "update": _TWO_SIDES,
    "upkeep": "what keeps a table in order: on Spark, and from a shell",
    "writer": _TWO_SIDES,
}


def main() -> int:
    """Print the faults of the package below the working directory; the number of them."""
    modules = {_dotted(path): path for path in sorted(Path("tahoe").rglob("*.py"))}
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in modules.items()}
    imports = {name: _imports(tree, modules) - {name} for name, tree in trees.items()}
    faults = [
        *_folders(modules.values()),
        *(fault for name, path in modules.items() for fault in _lengths(path, trees[name])),
        *_names(modules.values()),
        *_tests(modules.values(), TESTED_ELSEWHERE),
        *_circles("modules", imports),
        *_circles("folders", _between_folders(imports, modules)),
    ]
    print("\n".join(faults) or f"{len(modules)} modules: folders, lengths, names and imports are as they should be")
    return len(faults)


def _dotted(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(tree: ast.Module, modules: Mapping[str, Path]) -> set[str]:
    """The modules of the package that a module imports, wherever in it the import stands."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names} & modules.keys()
            found |= names or ({node.module} & modules.keys())
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & modules.keys()
    return found


def _between_folders(imports: Mapping[str, set[str]], modules: Mapping[str, Path]) -> dict[str, set[str]]:
    """Which folder imports from which; a folder and those inside it count as one another's only where they stand apart."""
    edges: dict[str, set[str]] = defaultdict(set)
    for name, targets in imports.items():
        here = str(modules[name].parent)
        for target in targets:
            there = str(modules[target].parent)
            if there != here and "tahoe" not in (here, there):
                edges[here].add(there)
    return edges


def _folders(paths: Collection[Path]) -> Iterator[str]:
    counts: dict[Path, int] = defaultdict(int)
    for path in paths:
        counts[path.parent] += path.name != "__init__.py"
    for folder, count in counts.items():
        if count > MODULES_IN_A_FOLDER:
            yield f"{folder}: {count} modules, {MODULES_IN_A_FOLDER} are allowed"


def _lengths(path: Path, tree: ast.Module) -> Iterator[str]:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    if lines > LINES_OF_A_FILE:
        yield f"{path}: {lines} lines, {LINES_OF_A_FILE} are allowed"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > LINES_OF_A_FUNCTION:
                yield f"{path}:{node.lineno}: {node.name} has {length} lines, {LINES_OF_A_FUNCTION} are allowed"


def _names(paths: Collection[Path]) -> Iterator[str]:
    homes: dict[str, list[Path]] = defaultdict(list)
    for path in paths:
        if path.name not in ("__init__.py", "__main__.py"):
            homes[path.stem].append(path)
    for name, places in homes.items():
        if len(places) > 1 and name not in MIRRORS:
            yield f"{name}.py stands in {', '.join(str(place.parent) for place in places)}"
    for name in MIRRORS.keys() - {name for name, places in homes.items() if len(places) > 1}:
        yield f"{name}.py stands in one folder only: it needs no line in MIRRORS"


def _tests(paths: Collection[Path], elsewhere: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Modules without a test of their name that no list excuses, and lines of the list that excuse nothing."""
    listed: dict[str, str] = {}
    for modules in elsewhere.values():
        yield from (f"tahoe/{name}.py is listed twice in tested_elsewhere.py" for name in modules.keys() & listed.keys())
        listed |= modules
    tested = {
        path.relative_to("tahoe").with_suffix("").as_posix(): Path(
            "tests/unit", path.relative_to("tahoe").parent, f"test_{path.name}"
        )
        for path in paths
        if path.name not in ("__init__.py", "__main__.py") and path.parts[1] != "spark"
    }
    for name, test in tested.items():
        if not test.exists() and name not in listed:
            yield f"tahoe/{name}.py has no {test}: write it, or say in scripts/tested_elsewhere.py why not"
        elif test.exists() and name in listed:
            yield f"tahoe/{name}.py has {test}: it needs no line in scripts/tested_elsewhere.py"
    for name, test in listed.items():
        if name not in tested:
            yield f"scripts/tested_elsewhere.py lists tahoe/{name}.py, which is not there"
        elif not Path(test).exists():
            yield f"scripts/tested_elsewhere.py names {test} for tahoe/{name}.py, which is not there"


def _circles(what: str, edges: Mapping[str, set[str]]) -> Iterator[str]:
    """One line for each group that can reach itself (Tarjan's strongly connected components)."""
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = lowest[node] = len(index)
        stack.append(node)
        for target in sorted(edges.get(node, ())):
            if target not in index:
                visit(target)
                lowest[node] = min(lowest[node], lowest[target])
            elif target in stack:
                lowest[node] = min(lowest[node], index[target])
        if lowest[node] == index[node]:
            at = stack.index(node)
            groups.append(stack[at:])
            del stack[at:]

    for node in sorted(edges):
        if node not in index:
            visit(node)
    for group in groups:
        if len(group) > 1:
            yield f"a circle of {what}: {', '.join(sorted(group))}"


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
