"""Print docs/errors.md: the errors by their codes, with the messages in the source. `make docs` runs it; a test compares the page."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HEAD = """# Errors

Printed by `make docs` from the messages in the source. An error has a code (`error.code`, in brackets at the beginning of its text), a
class of `tahoe.exceptions`, and the values named here by `…`. Codes without the
prefix `TAHOE_` are those of delta-spark and Spark, for the same situation. The message names the remedy. Where the code depends on the
situation, the message is not listed here.

An uncaught error prints the lines of the program and the message, in a program and in a notebook. After `tahoe.enable(spark)` that
applies to Spark's own errors about Delta tables too, without Java stacks and plan trees. `TAHOE_TRACEBACK=1` prints everything.

| class | who can act |
|---|---|
| `InvalidRequest`, `SchemaMismatch`, `Unsupported` | the author of the call or statement |
| `InvariantViolation` | the author of the rows |
| `NotFound` | whoever knows where the table is |
| `DeltaConcurrentModificationException` and its subclasses | nobody: repeat the operation |
| `CommitStateUnknown`, `StorageFailure` | whoever operates the storage; after `CommitStateUnknown`, read the history before repeating |
| `CorruptTable`, `ForeignWriter` | whoever operates the table: `tahoe check` |
"""


@dataclass(frozen=True, order=True)
class Message:
    """One message in the source: its code, the class that is raised, and the text with `…` for values."""

    code: str
    raised: str
    text: str


def messages(folder: Path = Path("tahoe")) -> set[Message]:
    """Return the messages whose code and text are literals in the source."""
    return {actual for path in sorted(folder.rglob("*.py")) for actual in _of_module(ast.parse(path.read_text(encoding="utf-8")))}


def page() -> str:
    """Return the page."""
    by_code: dict[str, list[Message]] = defaultdict(list)
    for message in sorted(messages()):
        by_code[message.code].append(message)
    parts = [HEAD]
    for code, listed in by_code.items():
        raised = " or ".join(f"`{name}`" for name in sorted({message.raised for message in listed}))
        parts += [f"## {code}", f"{raised}", "\n".join(f"* {message.text}" for message in listed)]
    return "\n\n".join(part.strip() for part in parts)


def _of_module(tree: ast.Module) -> Iterator[Message]:
    constants = {
        node.targets[0].id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or not node.func.id[0].isupper():
            continue
        code = next((keyword.value for keyword in node.keywords if keyword.arg == "code"), None)
        codes = [code.body, code.orelse] if isinstance(code, ast.IfExp) else [code]
        names = [constants.get(each.id) if isinstance(each, ast.Name) else getattr(each, "value", None) for each in codes]
        text = _text(node.args[0]) if node.args else None
        if text is not None:
            yield from (Message(name, node.func.id, text) for name in names if isinstance(name, str))


def _text(node: ast.expr) -> str | None:
    """Return the text of a literal in one line, with `…` for each inserted value, safe in Markdown."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        text = node.value
    elif isinstance(node, ast.JoinedStr):
        text = "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
    else:
        return None
    return " ".join(text.split()).replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")


if __name__ == "__main__":
    print(page())
