"""Measurements in separate processes, so that each uses its own memory and none benefits from an earlier one."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from _ratios import record
from rich.console import Console
from rich.table import Table as Grid

__all__ = ["Measured", "answer", "by_turns", "in_turn", "show"]

Run = TypeVar("Run")


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: seconds of the work without imports, by the clock and by processors, the peak memory in MB, and its result."""

    seconds: float
    processor_seconds: float
    peak_mb: float
    found: object


def answer(work: Callable[[], object]) -> None:
    """In the measured process: do the work and print its time and memory."""
    started, processor_started = time.perf_counter(), time.process_time()
    measured = work()
    seconds, processor_seconds = time.perf_counter() - started, time.process_time() - processor_started
    print(
        json.dumps({"seconds": seconds, "processor_seconds": processor_seconds, "peak_mb": _peak_mb(), "found": measured}),
        flush=True,
    )
    os._exit(0)  # a library that aborts at the end of its process, as deltalake sometimes does, must not discard the result


def in_turn(runs: Mapping[str, Run], number: int) -> list[tuple[str, Run]]:
    """Return the runs of a round by name, in the opposite order in every second round.

    The first run after a pause waits for memory that the machine has given to others.
    """
    return list(runs.items())[:: -1 if number % 2 else 1]


def by_turns(
    script: Path, runs: Mapping[str, Sequence[str]], rounds: int, after: Callable[[], None] | None = None
) -> dict[str, list[Measured]]:
    """Each run in each round, in a new process each; the runs alternate, so that other load on the machine affects all of them.

    Args:
        runs: the script's arguments by the name of the run.
        after: cleans up after each.
    """
    measured: dict[str, list[Measured]] = {name: [] for name in runs}
    # Installed modules are compiled; so are these after the first round, even if the shell forbids bytecode.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for number in range(rounds):
        for name, arguments in in_turn(runs, number):
            done = subprocess.run(
                [sys.executable, script, *arguments], check=True, capture_output=True, text=True, env=environment
            )
            measured[name].append(Measured(**json.loads(done.stdout.splitlines()[-1])))
            if after is not None:
                after()
    return measured


def show(title: str, cases: Mapping[str, tuple[Mapping[str, list[Measured]], str]]) -> None:
    """One line a case and peer: medians, the ratio of the times with its goal, and that of the processor times, which a busy machine
    disturbs less.

    Args:
        cases: the measurements of a case, Tahoe's under the name ``Tahoe``, and the goal as text (``≥ 10``), which the slowest-to-beat
            peer decides.
    """
    grid = Grid(title=title)
    for header in ("case", "peer", "Tahoe, s", "peer, s", "peer / Tahoe", "goal", "by processor", "Tahoe, MB", "peer, MB"):
        grid.add_column(header, justify="left" if header in ("case", "peer", "goal") else "right")
    for case, (measured, goal) in cases.items():
        ours = measured["Tahoe"]
        peers = [name for name in measured if name != "Tahoe"]
        for peer in peers:
            theirs = measured[peer]
            ratio = statistics.median(b.seconds / a.seconds for a, b in zip(ours, theirs, strict=True))
            record(f"{case}, {peer}", 1 / ratio)
            by_processor = _processor(theirs) / _processor(ours)
            grid.add_row(
                case if peer == peers[0] else "",
                peer,
                f"{_median(ours):.3f}",
                f"{_median(theirs):.3f}",
                f"{ratio:.1f}",
                goal if peer == peers[0] else "",
                f"{by_processor:.1f}",
                f"{statistics.median(m.peak_mb for m in ours):.0f}",
                f"{statistics.median(m.peak_mb for m in theirs):.0f}",
            )
    Console(width=130).print(grid)


def _processor(measured: list[Measured]) -> float:
    return statistics.median(each.processor_seconds for each in measured)


def _peak_mb() -> float:
    """The most memory that was resident. (`getrusage` would answer with the parent's, where that was more.)"""
    (line,) = (each for each in Path("/proc/self/status").read_text().splitlines() if each.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def _median(measured: list[Measured]) -> float:
    return statistics.median(each.seconds for each in measured)
