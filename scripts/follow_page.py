"""Run the examples of a page of the documentation as a reader would: in order, Python in one process, shell commands in bash.

The tests follow pages with `follow`; `make packages` runs this file with the Python of a new environment: `follow_page.py PAGE FOLDER`.
It needs only the standard library. A line ``tahoe … # exits with 1: the reason`` must fail with that code; every other command must succeed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Example", "examples", "follow", "is_run"]

_BLOCK = re.compile(r"^```([\w-]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INSTALLATION = "pip install "
"""The beginning of the examples that are not run: the environment has the packages already."""
_COMMAND = re.compile(r"tahoe (?!run )[^|&;<>$]*")
"""A line that is one command of Tahoe and needs nothing of a shell but quotes."""
_EXIT_CODE = re.compile(r"# exits with (\d)")


@dataclass(frozen=True, slots=True)
class Example:
    """A fenced block of a page: its language and its text. The number counts the blocks of the page from 1."""

    number: int
    language: str
    text: str


def examples(page: Path) -> Iterator[Example]:
    """Yield the fenced blocks of a page."""
    for number, (language, text) in enumerate(_BLOCK.findall(page.read_text(encoding="utf-8")), 1):
        yield Example(number, language, text)


def is_run(example: Example) -> bool:
    """Return whether `follow` runs a block."""
    return example.language in ("python", "sh") and not example.text.startswith(_INSTALLATION)


def follow(page: Path, folder: Path, tahoe: Callable[[str], int] | None = None) -> int:
    """Run the Python and shell examples of a page in order and return their number.

    Args:
        folder: the working folder of shell commands; it replaces `/tmp` in every example.
        tahoe: runs a command line of Tahoe and returns its exit code, for callers that need no process for each; None uses bash.

    Raises:
        RuntimeError: a command ended with another code than the page states.
    """
    names: dict[str, object] = {"__name__": "__main__"}
    chosen = [example for example in examples(page) if is_run(example)]
    for example in chosen:
        text = example.text.replace("/tmp/", f"{folder}/")
        if example.language == "sh":
            for command in _commands(text):
                _run(command, folder, tahoe if _COMMAND.fullmatch(command) else None)
        else:
            exec(compile(text, f"{page.name}, example {example.number}", "exec"), names)
    return len(chosen)


def _commands(text: str) -> Iterator[str]:
    """Split commands: each line that is one command of Tahoe by itself, and the lines between them together."""
    between: list[str] = []
    for line in text.splitlines():
        if _COMMAND.fullmatch(line):
            if between:
                yield "\n".join(between)
            between = []
            yield line
        else:
            between.append(line)
    if between:
        yield "\n".join(between)


def _run(command: str, folder: Path, tahoe: Callable[[str], int] | None) -> None:
    stated = _EXIT_CODE.search(command)
    expected = int(stated[1]) if stated else 0
    actual, output = (tahoe(command), "") if tahoe else _run_in_bash(command, folder)
    if actual != expected:
        raise RuntimeError(f"{command}\nexits with {actual} instead of {expected}\n{output}")


def _run_in_bash(text: str, folder: Path) -> tuple[int, str]:
    """Run commands in a shell that stops at the first failure, with the commands of this Python's environment first on its path."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    command = ["bash", "-euo", "pipefail", "-c", text]
    outcome = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return outcome.returncode, outcome.stdout


if __name__ == "__main__":
    print(follow(Path(sys.argv[1]), Path(sys.argv[2])), "examples")
