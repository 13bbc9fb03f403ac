"""Start-up: the processor time and the peak memory of imports, commands and the first table, as ratios to a peer.

Each program runs in a process of its own, alternately with its peer, so that other load on the machine disturbs both. Times are processor
time from the start of the process, which includes the start of Python. A first round, which compiles the modules, does not count.

    python benchmarks/start_up_times.py [--rounds 7]
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from _ratios import record
from rich.console import Console
from rich.table import Table as Grid

import tahoe

# VmHWM is the peak of this program; `getrusage` would include the parent's. The process exits at once, since deltalake sometimes aborts at
# the end of its process, which must not discard the figures.
FIGURES = """
import os, sys, time
seconds = time.process_time()
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(seconds, peak, file=sys.stderr, flush=True)
os._exit(0)
"""
COMMAND = """import sys
sys.argv = ['tahoe', *{words!r}]
from tahoe.cli.main import main
try:
    main()
except SystemExit as end:
    assert not end.code, f"exit code {{end.code}}"
"""
ROWS = "import pyarrow as pa\nrows = pa.table({'id': pa.array([1, 2, 3]), 'name': pa.array(['a', 'b', 'c'])})\n"
TAHOE = (
    ROWS
    + "import tahoe\ntahoe.Table.create({new!r}, rows.schema).append(rows)\nassert tahoe.Table({new!r}).to_arrow().num_rows == 3"
)
DELTALAKE = (
    ROWS + "from deltalake import DeltaTable, write_deltalake\nDeltaTable.create({new!r}, rows.schema)\n"
    "write_deltalake({new!r}, rows, mode='append')\nassert DeltaTable({new!r}).to_pyarrow_table().num_rows == 3"
)
NOTHING, PYARROW = "pass", "import pyarrow"


@dataclass(frozen=True, slots=True)
class Case:
    """A program of Tahoe and one to compare it with."""

    name: str
    ours: str
    peer: str
    theirs: str


@dataclass(frozen=True, slots=True)
class Used:
    """The processor time in seconds and the peak memory in MB of one process."""

    seconds: float
    megabytes: float


def main() -> None:
    """Run each case and its peer alternately, and print the medians and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    grid = Grid(title=f"Processor time and peak memory (medians of {rounds})")
    for header in ("program", "peer", "Tahoe, s", "peer, s", "Tahoe / peer", "Tahoe, MB", "peer, MB", "Tahoe / peer"):
        grid.add_column(header, justify="left" if header in ("program", "peer") else "right")
    with tempfile.TemporaryDirectory() as folder:
        # Bytecode is written, even if the environment forbids it.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = str(Path(folder, "bytecode"))
        new = Path(folder, "new")
        for case in cases(Path(folder, "table"), new):
            used = [(run(case.ours, new, environment), run(case.theirs, new, environment)) for _ in range(rounds + 1)][1:]
            record(f"{case.name}, {case.peer}", statistics.median(mine.seconds / other.seconds for mine, other in used))
            grid.add_row(case.name, case.peer, *columns([pair[0] for pair in used], [pair[1] for pair in used]))
    Console(width=130).print(grid)


def cases(path: Path, new: Path) -> list[Case]:
    """Create a table and return the cases.

    Args:
        path: of the table that commands read.
        new: of the table that a program creates.
    """
    rows = pa.table({"id": range(1000), "name": [f"name {number}" for number in range(1000)]})
    tahoe.Table.create(path, rows.schema).append(rows)
    commands = [["--version"], ["--help"], ["detail", str(path)], ["head", str(path)]]
    programs = [
        ("import tahoe", "import tahoe"),
        ("import tahoe; tahoe.Table", "import tahoe; tahoe.Table"),
        *((f"tahoe {words[0]}", COMMAND.format(words=words)) for words in commands),
    ]
    peers = (("python -c pass", NOTHING), ("import pyarrow", PYARROW))
    return [
        *(Case(name, program, peer, theirs) for name, program in programs for peer, theirs in peers),
        Case("first table", filled(TAHOE, new), "deltalake", filled(DELTALAKE, new)),
    ]


def filled(program: str, new: Path) -> str:
    """Put the path of the new table into a program."""
    return program.replace("{new!r}", repr(str(new)))


def run(program: str, new: Path, environment: dict[str, str]) -> Used:
    """Run a program in a process of its own, and delete the table that it created."""
    command = [sys.executable, "-c", f"{program}\n{FIGURES}"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    shutil.rmtree(new, ignore_errors=True)
    seconds, kibibytes = done.stderr.splitlines()[-1].split()
    return Used(float(seconds), int(kibibytes) / 1024)


def columns(ours: Sequence[Used], theirs: Sequence[Used]) -> list[str]:
    """Return the medians of time and memory as texts, each with the median of the ratios of a round."""
    texts = list[str]()
    for figure, digits in (("seconds", 3), ("megabytes", 0)):
        left, right = ([getattr(used, figure) for used in side] for side in (ours, theirs))
        ratio = statistics.median(mine / other for mine, other in zip(left, right, strict=True))
        texts += [f"{statistics.median(left):.{digits}f}", f"{statistics.median(right):.{digits}f}", f"{ratio:.2f}"]
    return texts


if __name__ == "__main__":
    main()
