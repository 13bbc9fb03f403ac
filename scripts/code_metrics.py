"""code_metrics.py [REVISION...]: the metrics of the code review, with their goals, of the working tree or of git revisions.

With two revisions, the script prints the metrics before and after. Goals that a tree misses are marked with ``*``. ``--check`` fails where
the last tree misses a goal.
"""

from __future__ import annotations

import argparse
import ast
import io
import keyword
import re
import statistics
import subprocess
import sys
import tarfile
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

Sources = Mapping[str, str]

MIN_SHARED_LINES = 6
MIN_SHAPE_LENGTH = 8
"""The average number of characters of a line's shape below which the lines are mostly punctuation."""

MOST_PLACES = 8
"""A sequence of lines that occurs in more places is an idiom, not a duplicate."""

WORD_GOALS = {"what": 20.0, "tell": 5.0, "told": 5.0, "hold": 5.0, "held": 5.0, "anew": 0.0}
LOCALS = ("one", "found", "told", "given", "kept", "wanted", "held")


@dataclass(frozen=True, slots=True)
class Metric:
    """One line of the output.

    Args:
        goal: the greatest value, or the smallest one when `at_least`; None when the review sets no goal.
    """

    name: str
    value: float
    goal: float | None = None
    at_least: bool = False

    @property
    def is_missed(self) -> bool:
        """Whether the value is on the wrong side of the goal."""
        if self.goal is None:
            return False
        return self.value < self.goal if self.at_least else self.value > self.goal


def main() -> int:
    """Print the table; 1 if ``--check`` is given and the last tree misses a goal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revisions", nargs="*", help="git revisions; the working tree when none is given")
    parser.add_argument("--check", action="store_true", help="fail when a goal is missed")
    arguments = parser.parse_args()
    trees = {revision: _of_revision(revision) for revision in arguments.revisions} or {"working tree": _of_working_tree()}
    columns = [metrics_of(sources) for sources in trees.values()]
    print(f"{'':58}" + "".join(f"{title[:14]:>16}" for title in trees) + f"{'goal':>12}")
    for row in zip(*columns, strict=True):
        cells = "".join(f"{_number(metric.value) + ('*' if metric.is_missed else ' '):>16}" for metric in row)
        goal = "" if row[0].goal is None else ("≥ " if row[0].at_least else "≤ ") + _number(row[0].goal)
        print(f"{row[0].name:58}{cells}{goal:>12}")
    return int(arguments.check and any(metric.is_missed for metric in columns[-1]))


def metrics_of(sources: Sources) -> list[Metric]:
    """All metrics of one tree, given the text of each file by its path."""
    code = {path: text for path, text in sources.items() if path.startswith("tahoe/")}
    trees = {path: ast.parse(text) for path, text in code.items()}
    lines = _line_count(code)
    lengths, parameters, documented = _functions(trees)
    tests = _line_count({path: text for path, text in sources.items() if path.startswith("tests/") and path.endswith(".py")})
    imports = sum(_import_lines(tree) for tree in trees.values())
    any_names = sum(_any_count(tree) for tree in trees.values())
    per_file = [text.count("\n") for text in code.values()]
    pairs, with_statements = duplicate_pairs(code)
    return [
        Metric("modules", len(code)),
        Metric("source lines", lines, 82_000),
        Metric("test lines for each source line", tests / lines, 0.9, at_least=True),
        Metric("lines of a file, median", statistics.median(per_file)),
        Metric("lines of a file, maximum", max(per_file), 600),
        Metric("lines of a function, median", statistics.median(lengths), 7),
        Metric("lines of a function, maximum", max(lengths), 60),
        Metric("functions with 6 parameters or more", sum(count >= 6 for count in parameters), 40),
        Metric("public names with a docstring, %", 100 * documented, 100, at_least=True),
        Metric("Any for each 1,000 lines", 1000 * any_names / lines, 8),
        Metric("Tahoe imports inside functions", sum(_inner_imports(tree) for tree in trees.values()), 40),
        Metric("lines of imports and __all__, %", 100 * imports / lines, 7),
        Metric("modules under 100 lines with one importer beside them", len(_fragments(code, trees)), 10),
        Metric("pairs of modules that share 6 lines of one shape", len(pairs), 120),
        Metric("of these, pairs that share statements, not only declarations", len(with_statements)),
        *_words(sources, trees),
        *(Metric(f"local variables named {name}", count) for name, count in _locals(trees).items()),
    ]


def _of_working_tree() -> Sources:
    names = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True).stdout.splitlines()
    return {
        name: Path(name).read_text(encoding="utf-8") for name in names if name.endswith((".py", ".md")) and Path(name).exists()
    }


def _of_revision(revision: str) -> Sources:
    archive = subprocess.run(["git", "archive", revision], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        members = [member for member in files if member.isfile() and member.name.endswith((".py", ".md"))]
        return {member.name: (files.extractfile(member) or io.BytesIO()).read().decode() for member in members}


def _line_count(sources: Sources) -> int:
    return sum(text.count("\n") for text in sources.values())


def _functions(trees: Mapping[str, ast.Module]) -> tuple[list[int], list[int], float]:
    """The lengths of all functions, their numbers of parameters without self and cls, and the documented share of public names."""
    lengths, parameters, documented = [], [], []
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                lengths.append((node.end_lineno or node.lineno) - node.lineno + 1)
                parameters.append(len(names) - (names[:1] in (["self"], ["cls"])))
        documented += [bool(ast.get_docstring(node)) for node in _public(tree.body)]
    return lengths, parameters, sum(documented) / len(documented)


def _public(body: list[ast.stmt]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            if any(isinstance(decorator, ast.Name) and decorator.id == "overload" for decorator in node.decorator_list):
                continue  # the implementation has the docstring
            yield node
            if isinstance(node, ast.ClassDef):
                yield from _public(node.body)


def _any_count(tree: ast.Module) -> int:
    return sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(tree))


def _inner_imports(tree: ast.Module) -> int:
    """Imports of Tahoe's modules in bodies of functions, which hide a dependency from readers of the module's first lines."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inner = {id(node): node for function in functions for node in ast.walk(function) if isinstance(node, ast.ImportFrom)}
    return sum((node.module or "").split(".")[0] == "tahoe" for node in inner.values())


