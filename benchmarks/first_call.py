"""The cost of imports and of the first call in a short program, in seconds of processor time, compared with deltalake.

Goals: imports for opening a table at most 0.3 s, the first call then at most 0.25 s. Each run is a separate process, on a table of ten
commits; a warm-up run, which compiles the modules, does not count.

    python benchmarks/first_call.py [--rounds 5]
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
from _ratios import record
from rich.console import Console
from rich.table import Table as Grid

import tahoe

CLOCK = "import time; begun = time.process_time()\n"
TAHOE = CLOCK + "import tahoe; tahoe.Table\nimported = time.process_time()\ntable = tahoe.Table({path!r})\n{call}\n"
DELTALAKE = CLOCK + "import deltalake, pyarrow\nimported = time.process_time()\ntable = deltalake.DeltaTable({path!r})\n{call}\n"
# Both exit at once: a library that aborts at the end of its process (as deltalake sometimes does) must not discard the result.
END = "print(imported - begun, time.process_time() - imported, flush=True)\nimport os; os._exit(0)"
ROWS = "import pyarrow as pa; rows = pa.table({{'id': pa.arange(0, 3), 'p': pa.nulls(3, pa.string())}})\n"

CALLS = {
    "files": ("table.files()", "table.file_uris()"),
    "files, filtered": ("table.files(filter='id > 3')", "table.file_uris([('p', '=', '3')])"),
    "to_arrow, filtered": ("table.to_arrow(filter='id > 3')", "table.to_pyarrow_table(filters=[('id', '>', 3)])"),
    "append": (ROWS + "table.append(rows)", ROWS + "deltalake.write_deltalake(table, rows, mode='append')"),
    "delete": ("table.delete('id = 3')", "table.delete('id = 3')"),
    "history": ("table.history()", "table.history()"),
}
COMMANDS = {
    "tahoe detail": ["detail"],
    "tahoe history": ["history"],
    "tahoe files": ["files", "-f", "id > 3"],
    "tahoe check": ["check"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    grid = Grid(title=f"Processor seconds (medians of {rounds})")
    for header in ("first call", "Tahoe: import", "call", "goal", "deltalake: import", "call", "both / deltalake's"):
        grid.add_column(header, justify="left" if header == "first call" else "right")
    with tempfile.TemporaryDirectory() as folder:
        # Bytecode is written, even if the environment forbids it.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = str(Path(folder) / "bytecode")
        path = Path(folder) / "table"
        table = tahoe.Table.create(path, pa.schema([("id", pa.int64()), ("p", pa.string())]), partition_by=["p"])
        for number in range(10):
            table.append(pa.table({"id": range(10), "p": [str(number)] * 10}))
        for name, (ours, theirs) in CALLS.items():
            mine = python(TAHOE, ours, path, rounds, environment)
            other = python(DELTALAKE, theirs, path, rounds, environment)
            ratio = sum(mine) / sum(other)
            record(name, ratio)
            grid.add_row(name, *(f"{item:.3f}" for item in mine), "0.25", *(f"{item:.3f}" for item in other), f"{ratio:.2f}")
        for name, words in COMMANDS.items():
            grid.add_row(name, "", f"{command(words, path, rounds, environment):.3f}", "0.55", "", "", "")
    Console(width=130).print(grid)


def python(program: str, call: str, origin: Path, rounds: int, environment: dict[str, str]) -> tuple[float, float]:
    """Seconds of importing and of the call."""
    measured = []
    for _ in range(rounds + 1):
        place = origin.with_name("copy")
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(origin, place)
        text = program.format(path=str(place), call=call.replace("{{", "{").replace("}}", "}")) + END
        process = subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True, env=environment)
        measured.append([float(part) for part in process.stdout.split()[-2:]])
    return statistics.median(item for item, _ in measured[1:]), statistics.median(two for _, two in measured[1:])


def command(words: list[str], path: Path, rounds: int, environment: dict[str, str]) -> float:
    """Seconds of a whole process of the command line."""
    measured = []
    for _ in range(rounds + 1):
        before = processor_seconds_of_children()
        subprocess.run(
            [sys.executable, "-m", "tahoe", *words, str(path), "--json"], check=True, capture_output=True, env=environment
        )
        measured.append(processor_seconds_of_children() - before)
    return statistics.median(measured[1:])


def processor_seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
