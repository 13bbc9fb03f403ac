"""The first code in a Python worker: imports Tahoe's modules from the bytes sent with the task, and calls one of their functions.

The code of this module is sent with every task and executed there (`tahoe.spark.executors.shipped`), so it imports only the standard
library. The modules are imported from memory. A worker with its own Tahoe keeps it: that version is removed from `sys.modules` while a task
runs, and restored afterwards, so the two never mix.
"""

from __future__ import annotations

import marshal
import pickle
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Any

_PACKAGE = "tahoe"


class Modules:
    """Tahoe's modules, importable from memory inside a ``with`` block.

    Args:
        packed: the result of `tahoe.spark.executors.shipped.packed`.
    """

    def __init__(self, packed: bytes) -> None:
        codes: dict[str, tuple[bool, Any]]
        texts: dict[str, dict[str, str]]
        codes, texts = marshal.loads(zlib.decompress(packed))
        self._codes, self._texts = codes, texts
        self.packed = packed
        self._loaded: dict[str, ModuleType] = {}
        self._hidden: dict[str, ModuleType] = {}
        self._depth = 0

    def __enter__(self) -> None:
        self._depth += 1
        if self._depth == 1:
            self._hidden = _taken_out()
            sys.modules.update(self._loaded)
            sys.meta_path.insert(0, self)

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            sys.meta_path.remove(self)
            self._loaded = _taken_out()
            sys.modules.update(self._hidden)

    def stay(self) -> None:
        """Import from these modules from now on: a process of a server, which serves one query, pickles Tahoe's values after the call."""
        if not self._depth:
            for other in [finder for finder in sys.meta_path if type(finder).__name__ == Modules.__name__]:
                other.__exit__()  # type: ignore[attr-defined]
            self.__enter__()

    # -- called by the import system and by `tahoe.spark.executors.shipped` --------------------------------------------------

    @property
    def names(self) -> dict[str, bool]:
        """The names of the modules, each with whether it is a package."""
        return {name: is_package for name, (is_package, _) in self._codes.items()}

    def get_code(self, name: str) -> Any:
        """Return the code of a module."""
        return self._codes[name][1]

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        """Return the spec of the module with this name; None for modules of other packages."""
        if name.partition(".")[0] != _PACKAGE:
            return None
        if name not in self._codes:
            raise ModuleNotFoundError(f"The module {name} is not sent to Spark's executors.", name=name)
        return spec_from_loader(name, self, origin=f"<{name}>", is_package=self._codes[name][0])  # type: ignore[arg-type]

    def get_resource_reader(self, name: str) -> _Texts:
        """Return the files in a package, for `importlib.resources`."""
        return _Texts(self._texts.get(name, {}))

    def create_module(self, _spec: ModuleSpec) -> None:
        """Return None: modules are created as usual."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the code of a module."""
        exec(self._codes[module.__name__][1], module.__dict__)


class _Texts:
    """The text files in a package."""

    def __init__(self, texts: dict[str, str]) -> None:
        self._texts = texts

    def files(self) -> _Texts:
        """Return the folder of the package."""
        return self

    def __truediv__(self, name: str) -> _Text:
        return _Text(self._texts[name])


class _Text:
    """A text file."""

    def __init__(self, text: str) -> None:
        self._text = text

    def read_text(self, encoding: str) -> str:
        """Return the text."""
        return self._text


def _taken_out() -> dict[str, ModuleType]:
    """Remove the package's imported modules from `sys.modules` and return them."""
    names = [name for name in sys.modules if name.partition(".")[0] == _PACKAGE]
    return {name: sys.modules.pop(name) for name in names}


def each(modules: Modules, function: str, arguments: bytes, items: Iterable[bytes]) -> Iterator[bytes]:
    """Call a function with each item as its last argument. An error of Tahoe is a result too, so that it arrives unchanged.

    Args:
        function: module and name, with a dot between them.
        arguments: the other arguments, pickled.
        items: pickled, like the results.
    """
    with modules:
        call, first, expected = None, (), _member("tahoe.base.exceptions.TahoeError")
        for item in items:
            try:
                with _missing_packages_named():
                    if call is None:
                        call, first = _member(function), pickle.loads(arguments)
                    answer = call(*first, pickle.loads(item))
            except expected as error:
                answer = error
            yield pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)


