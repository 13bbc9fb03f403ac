"""Tahoe's code for Spark's Python workers, sent with the tasks that need it.

    modules ─► compiled code, packed ─► broadcast once per application ─► worker: imported from memory (`tahoe.spark.executors.worker`)

PySpark sends a function by its name, and starts the first `python3` on the executors' path, which often lacks Tahoe. So no function of
Tahoe is ever sent by name. Executors need PySpark, PyArrow and pyroaring; the packed code contains no path of the driver.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import pickle
import pkgutil
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.abc import InspectLoader
from importlib.resources import files
from importlib.util import find_spec
from threading import RLock
from types import CodeType, MappingProxyType
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark import Broadcast, SparkContext
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from tahoe.base.exceptions import TahoeError, Unsupported
from tahoe.spark.executors import worker
from tahoe.spark.versions.connect_frames import local_table

Answer = TypeVar("Answer")
Task = Callable[[Any], Any]
_Module = tuple[str, bool, Any]
"""The name of a module, whether it is a package, and its loader."""

_MOST_TASKS = 1_000
_ITEMS = StructType([StructField("number", LongType()), StructField("item", BinaryType())])
_ANSWERS = StructType([StructField("number", LongType()), StructField("answer", BinaryType())])
_LEVEL = 1
"""The zlib level: the best one takes ten times as long, and saves a tenth of the bytes."""
_DRIVER_ONLY = frozenset(
    {
        *("tahoe.__main__", "tahoe.as_delta", "tahoe.cli", "tahoe.api.several_tables", "tahoe.tables", "tahoe.testing"),
        *("tahoe.uniform.serve", "tahoe.uniform.catalogs"),
        *(
            f"tahoe.spark.{name}"
            for name in ("catalog", "commands", "connect", "copies", "entry_points", "in_transaction", "jvm", "names", "portable")
        ),
        *(
            f"tahoe.spark.{name}"
            for name in ("scan", "session", "sink", "shard_encoder", "statements", "stream", "versions", "write")
        ),
    }
)
"""Modules that no task imports: they need a driver, or additional packages."""
_COMMANDS_ONLY = frozenset({"tahoe.__main__", "tahoe.cli", "tahoe.testing", "tahoe.uniform.serve"})
"""Modules that no function of the user imports."""
_CLIENT_ONLY = _COMMANDS_ONLY | {"tahoe.as_delta", "tahoe.tables", "tahoe.spark.connect"}
"""Modules that no process of a Spark Connect server imports, unless a function of the user does."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of Tahoe's modules.

    Args:
        packages: with all modules below them.
        modules: single ones.
    """

    packages: frozenset[str]
    modules: frozenset[str]

    def has(self, name: str) -> bool:
        """Return whether a module belongs to it."""
        return name in self.modules or _is_below(name, self.packages)


_STORAGE = _Part(
    frozenset({"tahoe.base", "tahoe.store"}),
    frozenset({"tahoe", "tahoe.exceptions", "tahoe.spark", "tahoe.spark.executors", "tahoe.spark.executors.storage_tasks"}),
)
"""The modules that a request to storage needs: a tenth of the code."""
_ROWS = _Part(
    frozenset(
        f"tahoe.{name}"
        for name in ("base", "expr", "log", "protocol", "schema", "settings", "snapshot", "store", "stream", "txn")
    )
    | {"tahoe.ops.rows", "tahoe.ops.write", "tahoe.spark.executors"},
    frozenset({"tahoe", "tahoe.exceptions", "tahoe.ops", "tahoe.spark"}),
)
"""The modules that read and write rows: half of the code."""
_PARTS = {
    "tahoe.spark.executors.storage_tasks": _STORAGE,
    "tahoe.spark.executors.data_source_tasks": _ROWS,
    "tahoe.spark.executors.row_tasks": _ROWS,
    "tahoe.spark.executors.scan_tasks": _ROWS,
}
"""The part that the functions of a module need, if it is not all."""
_MODULE_NAME = re.compile(rb"tahoe(?:\.\w+)+")
_TEXTS = {"tahoe.settings": ("session_settings.toml",)}
"""Files that these processes read, by package."""


def run_each(
    context: SparkContext, function: Callable[..., Answer], items: Sequence[object], *arguments: object, tasks: int = _MOST_TASKS
) -> list[Answer | TahoeError]:
    """Run ``function(*arguments, item)`` for each item in Spark tasks; return the results, or the Tahoe errors raised, in order.

    Args:
        function: of a module that is sent (`packed`).
        items, arguments: picklable values, including Tahoe's.
        tasks: the maximum number of tasks.

    Raises Spark's own error if a task fails in another way.
    """
    if not items:
        return []
    values = [pickle.dumps(item, pickle.HIGHEST_PROTOCOL) for item in items]
    rows = context.parallelize(values, min(len(values), tasks)).mapPartitions(sent(context, worker.each, function, *arguments))
    with _this_python(context):
        return [pickle.loads(answer) for answer in rows.collect()]


def run_each_by_arrow(
    spark: SparkSession, function: Callable[..., Answer], items: Sequence[object], *arguments: object
) -> list[Answer | TahoeError]:
    """Like `run_each`, for a session without a `SparkContext`: a Spark Connect session. Each item is a separate task."""
    values = [pickle.dumps(item, pickle.HIGHEST_PROTOCOL) for item in items]
    sent_items = pa.table({"number": pa.array(range(len(values)), pa.int64()), "item": pa.array(values, pa.binary())})
    frame = local_table(spark, sent_items, _ITEMS).repartition(len(values))
    answers = frame.mapInArrow(sent_whole(worker.arrow, function, *arguments), _ANSWERS).toArrow()
    return [pickle.loads(answer) for answer in answers.sort_by("number")["answer"].to_pylist()]


def run_on(
    spark: SparkSession, function: Callable[..., Answer], items: Sequence[object], *arguments: object, tasks: int = _MOST_TASKS
) -> list[Answer | TahoeError]:
    """Like `run_each`, in a classic session or in one of Spark Connect."""
    if hasattr(spark, "_jsparkSession"):
        return run_each(spark.sparkContext, function, items, *arguments, tasks=tasks)
    return run_each_by_arrow(spark, function, items, *arguments) if items else []


def mapped(rows: DataFrame, columns: StructType, function: Callable[..., object], *arguments: object) -> DataFrame:
    """Return the rows that a generator function yields for the Arrow batches of each partition (`DataFrame.mapInArrow`).

    Args:
        rows: of a classic session or of one of Spark Connect.
        columns: of the result; for a text, a session of Spark Connect would ask its server.
        function: of a module that is sent (`packed`); its last argument is an iterator of the batches.
        arguments: its first arguments.
    """
    spark = rows.sparkSession
    if not hasattr(spark, "_jsparkSession"):
        return rows.mapInArrow(sent_whole(worker.stream, function, *arguments), columns)
    with _this_python(spark.sparkContext):
        return rows.mapInArrow(sent(spark.sparkContext, worker.stream, function, *arguments), columns)


@contextmanager
def _this_python(context: SparkContext) -> Iterator[None]:
    """Let the workers of a local master run this process's Python, if the user has not chosen one.

    PySpark starts the first `python3` on the path, which lacks the packages of a virtual environment that is not activated.
    """
    default, is_local = context.pythonExec, re.fullmatch(r"local(\[.*\])?", str(context.master))
    if default != "python3" or not is_local or "PYSPARK_PYTHON" in os.environ:
        yield
        return
    with _PYTHON:
        context.pythonExec = sys.executable
        try:
            yield
        finally:
            context.pythonExec = default


_PYTHON = RLock()


def raised(answers: Iterable[Answer | TahoeError]) -> Iterator[Answer]:
    """Yield the results of `run_each`. Raises the first error among them."""
    for answer in answers:
        if isinstance(answer, TahoeError):
            raise answer
        yield answer


def sent(context: SparkContext, how: Callable[..., object], function: Callable[..., object], *arguments: object) -> Task:
    """Return a function for a job of this application, which calls a Tahoe function in a worker.

    Args:
        how: `worker.each`, `worker.arrow`, `worker.stream`, `worker.part` or `worker.message`.
        function: of a module that is sent (`packed`).
        arguments: its first arguments.
    """
    if context not in _BROADCAST:
        _BROADCAST[context] = context.broadcast(packed())
    return _task(_loader_of(packed(), _BROADCAST[context]), how, function, _pickled(arguments))


def sent_whole(how: Callable[..., object], function: Callable[..., object], *arguments: object) -> Task:
    """Like `sent`, for use without a `SparkContext`: each copy of the function includes the code that it needs."""
    pickled = _pickled(arguments)
    return _task(_loader_of(_packed_part(_part_for(function, pickled))), how, function, pickled)


def _pickled(arguments: Sequence[object]) -> bytes:
    return pickle.dumps(tuple(arguments), pickle.HIGHEST_PROTOCOL)


def _part_for(function: Callable[..., object], arguments: bytes) -> _Part | None:
    """Return the part of the modules that a task needs; None for all of them, as for values of a module outside of the part.

    Args:
        arguments: the pickled arguments of the function.
    """
    part = _PARTS.get(function.__module__)
    if part is None:
        return None
    named = {name.decode() for name in _MODULE_NAME.findall(arguments)} & _names()
    return part if all(map(part.has, named)) else None


def carried() -> Callable[[], Any] | None:
    """Return the function that loads Tahoe in another process, if it was sent to this one; None if it is installed here."""
    spec = find_spec("tahoe")
    packed_here = getattr(None if spec is None else spec.loader, "packed", None)
    if packed_here is None:
        return None
    return _loader_of(packed_here)


def reviver() -> Callable[..., Any]:
    """Return the function of `worker.reviver`, which Spark does not send by name."""
    return _reviver()


@cache
def _reviver() -> Callable[..., Any]:
    function: Callable[..., Any] = _of_worker()["reviver"]()
    return function


_BROADCAST: WeakKeyDictionary[SparkContext, Broadcast[bytes]] = WeakKeyDictionary()


def _task(load: Callable[[], Any], how: Callable[..., object], function: Callable[..., object], arguments: bytes) -> Task:
    name = f"{function.__module__}.{function.__qualname__}"
    assert function.__module__ in _names(), f"{name} is not sent to executors"
    task: Task = _of_worker()["runner"](load, how.__name__, name, arguments)
    return task


def _loader_of(code: bytes, broadcast: Broadcast[bytes] | None = None) -> Callable[[], Any]:
    """Return the function that loads packed modules in another process (`worker.loader`), from a broadcast variable of them if given."""
    sent_code = code if broadcast is None else broadcast
    load: Callable[[], Any] = _of_worker()["loader"](sent_code, _code_of_worker(), _digest_of(code))
    return load


def source_for_server(source: type, secrets: Mapping[str, str]) -> type:
    """Return a data source class to register with a server of Spark Connect, whose Python needs no Tahoe.

    Args:
        source: the class of Tahoe that it uses there.
        secrets: the values of options by their placeholders in plans.
    """
    load = _loader_of(_packed_for_server(_CLIENT_ONLY))
    source_class: type = _of_worker()["source_class"](load, f"{source.__module__}.{source.__qualname__}", dict(secrets))
    return source_class


class BatchFunction:
    """A function for ``foreachBatch`` of Spark Connect, which a process of the server unpickles; its Python needs no Tahoe.

    Args:
        function: the user's.

    Raises PySpark's ``PicklingError`` for a function that cannot be pickled.
    """

    def __init__(self, function: Callable[..., None]) -> None:
        pickler: Any = CloudPickleSerializer
        self._pickled: bytes = pickler().dumps(function)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[object, ...]]:
        return _of_worker()["batch_function"], (_loader_of(_packed_for_server(_COMMANDS_ONLY)), self._pickled)


@cache
def _packed_for_server(left_out: frozenset[str]) -> bytes:
    texts = {
        package: {name: (files(package) / name).read_text(encoding="utf-8") for name in names}
        for package, names in _TEXTS.items()
    }
    return _packed(_sent_modules(left_out), texts)


@cache
def _packed_part(part: _Part | None) -> bytes:
    return packed() if part is None else _packed(module for module in _sent_modules() if part.has(module[0]))


@cache
def packed() -> bytes:
    """Return the compiled modules that tasks may import, by name, each with whether it is a package. They contain no path of the driver."""
    return _packed(_sent_modules())


def _packed(sent_modules: Iterable[_Module], texts: Mapping[str, Mapping[str, str]] = MappingProxyType({})) -> bytes:
    modules = {name: (is_package, _neutral(_code_of(loader, name), name)) for name, is_package, loader in sent_modules}
    return zlib.compress(marshal.dumps((modules, dict(texts))), _LEVEL)


@cache  # each partition of a read asks for it
def _digest_of(code: bytes) -> str:
    return hashlib.sha256(code + _code_of_worker()).hexdigest()[:16]


@cache
def _names() -> frozenset[str]:
    return frozenset(name for name, _, _ in _sent_modules())


@cache
def _code_of_worker() -> bytes:
    """Return the compiled code of `tahoe.spark.executors.worker`."""
    loader = next(loader for name, _, loader in _sent_modules() if name == worker.__name__)
    return marshal.dumps(_neutral(_code_of(loader, worker.__name__), "worker"))


@cache
def _of_worker() -> dict[str, Any]:
    """Return that module's names, re-created so that they belong to no module that Spark would send by name."""
    names: dict[str, Any] = {"__name__": "_tahoe_task"}
    exec(marshal.loads(_code_of_worker()), names)
    return names


