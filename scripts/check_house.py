"""Check the structure of the package: sizes, import cycles, file names, tests and prose. Run by `make lint`.

* a folder of `tahoe` has at most 20 modules, a file at most 600 lines, a function at most 60;
* no import cycle between modules or between folders; imports under `TYPE_CHECKING` count too;
* a file name occurs in two folders only if `MIRRORS` gives a reason;
* the test of `tahoe/<folder>/<module>.py` is `tests/unit/<folder>/test_<module>.py`, unless `tested_elsewhere.py` lists another test with a
  reason. The modules of `tahoe.spark` are tested with a session, in `tests/spark`;
* the parameters and fields in the section "Args" of a docstring exist;
* the words of `WORD_GOALS` stay rare in the documents, and in the docstrings and comments of each folder of `tahoe`.

Prints one line for each violation, and fails if there is any.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from code_metrics import WORD_GOALS, count_words, prose_of_module
from tested_elsewhere import TESTED_ELSEWHERE

MODULES_IN_A_FOLDER = 20
LINES_OF_A_FILE = 600
LINES_OF_A_FUNCTION = 60
WORDS_OF_A_FOLDER = 5_000
"""Folders with fewer words may use each rare word as often as a folder of this size."""

_TWO_SIDES = "the same command in the core and on Spark"

# File names that occur in more than one folder, each with the reason.
MIRRORS: Mapping[str, str] = {
    "assignments": _TWO_SIDES,
    "cache": "the public name of a module of base",
    "conditions": _TWO_SIDES,
    "clone": _TWO_SIDES,
    "convert": _TWO_SIDES,
    "create": _TWO_SIDES,
    "delete": _TWO_SIDES,
    "enforce": _TWO_SIDES,
    "exceptions": "the public name of a module of base",
    "insert": _TWO_SIDES,
    "match": _TWO_SIDES,
    "merge": _TWO_SIDES,
    "row_changes": _TWO_SIDES,
    "update": _TWO_SIDES,
    "upkeep": "maintenance commands: on Spark, and from a shell",
    "writer": _TWO_SIDES,
}


def main() -> int:
    """Print the violations in the package below the working directory and return their number."""
    modules = {_dotted(path): path for path in sorted(Path("tahoe").rglob("*.py"))}
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in modules.items()}
    imports = {name: _imports(tree, modules) - {name} for name, tree in trees.items()}
    violations = [
        *_folders(modules.values()),
        *(violation for name, path in modules.items() for violation in _lengths(path, trees[name])),
        *(violation for name, path in modules.items() for violation in _described_parameters(path, trees[name])),
        *_names(modules.values()),
        *_tests(modules.values(), TESTED_ELSEWHERE),
        *_cycles("modules", imports),
        *_cycles("folders", _between_folders(imports, modules)),
        *_words(_prose(modules, trees)),
    ]
    print("\n".join(violations) or f"{len(modules)} modules: no violation of sizes, names, tests, imports and prose")
    return len(violations)


def _dotted(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(tree: ast.Module, modules: Mapping[str, Path]) -> set[str]:
    """Return the modules of the package that a module imports, at its top or inside functions."""
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names} & modules.keys()
            imported |= names or ({node.module} & modules.keys())
        elif isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names} & modules.keys()
    return imported


def _between_folders(imports: Mapping[str, set[str]], modules: Mapping[str, Path]) -> dict[str, set[str]]:
    """Map each folder to the folders from which its modules import, other than itself."""
    edges: dict[str, set[str]] = defaultdict(set)
    for name, targets in imports.items():
        here = str(modules[name].parent)
        for target in targets:
            there = str(modules[target].parent)
            if there != here:
                edges[here].add(there)
    return edges


def _folders(paths: Collection[Path]) -> Iterator[str]:
    counts: dict[Path, int] = defaultdict(int)
    for path in paths:
        counts[path.parent] += path.name != "__init__.py"
    for folder, count in counts.items():
        if count > MODULES_IN_A_FOLDER:
            yield f"{folder}: {count} modules, at most {MODULES_IN_A_FOLDER} are allowed"


def _lengths(path: Path, tree: ast.Module) -> Iterator[str]:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    if lines > LINES_OF_A_FILE:
        yield f"{path}: {lines} lines, at most {LINES_OF_A_FILE} are allowed"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > LINES_OF_A_FUNCTION:
                yield f"{path}:{node.lineno}: {node.name} has {length} lines, at most {LINES_OF_A_FUNCTION} are allowed"


def _described_parameters(path: Path, tree: ast.Module) -> Iterator[str]:
    """Yield the names that docstrings describe and that are no parameters of the function, and no fields or parameters of the class."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = _parameters(node)
        elif isinstance(node, ast.ClassDef):
            fields = {
                item.target.id for item in node.body if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
            }
            makers = [item for item in node.body if isinstance(item, ast.FunctionDef) and item.name in ("__init__", "__new__")]
            names = fields.union(*map(_parameters, makers))
        else:
            continue
        section = re.search(r"^Args:\n((?: {4}.*\n?|\n)+)", ast.get_docstring(node) or "", re.MULTILINE)
        described = re.findall(r"^ {4}([\w*]+(?:, [\w*]+)*):", section[1], re.MULTILINE) if section else []
        for name in (name.strip("*") for group in described for name in group.split(", ")):
            # A class with neither inherits its parameters.
            if name not in names and (names or not isinstance(node, ast.ClassDef)):
                yield f"{path}:{node.lineno}: the docstring of {node.name} describes '{name}', which does not exist"


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    arguments = function.args
    rest = [argument for argument in (arguments.vararg, arguments.kwarg) if argument]
    return {argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *rest)}


