"""`tahoe run`: a program in whose Spark sessions Delta is enabled."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from tahoe.base.exceptions import InvalidRequest, NotFound

_BOOTSTRAP = Path(__file__).parent / "bootstrap"

Words = Annotated[list[str], typer.Argument(metavar="COMMAND...", help="The program and its arguments.", show_default=False)]


def run(words: Words) -> None:
    """Run a program with Delta enabled in its Spark sessions.

    tahoe run dbt build · tahoe run spark-submit job.py · tahoe run pyspark · tahoe run python job.py

    The program and its Python children have TAHOE_ENABLE=1, and find commands of Tahoe's environment first. The program replaces this
    process: its exit code is the exit code.
    """
    environment = environment_of(os.environ, Path(sys.executable), has_startup_file())
    program = _program(words[0], environment["PATH"])
    sys.stdout.flush()
    os.execve(program, list(words), environment)


def environment_of(environment: Mapping[str, str], python: Path, has_startup_file: bool) -> dict[str, str]:
    """Return the variables for a program with Delta enabled.

    Args:
        environment: the variables of this process.
        python: the interpreter that can import Tahoe.
        has_startup_file: whether its environment has ``tahoe_startup.pth``; otherwise a folder of ``PYTHONPATH`` takes its place.
    """
    values = {**environment, "TAHOE_ENABLE": "1"}
    values["PATH"] = os.pathsep.join([str(python.parent), environment.get("PATH", os.defpath)])
    # Of the driver only: on a cluster, the workers' Python has another path.
    values.setdefault("PYSPARK_DRIVER_PYTHON", str(python))
    if not has_startup_file:
        folders = [str(_BOOTSTRAP), environment.get("PYTHONPATH", "")]
        values["PYTHONPATH"] = os.pathsep.join(folder for folder in folders if folder)
    return values


def check_interpreter(program: Path, python: Path) -> None:
    """Raise `InvalidRequest` (`TAHOE_RUN_OTHER_PYTHON`) if a script names the Python of another environment in its first line."""
    with program.open("rb") as file:
        first = file.readline(256).decode(errors="replace")
    interpreter = Path(first[2:].split()[0]) if first.startswith("#!") and first[2:].split() else None
    if interpreter is None or not interpreter.name.startswith("python") or interpreter.parent == python.parent:
        return
    raise InvalidRequest(
        f"{program} runs with {interpreter}, and Tahoe is installed for {python}. Install tahoe-delta in that environment and use the "
        "`tahoe` of its bin folder, or install the program beside Tahoe.",
        code="TAHOE_RUN_OTHER_PYTHON",
        program=str(program),
    )


def _program(name: str, path: str) -> str:
    program = shutil.which(name, path=path)
    if program is None:
        remedy = f"Run it with Python: tahoe run python {name} …" if name.endswith(".py") else "Check the name, or give its path."
        raise NotFound(f"There is no command {name!r}. {remedy}", code="TAHOE_RUN_NO_COMMAND", program=name)
    check_interpreter(Path(program), Path(sys.executable))
    return program


def has_startup_file() -> bool:
    """Whether the environment has the file that enables Tahoe when an interpreter starts."""
    startup = sys.modules.get("tahoe_startup")
    return startup is not None and bool(startup.is_installed())
