"""Run the benchmarks and compare their ratios with the accepted ones in `benchmarks/ratios.json`.

    python scripts/benchmark_ratios.py full      every benchmark at its default size, without those that need JARs (`make bench`)
    python scripts/benchmark_ratios.py check     the cheapest ones at a small size (`make bench-check`, a part of `.ci/run`)
    python scripts/benchmark_ratios.py accept    the ratios of the last run become the accepted ones (`make bench-accept`)

A ratio is the time of Tahoe divided by the time of its peer in the same run, so it depends little on the machine: less is better. A run
fails if a benchmark fails, if a ratio is above the accepted one times its tolerance, if an accepted case is not measured, and if a measured
case is not accepted. A command with a ratio above its limit runs up to twice more, as another program may have disturbed it; the least ratio
of each case counts.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from signal import SIGABRT

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "benchmarks"
ACCEPTED = FOLDER / "ratios.json"
HISTORY = FOLDER / "history.jsonl"
MEASURED = ROOT / "build" / "ratios.json"
NEED_JARS = frozenset({"s3_scan", "spark_against_delta_spark"})
"""The benchmarks that `make bench-jars` runs, beside engines of the JVM; their ratios are not compared with accepted ones."""
REPEATS = 2
TOLERANCES = {"full": 1.5, "check": 2.0}
"""The tolerance of a new case. Small sizes vary more."""

Ratios = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Accepted:
    """The accepted ratio of a case and the factor that a later ratio may reach."""

    ratio: float
    tolerance: float

    @property
    def limit(self) -> float:
        return self.ratio * self.tolerance


@dataclass(frozen=True, slots=True)
class Run:
    """The ratios of one command by case, and its exit code."""

    ratios: Ratios
    exit_code: int


def main() -> int:
    """Run, or accept the last run; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("work", choices=("full", "check", "accept"))
    parser.add_argument("--only", default="", help="a part of the names of the benchmarks to run")
    arguments = parser.parse_args()
    if arguments.work == "accept":
        accept()
        return 0
    return compare(arguments.work, arguments.only)


def compare(suite: str, only: str) -> int:
    """Run the commands of a suite, write their ratios to `build/ratios.json`, and print each regression; return the exit code."""
    accepted = read_accepted(ACCEPTED.read_text())[suite]
    commands = [command for command in commands_of(suite, accepted) if only in command]
    measured, problems = dict[str, Ratios](), list[str]()
    MEASURED.parent.mkdir(exist_ok=True)
    for command in commands:
        limits = accepted.get(command, {})
        run = repeated(command, limits, REPEATS if suite == "check" else 0)
        measured[command] = run.ratios
        problems += [f"{command}: {problem}" for problem in differences(limits, run)]
        MEASURED.write_text(
            json.dumps({"suite": suite, "ratios": measured}, indent=1)
        )  # an interrupted run leaves what it measured
    count = sum(map(len, measured.values()))
    print(f"\n{count} ratios of {len(commands)} commands in {MEASURED}; {len(problems)} problems", flush=True)
    for problem in problems:
        print(f"  {problem}")
    return 1 if problems else 0


def commands_of(suite: str, accepted: Mapping[str, object]) -> list[str]:
    """Return the commands of a suite: of `full` all scripts that need no JARs, of `check` those that the file of accepted ratios lists."""
    scripts = {path.stem for path in FOLDER.glob("[a-z]*.py")}
    return sorted(scripts - NEED_JARS) if suite == "full" else list(accepted)


def repeated(command: str, limits: Mapping[str, Accepted], repeats: int) -> Run:
    """Run a command, again while a ratio is above its limit; return the least ratio of each case."""
    run = execute(command)
    for _ in range(repeats):
        if not any(case in run.ratios and run.ratios[case] > limit.limit for case, limit in limits.items()):
            break
        again = execute(command)
        least = {case: min(ratio, again.ratios.get(case, ratio)) for case, ratio in run.ratios.items()}
        run = Run(least, again.exit_code)
    return run


def execute(command: str) -> Run:
    """Run a benchmark in a process of its own and read the ratios that it recorded."""
    print(f"\n== {command}", flush=True)
    script, *arguments = shlex.split(command)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ratios.jsonl"
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment |= {"TAHOE_BENCHMARK_RATIOS": str(file), "PYTHONPATH": f"{ROOT}{os.pathsep}{FOLDER}"}
        begun = time.perf_counter()
        done = subprocess.run([sys.executable, FOLDER / f"{script}.py", *arguments], env=environment, cwd=ROOT)
        print(f"-- exit code {done.returncode}, {time.perf_counter() - begun:.0f} s", flush=True)
        lines = file.read_text().splitlines() if file.exists() else []
    return Run(recorded(lines), done.returncode)


def recorded(lines: Sequence[str]) -> dict[str, float]:
    """Return the ratio of each case; a case that is recorded twice is an error in the benchmark."""
    ratios = dict[str, float]()
    for line in lines:
        values = json.loads(line)
        if values["case"] in ratios:
            raise ValueError(
                f"{values['script']}.py records two ratios for {values['case']!r}: give each case a name of its own."
            )
        ratios[values["case"]] = values["ratio"]
    return ratios


def differences(accepted: Mapping[str, Accepted], run: Run) -> list[str]:
    """Return one sentence for each difference between a run and the accepted ratios."""
    # deltalake sometimes aborts at the end of its process. Cases that a benchmark did not reach are differences anyway.
    ends_well = run.exit_code == 0 or (run.exit_code == -SIGABRT and bool(run.ratios))
    problems = [] if ends_well else [f"exit code {run.exit_code}"]
    for case, limit in accepted.items():
        if case not in run.ratios:
            problems.append(f"{case} was not measured")
        elif run.ratios[case] > limit.limit:
            problems.append(f"{case} is {run.ratios[case]:.3f}, more than {limit.ratio:.3f} × {limit.tolerance}")
    problems += [f"{case} is not accepted: see `make bench-accept`" for case in run.ratios if case not in accepted]
    return problems


def read_accepted(text: str) -> dict[str, dict[str, dict[str, Accepted]]]:
    """Return the accepted ratios by suite, command and case."""
    return {
        suite: {command: {case: Accepted(*pair) for case, pair in cases.items()} for command, cases in commands.items()}
        for suite, commands in json.loads(text).items()
    }


def updated(accepted: Mapping[str, Accepted], ratios: Ratios, tolerance: float) -> dict[str, list[float]]:
    """Return the new pairs of ratio and tolerance of a command; a known case keeps its tolerance."""
    return {case: [ratio, accepted[case].tolerance if case in accepted else tolerance] for case, ratio in ratios.items()}


def accept() -> None:
    """Write the ratios of the last run to `benchmarks/ratios.json` and add them to `benchmarks/history.jsonl`."""
    last = json.loads(MEASURED.read_text())
    suite, text = last["suite"], ACCEPTED.read_text()
    known, changed = read_accepted(text)[suite], json.loads(text)
    for command, ratios in last["ratios"].items():
        changed[suite][command] = updated(known.get(command, {}), ratios, TOLERANCES[suite])
    lines = json.dumps(changed, indent=1, ensure_ascii=False)
    ACCEPTED.write_text(re.sub(r"\[\s+([\d.]+),\s+([\d.]+)\s+\]", r"[\1, \2]", lines) + "\n")  # a case on one line
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    entry = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "commit": commit.stdout.strip(), **last}
    with open(HISTORY, "a", encoding="utf-8") as file:
        file.write(json.dumps(entry, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    sys.exit(main())
