"""Spark's executors as the `SliceEncoder` of large conversions (`tahoe.uniform.convert.slices`).

Executors need PyArrow and nothing of ours: the few modules that encode a slice travel with the task as a ZIP archive. They are imported
from there and taken out of sight again, so that they are always the driver's own, and a worker's Python keeps what Tahoe it has, or none.
Bytes go and bytes come: as an RDD, or where there is none, on Spark Connect, by `mapInArrow`. The driver holds some slices and their
manifests at a time.
"""

from __future__ import annotations

import ast
import io
import zipfile
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.abc import InspectLoader
from importlib.util import find_spec
from itertools import islice
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from tahoe.exceptions import Unsupported
from tahoe.spark.jvm.bridge import is_classic
from tahoe.uniform.convert import slices
from tahoe.uniform.convert.slices import Encoded, Slice

__all__ = ["LEAST_FILES", "SparkSlices"]

LEAST_FILES = 100_000
"""Smaller tables are encoded by one process in a few seconds."""

_SLICES_AT_ONCE = 32
_MOST_SLICES_AT_ONCE = 256
_COLUMNS = pa.schema([("number", pa.int64()), ("files", pa.binary())])
_ANSWER = "number long, data binary, entry binary, data_size long"

_Answer = tuple[int, bytes, bytes, int]
_Task = Callable[[Iterable[tuple[int, bytes]]], Iterator[_Answer]]


class SparkSlices:
    """Encodes slices in a session's Python workers.

    Args:
        least_files: of a table that is worth a Spark job.
    """

    def __init__(self, spark: SparkSession, least_files: int = LEAST_FILES) -> None:
        self._spark = spark
        self._least_files = least_files

    @property
    def least_files(self) -> int:
        """A table of fewer files is not worth a Spark job."""
        return self._least_files

    def encode(self, order: str, slices: Iterable[Slice]) -> Iterator[Encoded]:
        """What `encode_slice` gives for each slice, in their order; some slices at a time are with Spark."""
        task = _task(order, _code())
        answers = self._by_rows if is_classic(self._spark) else self._by_arrow
        waiting = iter(slices)
        while some := list(islice(waiting, self._slices_at_once())):
            yield from (Encoded(*answer) for answer in answers(task, some))

    def _by_rows(self, task: _Task, some: list[Slice]) -> list[_Answer]:
        """A third of the processor time around a task that `mapInArrow` takes."""
        return (
            self._spark.sparkContext.parallelize([(part.number, part.files) for part in some], len(some))
            .mapPartitions(task)
            .collect()
        )

    def _by_arrow(self, task: _Task, some: list[Slice]) -> list[_Answer]:
        def encode(batches: Iterable[Any]) -> Iterator[Any]:
            import pyarrow as pa

            for batch in batches:
                for answer in task((row["number"], row["files"]) for row in batch.to_pylist()):
                    names = ("number", "data", "entry", "data_size")
                    yield pa.RecordBatch.from_pylist([dict(zip(names, answer, strict=True))])

        sent = pa.table([[part.number for part in some], [part.files for part in some]], schema=_COLUMNS)
        frame = self._spark.createDataFrame(sent).repartition(len(some)).mapInArrow(encode, _ANSWER)
        return sorted(tuple(row.values()) for row in frame.toArrow().to_pylist())

    def _slices_at_once(self) -> int:
        if not is_classic(self._spark):
            return _SLICES_AT_ONCE
        return min(max(2 * self._spark.sparkContext.defaultParallelism, _SLICES_AT_ONCE), _MOST_SLICES_AT_ONCE)


def _task(order: str, code: bytes) -> _Task:
    """What a worker runs. It stands inside of this function and refers to nothing outside, so it is sent whole, not by its name."""

    def encode(parts: Iterable[tuple[int, bytes]]) -> Iterator[_Answer]:
        import hashlib
        import os
        import sys
        import tempfile

        # Under a name of its own in sys.modules, the driver's code is loaded once a worker, and never meets another Tahoe that is installed
        # there: while it is imported, that one is out of sight.
        kept = "_tahoe_" + hashlib.sha256(code).hexdigest()[:16]
        if kept not in sys.modules:
            others = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "tahoe"}
            descriptor, archive = tempfile.mkstemp(suffix=".zip")
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(code)
                sys.path.insert(0, archive)
                import tahoe.uniform.convert.slices as ours

                sys.modules[kept] = ours
            finally:
                sys.path[:] = [entry for entry in sys.path if entry != archive]
                sys.path_importer_cache.pop(archive, None)
                os.unlink(archive)
                for name in [name for name in sys.modules if name.split(".")[0] == "tahoe"]:
                    del sys.modules[name]
                sys.modules.update(others)
        ours = sys.modules[kept]
        for number, files in parts:
            yield from map(tuple, ours.encode_slice(order, ours.Slice(number, files)))

    return encode


@cache
def _code() -> bytes:
    """The sources of `tahoe.uniform.convert.slices` and of what it imports of ours, as a ZIP archive; equal sources give equal bytes."""
    sources: dict[str, str] = {}
    wanted = [slices.__name__]
    while wanted:
        name = wanted.pop()
        spec = find_spec(name)
        if spec is None or not isinstance(spec.loader, InspectLoader):
            raise Unsupported(
                f"The source of the module {name} cannot be sent to Spark's executors: it is not there.",
                code="TAHOE_SOURCE_MISSING",
            )
        file = name.replace(".", "/") + ("/__init__.py" if spec.submodule_search_locations is not None else ".py")
        if file not in sources:
            sources[file] = spec.loader.get_source(name) or ""
            wanted += [name.rpartition(".")[0], *_imported(sources[file])] if "." in name else []
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for file in sorted(sources):
            archive.writestr(zipfile.ZipInfo(file), sources[file], zipfile.ZIP_DEFLATED)
    return content.getvalue()


def _imported(source: str) -> Iterator[str]:
    """Our modules that a module imports when it is loaded. (The package itself imports on first use only.)"""
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").split(".")[0] == "tahoe":
            for name in [statement.module or "", *(f"{statement.module}.{alias.name}" for alias in statement.names)]:
                if _is_module(name):
                    yield name


def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # a name in a module, not in a package
        return False