def arrow(modules: Modules, function: str, arguments: bytes, batches: Iterable[Any]) -> Iterator[object]:
    """Like `each`, with Arrow batches: ``number`` and ``item`` in, ``number`` and ``answer`` out."""
    import pyarrow as pa

    for batch in batches:
        answers = each(modules, function, arguments, batch.column("item").to_pylist())
        for number, answer in zip(batch.column("number").to_pylist(), answers, strict=True):
            yield pa.RecordBatch.from_pydict({"number": [number], "answer": [answer]})


def stream(modules: Modules, function: str, arguments: bytes, items: Iterable[object]) -> Iterator[object]:
    """Call a generator function with an iterator of all items as its last argument.

    Args:
        function, arguments: the arguments of `each`.
        items: values from Spark; Spark also transports the function's results. None of them are Tahoe values.
    """
    with modules, _missing_packages_named():
        yield from _member(function)(*pickle.loads(arguments), items)


def part(modules: Modules, function: str, arguments: bytes, item: bytes) -> Iterator[object]:
    """Call a generator function with the values of a dictionary that is pickled in `item`, after its other arguments."""
    with modules, _missing_packages_named():
        yield from _member(function)(*pickle.loads(arguments), *pickle.loads(item).values())


def message(modules: Modules, function: str, arguments: bytes, items: Iterator[object]) -> bytes:
    """Like `stream`, for a function that returns one value, which is pickled."""
    with modules, _missing_packages_named():
        return pickle.dumps(_member(function)(*pickle.loads(arguments), items), pickle.HIGHEST_PROTOCOL)


def _member(name: str) -> Any:
    module, _, member = name.rpartition(".")
    return getattr(import_module(module), member)