def _sent_modules(left_out: frozenset[str] = _DRIVER_ONLY) -> Iterator[_Module]:
    """Yield Tahoe's modules that are sent: name, whether it is a package, and loader."""
    spec = find_spec("tahoe")
    assert spec is not None
    names = getattr(spec.loader, "names", None)
    if names is not None:  # in a process of a server, to which Tahoe was sent (`worker.Modules`)
        yield from ((name, is_package, spec.loader) for name, is_package in names.items() if not _is_below(name, left_out))
        return
    yield "tahoe", True, spec.loader
    yield from _below("tahoe", spec.submodule_search_locations or (), left_out)


def _is_below(name: str, packages: frozenset[str]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def _below(package: str, folders: Sequence[str], left_out: frozenset[str]) -> Iterator[_Module]:
    for module in pkgutil.iter_modules(folders):
        name = f"{package}.{module.name}"
        if name not in left_out:
            finder: Any = module.module_finder
            spec = finder.find_spec(name)
            yield name, module.ispkg, spec.loader
            yield from _below(name, spec.submodule_search_locations or (), left_out)


def _code_of(loader: Any, name: str) -> CodeType:
    code = loader.get_code(name) if isinstance(loader, InspectLoader) or hasattr(loader, "names") else None
    if code is None:
        raise Unsupported(
            f"The code of the module {name} cannot be sent to Spark's executors: its loader, {type(loader).__name__}, does not give it. "
            "Install Tahoe as a package.",
            code="TAHOE_SOURCE_MISSING",
        )
    assert isinstance(code, CodeType)
    return code


def _neutral(code: CodeType, name: str) -> CodeType:
    """Return the code with the module instead of a file of the driver as its origin."""
    inner = (_neutral(constant, name) if isinstance(constant, CodeType) else constant for constant in code.co_consts)
    return code.replace(co_filename=f"<{name}>", co_consts=tuple(inner))
