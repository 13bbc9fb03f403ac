"""`DataFrame.inputFiles`: for a Delta table the files that the query reads, without those that its filters exclude.

Spark's own method lists all files of a relation; only the planned scans have the filters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pyspark.sql.classic.dataframe import DataFrame

from tahoe.spark.entry_points.wrapping import is_enabled, wrap
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.records import items

_INDEX = "tahoe.LogFiles"


def wrap_input_files() -> None:
    """Make DataFrames over Delta tables list their files, in sessions where Delta is enabled."""
    wrap(DataFrame, "inputFiles", _input_files)


def _input_files(original: Callable[..., list[str]], frame: Any) -> list[str]:
    scans = list(_scans(frame._jdf.queryExecution().sparkPlan())) if is_enabled(frame.sparkSession) else []
    ours = [(scan, scan.relation().location()) for scan in scans if _is_ours(scan)]
    if not ours:
        return original(frame)
    read = dict.fromkeys(
        file for scan, index in ours for file in _lines(index.filesOf(scan.partitionFilters(), scan.dataFilters()))
    )
    if len(ours) == len(scans):
        return list(read)
    nothing = Jvm.of(frame.sparkSession).seq()
    every = {file for _, index in ours for file in _lines(index.filesOf(nothing, nothing))}
    return [file for file in original(frame) if file not in every] + list(read)


def _lines(text: str) -> list[str]:
    return str(text).split("\n") if text else []


def _scans(plan: JavaObject) -> Iterator[JavaObject]:
    """Yield the leaves of a physical plan that may read files, without those of its subqueries."""
    for leaf in items(plan.collectLeaves()):
        if str(leaf.getClass().getSimpleName()) not in ("LocalTableScanExec", "RangeExec", "OneRowRelationExec"):
            yield leaf


def _is_ours(scan: JavaObject) -> bool:
    is_scan = str(scan.getClass().getSimpleName()) == "FileSourceScanExec"
    return is_scan and str(scan.relation().location().getClass().getName()) == _INDEX
