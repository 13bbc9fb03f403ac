"""Long text on a terminal goes through a pager: `PAGER`, or less."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_DEFAULT = "less"
_LESS = "FRX"  # end at once if all fits, keep colors, leave the text on the screen


class _Collected(io.StringIO):
    """Standard output of a command that is shown when it ends."""

    def isatty(self) -> bool:
        return True


@contextmanager
def paged(is_wanted: bool) -> Iterator[None]:
    """Collect standard output, and show it when the context ends, through a pager if it is longer than the terminal.

    Without a terminal nothing is collected. An error is raised after the text before it is shown.
    """
    terminal = sys.stdout
    if not is_wanted or not terminal.isatty():
        yield
        return
    collected = _Collected()
    sys.stdout = collected
    try:
        yield
    finally:
        sys.stdout = terminal
        _show(collected.getvalue())


def _show(text: str) -> None:
    command = shlex.split(os.environ.get("PAGER", _DEFAULT))
    if text.count("\n") < shutil.get_terminal_size().lines or not command or shutil.which(command[0]) is None:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    pager = subprocess.Popen(
        command, stdin=subprocess.PIPE, text=True, encoding="utf-8", errors="replace", env={"LESS": _LESS, **os.environ}
    )
    with suppress(BrokenPipeError):  # the user left the pager before it had read all
        pager.communicate(text)
    while pager.poll() is None:
        with suppress(KeyboardInterrupt):  # Ctrl-C is for the pager
            pager.wait()
