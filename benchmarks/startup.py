"""The cost of `tahoe_startup.pth`, which each start of Python runs, compared with a start without it (docs/design/038)."""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _ratios import record

_ROOT = Path(__file__).parents[1]


def main() -> None:
    """Start Python with and without the file, alternately, and print the medians and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100)
    rounds = parser.parse_args().rounds
    seconds: dict[str, list[float]] = {"without": [], "with": []}
    with tempfile.TemporaryDirectory() as folder:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment |= {"PYTHONPYCACHEPREFIX": folder, "PYTHONPATH": str(_ROOT)}
        for _ in range(rounds + 1):
            seconds["without"].append(_start("pass", environment))
            seconds["with"].append(_start((_ROOT / "tahoe_startup.pth").read_text(), environment))
    without, with_file = (statistics.median(values[1:]) for values in seconds.values())
    record("start of Python", with_file / without)
    added = 1000 * (with_file - without)
    print(f"start of Python: {1000 * without:.1f} ms; with tahoe_startup.pth {with_file / without:.2f} of it ({added:+.2f} ms)")


def _start(program: str, environment: dict[str, str]) -> float:
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
