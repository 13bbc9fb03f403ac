"""Run the examples of a page of the documentation as a reader would: in order, Python in one process, shell commands in bash.

The tests follow pages with `follow`; `make packages` runs this file with the Python of a new environment: `follow_page.py PAGE FOLDER`.
It needs only the standard library.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Example", "examples", "follow"]

RUN = ("python", "sh")
_BLOCK = re.compile(r"^```([\w-]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Example:
    """A fenced block of a page: its language and its text. A number counts the blocks of a page from 1."""

    number: int
    language: str
    text: str

    @property
    def first_line(self) -> str:
        """The first line, by which lists name the block."""
        return self.text.partition("\n")[0]


def examples(page: Path) -> Iterator[Example]:
    """Yield the fenced blocks of a page."""
    for number, (language, text) in enumerate(_BLOCK.findall(page.read_text(encoding="utf-8")), 1):
        yield Example(number, language, text)


def follow(page: Path, folder: Path, *, skipped: frozenset[str] = frozenset()) -> int:
    """Run the Python and shell examples of a page in order and return their number.

    Args:
        folder: the working folder of shell commands; it replaces `/tmp` in every example.
        skipped: the first lines of examples that are not run.

    Raises:
        subprocess.CalledProcessError: a shell command failed; its output is a note of the error.
    """
    names: dict[str, object] = {"__name__": "__main__"}
    chosen = [example for example in examples(page) if example.language in RUN and example.first_line not in skipped]
    for example in chosen:
        text = example.text.replace("/tmp/", f"{folder}/")
        if example.language == "sh":
            _run_in_bash(text, folder)
        else:
            exec(compile(text, f"{page.name}, example {example.number}", "exec"), names)
    return len(chosen)


def _run_in_bash(text: str, folder: Path) -> None:
    """Run commands as in a terminal whose shell stops at the first failure, with the commands of this Python's environment first."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    command = ["bash", "-euo", "pipefail", "-c", text]
    outcome = subprocess.run(command, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)
    if outcome.returncode:
        error = subprocess.CalledProcessError(outcome.returncode, text)
        error.add_note(f"{outcome.stdout}\n{outcome.stderr}")
        raise error


if __name__ == "__main__":
    print(follow(Path(sys.argv[1]), Path(sys.argv[2]), skipped=frozenset(sys.argv[3:])), "examples")