def _names(paths: Collection[Path]) -> Iterator[str]:
    files_by_name: dict[str, list[Path]] = defaultdict(list)
    for path in paths:
        if path.name not in ("__init__.py", "__main__.py"):
            files_by_name[path.stem].append(path)
    for name, files in files_by_name.items():
        if len(files) > 1 and name not in MIRRORS:
            yield f"{name}.py occurs in {', '.join(str(file.parent) for file in files)}"
    for name in MIRRORS.keys() - {name for name, files in files_by_name.items() if len(files) > 1}:
        yield f"{name}.py occurs in one folder only: delete its line in MIRRORS"


def _tests(paths: Collection[Path], elsewhere: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield the modules without a test of their name and without a list entry, and the stale list entries."""
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
            yield f"tahoe/{name}.py has no {test}: write it, or list the covering test in scripts/tested_elsewhere.py"
        elif test.exists() and name in listed:
            yield f"tahoe/{name}.py has {test}: delete its line in scripts/tested_elsewhere.py"
    for name, test in listed.items():
        if name not in tested:
            yield f"scripts/tested_elsewhere.py lists tahoe/{name}.py, which does not exist"
        elif not Path(test).exists():
            yield f"scripts/tested_elsewhere.py names {test} for tahoe/{name}.py, which does not exist"


def _cycles(kind: str, edges: Mapping[str, set[str]]) -> Iterator[str]:
    """Yield one line for each import cycle (Tarjan's strongly connected components)."""
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
            yield f"import cycle of {kind}: {', '.join(sorted(group))}"


def _prose(modules: Mapping[str, Path], trees: Mapping[str, ast.Module]) -> dict[str, list[str]]:
    """Map each folder with Python code to its docstrings and comments, and ``documents`` to the pages."""
    pages = [*Path().glob("*.md"), *Path("docs").rglob("*.md")]
    prose = defaultdict(list, documents=[page.read_text(encoding="utf-8") for page in pages])
    for name, path in modules.items():
        folder = "/".join(path.parts[:2]) if len(path.parts) > 2 else "tahoe"
        prose[folder] += prose_of_module(path.read_text(encoding="utf-8"), trees[name])
    for folder in ("tests", "benchmarks", "scripts", "demo"):
        for path in sorted(Path(folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            prose["/".join(path.parent.parts[:2])] += prose_of_module(text, ast.parse(text))
    return prose


def _words(prose: Mapping[str, Collection[str]]) -> Iterator[str]:
    """Yield one line for each word that is too frequent in a folder or in the documents."""
    for folder, texts in prose.items():
        words = count_words(texts)
        for word, goal in WORD_GOALS.items():
            allowed = goal * max(words.total(), WORDS_OF_A_FOLDER) / 10_000
            if words[word] > allowed:
                yield f"{folder}: {words[word]} times {word!r} in docstrings, comments or pages, at most {allowed:.0f} are allowed"


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
