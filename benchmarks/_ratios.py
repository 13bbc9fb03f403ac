"""The ratios that benchmarks report to `make bench` and to `make bench-check`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

__all__ = ["RATIOS_FILE", "record"]

RATIOS_FILE = "TAHOE_BENCHMARK_RATIOS"
"""The environment variable that names the file for the ratios, one line of JSON for each."""


def record(case: str, ratio: float) -> None:
    """Append a ratio to the file that ``TAHOE_BENCHMARK_RATIOS`` names. Without this variable nothing is written.

    Args:
        case: the work and what it is compared with, unique in the script.
        ratio: the time of Tahoe divided by the time of its peer: less is better.
    """
    if name := os.environ.get(RATIOS_FILE):
        line = json.dumps({"script": Path(sys.argv[0]).stem, "case": case, "ratio": round(ratio, 4)})
        with open(name, "a", encoding="utf-8") as file:
            file.write(line + "\n")