@contextmanager
def _missing_packages_named() -> Iterator[None]:
    """Raise an error of Tahoe for a package that this Python lacks; most are imported when a task needs them."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise _member("tahoe.base.missing_extra.missing_on_executors")(str(error.name), sys.executable) from error


def loader(code: Any, own_code: bytes, digest: str) -> Callable[[], Any]:
    """Return a function that loads this module in a worker, once for each digest. It refers only to modules of the standard library.

    Args:
        code: the packed modules, or a broadcast variable of them.
        own_code: the marshalled code of this module.
        digest: of both: a worker stores one `Modules` for each digest.
    """

    def load() -> Any:
        import marshal
        import sys
        from types import ModuleType

        name = f"_tahoe_{digest}"
        worker: Any = sys.modules.get(name)
        if worker is None:
            worker = ModuleType(name)
            exec(marshal.loads(own_code), worker.__dict__)
            worker.modules = worker.Modules(code if isinstance(code, bytes) else code.value)
            sys.modules[name] = worker
        return worker

    return load


def runner(load: Callable[[], Any], how: str, function: str, arguments: bytes) -> Callable[[Any], Any]:
    """Return the function that is sent as a task.

    Args:
        load: of `loader`.
        how: the function of this module to call: ``each``, ``arrow``, ``stream``, ``part`` or ``message``.
        function, arguments: the arguments of `each`.
    """

    def run(items: Any) -> Any:
        worker = load()
        return getattr(worker, how)(worker.modules, function, arguments, items)

    return run


def source_class(load: Callable[[], Any], source: str, secrets: dict[str, str]) -> Any:
    """Return a class of PySpark's data source API that is sent by value, and uses a class of Tahoe in the processes of a server.

    Args:
        load: of `loader`, with all modules that the class needs.
        source: module and name of the class, with a dot between them.
        secrets: the values of options by their placeholders in plans.
    """
    from pyspark.sql.datasource import DataSource

    class Delta(DataSource):
        """Creates the real source in each process. Its state travels as bytes, which any Python can unpickle."""

        def __init__(self, options: Any) -> None:
            self.options: dict[str, Any] = {name: secrets.get(value, value) for name, value in dict(options).items()}
            self.state: bytes | None = None
            self.has_planned = False

        def __reduce_ex__(self, protocol: Any) -> Any:
            # A process that has planned pickles the source only as a part of its tasks: without Tahoe's code, which takes megabytes.
            return (named_source, ()) if self.has_planned else DataSource.__reduce_ex__(self, protocol)

        @classmethod
        def name(cls) -> str:
            return "delta"

        def schema(self) -> Any:
            return self._of("schema")

        def reader(self, schema: Any) -> Any:
            return self._of("reader", schema)

        def writer(self, schema: Any, overwrite: bool) -> Any:
            return self._of("writer", schema, overwrite)

        def streamReader(self, schema: Any) -> Any:  # noqa: N802 - PySpark's name
            return self._of("streamReader", schema)

        def streamWriter(self, schema: Any, overwrite: bool) -> Any:  # noqa: N802
            return self._of("streamWriter", schema, overwrite)

        def _of(self, method: str, *arguments: Any) -> Any:
            import pickle

            worker = load()
            worker.modules.stay()
            instance = worker._member(source)(self.options)
            if self.state is not None:
                instance.__dict__.update(pickle.loads(self.state))
            result = getattr(instance, method)(*arguments)
            self.state = pickle.dumps(instance.__dict__)
            self.has_planned = method != "schema"
            return result

    return Delta


def named_source() -> Any:
    """Return a data source that has only a name, which Spark puts into the errors of a task."""
    from pyspark.sql.datasource import DataSource

    class Name(DataSource):
        @classmethod
        def name(cls) -> str:
            return "delta"

    return Name({})


def batch_function(load: Callable[[], Any], function: bytes) -> Callable[[Any, int], None]:
    """Return a function for ``foreachBatch`` that calls the user's in a session with Tahoe.

    A process of the server calls this one when it unpickles the function: while its active session is that of the query, for which a session
    in the user's function stands.

    Args:
        load: of `loader`, with all modules that a client has.
        function: the user's, pickled: it may refer to Tahoe's modules.
    """
    import pickle

    from pyspark.sql import SparkSession

    worker = load()
    worker.modules.stay()
    enable, call = worker._member("tahoe.enable"), pickle.loads(function)
    active = SparkSession.getActiveSession()
    if active is not None:
        enable(active)

    def run(rows: Any, batch: int) -> None:
        enable(rows.sparkSession)
        call(rows, batch)

    return run


def reviver() -> Callable[..., Any]:
    """Return the function that unpickles a part of Tahoe's data source (`tahoe.spark.portable.sent`)."""

    def revive(module: str, name: str, state: bytes, kind: str, task: Any, load: Any = None, is_sent: bool = False) -> Any:
        """Return the part itself if Tahoe can be imported, otherwise a proxy.

        Args:
            load: of `loader`, for a part that commits in another process of a server without Tahoe.
            is_sent: whether the part is of a Tahoe that was sent to the server: one that is installed there may be of another version.
            module, name: of its class.
            state: the pickled values of its attributes.
            kind: its PySpark base class.
            task: a function of `runner`: its task in an executor.
        """
        import pickle
        from importlib import import_module

        from pyspark.sql import datasource

        try:
            if is_sent:
                raise ImportError
            part_class = getattr(import_module(module), name)
        except ImportError:
            base = getattr(datasource, kind)

            def write(_: Any, items: Any) -> Any:
                written = datasource.WriterCommitMessage()
                written.tahoe = task(items)  # type: ignore[attr-defined]
                return written

            def part() -> Any:
                load().modules.stay()
                return revive(module, name, state, kind, task)

            members: Any = {
                "name": classmethod(lambda _: "delta"),
                "read": lambda _, partition: task(partition.value),
                "write": write,
            }
            if load is not None:
                members["commit"] = lambda _, messages: part().commit(messages)
                members["abort"] = lambda _, messages: part().abort(messages)
            proxy: Any = type(name, (base,), members)
            value = proxy.__new__(proxy)
            value.value = state
            return value
        value = part_class.__new__(part_class)
        value.__dict__.update(pickle.loads(state))
        return value

    return revive