def _import_lines(tree: ast.Module) -> int:
    exports = [node for node in tree.body if isinstance(node, ast.Assign) and _targets(node) == ["__all__"]]
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in (*imports, *exports))


def _targets(node: ast.Assign) -> list[str]:
    return [target.id for target in node.targets if isinstance(target, ast.Name)]


def _fragments(code: Sources, trees: Mapping[str, ast.Module]) -> list[str]:
    """Small modules that only one module of the same folder imports: parts of that module that a size limit moved out."""
    importers: dict[str, set[str]] = defaultdict(set)
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for name in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)):
                    importers[name.replace(".", "/") + ".py"].add(path)
    small = [path for path, text in code.items() if text.count("\n") < 100 and not path.endswith("__init__.py")]
    return [path for path in small if len(importers[path]) == 1 and Path(next(iter(importers[path]))).parent == Path(path).parent]


def duplicate_pairs(code: Sources) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """Pairs of modules with `MIN_SHARED_LINES` lines in a row that differ in names, strings and numbers at most.

    A module that repeats itself is a pair with itself. Imports, comments and blank lines do not count. The second set has those pairs whose
    shared lines contain a statement: the others share lists of imported names, signatures, fields of classes, or constants alone.
    """
    places: dict[tuple[str, ...], list[tuple[str, int, bool]]] = defaultdict(list)
    for path, text in code.items():
        shapes, declared = _shapes(text), _declared_lines(ast.parse(text))
        for start in range(len(shapes) - MIN_SHARED_LINES + 1):
            window = shapes[start : start + MIN_SHARED_LINES]
            has_statement = any(number not in declared for number, _ in window)
            places[tuple(shape for _, shape in window)].append((path, start, has_statement))
    pairs: dict[tuple[str, str], bool] = defaultdict(bool)
    for window, here in places.items():
        if 1 < len(here) <= MOST_PLACES and sum(map(len, window)) > MIN_SHAPE_LENGTH * MIN_SHARED_LINES:
            for (path, start, first), (other, begin, second) in combinations(here, 2):
                if other != path or abs(begin - start) >= MIN_SHARED_LINES:
                    pairs[min(path, other), max(path, other)] |= first and second
    return set(pairs), {pair for pair, has_statement in pairs.items() if has_statement}


def _declared_lines(tree: ast.Module) -> set[int]:
    """The lines of imports, of signatures with their decorators, of the fields of classes, and of a module's constants."""
    spans: list[tuple[int, int]] = []
    fields = [node for owner in ast.walk(tree) if isinstance(owner, ast.Module | ast.ClassDef) for node in owner.body]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            spans += [(node.lineno, node.body[0].lineno - 1)]
            spans += [(decorator.lineno, decorator.end_lineno or decorator.lineno) for decorator in node.decorator_list]
        elif isinstance(node, ast.Import | ast.ImportFrom):
            spans.append((node.lineno, node.end_lineno or node.lineno))
    spans += [(node.lineno, node.end_lineno or node.lineno) for node in fields if isinstance(node, ast.Assign | ast.AnnAssign)]
    return {line for first, last in spans for line in range(first, last + 1)}


def _shapes(text: str) -> list[tuple[int, str]]:
    """The lines of a module, by number, with every name, string and number replaced by a letter."""
    lines: dict[int, list[str]] = defaultdict(list)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.OP, tokenize.NAME, tokenize.NUMBER, tokenize.STRING):
            is_word = token.type == tokenize.NAME and token.string not in _KEYWORDS
            lines[token.start[0]].append(
                "n" if is_word else "s" if token.type in (tokenize.STRING, tokenize.NUMBER) else token.string
            )
    shapes = [(number, " ".join(tokens)) for number, tokens in sorted(lines.items())]
    return [(number, shape) for number, shape in shapes if len(shape) > 3 and not shape.startswith(("from ", "import ", "s"))]


_KEYWORDS = frozenset(keyword.kwlist)


def _words(sources: Sources, trees: Mapping[str, ast.Module]) -> Iterator[Metric]:
    """Frequencies of words in comments, docstrings and pages, for each 10,000 words."""
    prose = [text for path, text in sources.items() if path.endswith(".md")]
    prose += [text for path, tree in trees.items() for text in prose_of_module(sources[path], tree)]
    words = count_words(prose)
    for word, goal in WORD_GOALS.items():
        yield Metric(f'"{word}" for each 10,000 words', 10_000 * words[word] / words.total(), goal)


def prose_of_module(source: str, tree: ast.Module) -> Iterator[str]:
    """Yield the docstrings and comments of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    yield from (token.string for token in tokens if token.type == tokenize.COMMENT)


def count_words(texts: Iterable[str]) -> Counter[str]:
    """Count the words of texts, in lower case."""
    return Counter(word.lower() for text in texts for word in re.findall(r"[A-Za-z']+", text))


def _locals(trees: Mapping[str, ast.Module]) -> dict[str, int]:
    names = Counter(
        node.id
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )
    return {name: names[name] for name in LOCALS}


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


if __name__ == "__main__":
    sys.exit(main())
