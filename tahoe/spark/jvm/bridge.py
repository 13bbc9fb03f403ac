"""The border to the JVM: classes by name, Scala collections, and loops that run inside the JVM. Every name of a JVM class that Tahoe
uses stands in this layer, and those that moved between versions of Spark stand here.

One call through py4j costs about 0.1 ms, so making 100,000 objects one by one takes half a minute. `Bulk` makes them all inside the JVM:
the arguments cross as a few Arrow buffers, and handles of the JDK's own `java.lang.invoke` say, composed like functions, how object *i* is
made of them. No code is compiled or shipped for it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from tempfile import TemporaryDirectory
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from py4j.java_gateway import JavaClass, JavaMember
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import Column, DataFrame, SparkSession

from tahoe.exceptions import Unsupported
from tahoe.lazy import pc

__all__ = ["Bulk", "Handle", "JavaObject", "Jvm", "is_classic"]

JavaObject = Any
"""What py4j hands out; it has no types."""
Handle = Any
"""A `java.lang.invoke.MethodHandle` from an int, the row's number, to a value."""

_CATALYST = "org.apache.spark.sql.catalyst"
_DATASOURCES = "org.apache.spark.sql.execution.datasources"


def is_classic(spark: SparkSession) -> bool:
    """Whether the session has a JVM of its own; one of Spark Connect has none."""
    return hasattr(spark, "_jsparkSession")


class Jvm:
    """Access to the JVM of one Spark application.

    Args:
        spark: a classic session.
    """

    def __init__(self, spark: SparkSession) -> None:
        if not is_classic(spark):
            raise Unsupported(
                "A Spark Connect session has no JVM of its own; use the portable data source: format('delta') alone.",
                code="TAHOE_SPARK_CONNECT",
            )
        self.gateway: JavaObject = spark.sparkContext._gateway
        self._classes: dict[str, JavaObject] = {}
        ensure_callback_server_started(self.gateway)  # type: ignore[no-untyped-call]

    @classmethod
    def of(cls, spark: SparkSession) -> Jvm:
        """The access to this session's JVM; one is kept for each Spark application."""
        gateway = spark.sparkContext._gateway
        if gateway not in _OPEN:
            _OPEN[gateway] = cls(spark)
        return _OPEN[gateway]

    def java_class(self, name: str) -> JavaObject:
        """The class of that full name: call it to construct, take attributes for static methods."""
        if name not in self._classes:
            self._classes[name] = _JavaClass(name, self.gateway._gateway_client)
        return self._classes[name]

    def catalyst(self, name: str) -> JavaObject:
        """The class of that name below the package in which Spark keeps expressions, plans and their rules."""
        return self.java_class(f"{_CATALYST}.{name}")

    def datasources(self, name: str) -> JavaObject:
        """The class of that name below the package in which Spark keeps scans of files."""
        return self.java_class(f"{_DATASOURCES}.{name}")

    def reflected(self, name: str) -> JavaObject:
        """The `java.lang.Class` of that full name, loaded as Spark loads its own."""
        # What `java_class` gives is py4j's, no object of the JVM; a method that takes a `Class` wants one from there.
        return self.java_class("org.apache.spark.util.Utils").classForName(name, True, False)

    # -- Scala -------------------------------------------------------------------------------------------------------------

    @cached_property
    def _python_utils(self) -> JavaObject:
        return self.java_class("org.apache.spark.api.python.PythonUtils")

    def seq(self, *items: Any) -> JavaObject:
        """A Scala `Seq`."""
        java_list = self.java_class("java.util.ArrayList")()
        for item in items:
            java_list.add(item)
        return self._python_utils.toSeq(java_list)

    def seq_of(self, array: JavaObject) -> JavaObject:
        """A Scala `Seq` over a Java array of objects, without a call an element."""
        return self._python_utils.toSeq(self.java_class("java.util.Arrays").asList(array))

    def map(self, values: Mapping[str, str]) -> JavaObject:
        """A Scala immutable `Map`."""
        java_map = self.java_class("java.util.HashMap")()
        for key, value in values.items():
            java_map.put(key, value)
        return self._python_utils.toScalaMap(java_map)

    def dictionary(self, scala_map: JavaObject) -> dict[str, str]:
        """A Scala `Map` of texts, in two calls whatever its size; py4j's own iteration makes a call an entry and ends with an exception."""
        if scala_map.isEmpty():
            return {}
        keys, values = (str(part.mkString("\0")).split("\0") for part in (scala_map.keys(), scala_map.values()))
        if len(keys) == len(values) == scala_map.size():
            return dict(zip(keys, values, strict=True))
        converted = self.java_class("scala.jdk.javaapi.CollectionConverters").asJava(scala_map)
        return {str(key): str(value) for key, value in converted.items()}

    def options(self, given: JavaObject) -> dict[str, str]:
        """What a ``CaseInsensitiveStringMap`` holds, as it was spelt."""
        return self.dictionary(self._python_utils.toScalaMap(given.asCaseSensitiveMap()))

    def option(self, value: Any) -> JavaObject:
        """A Scala `Option`: ``Some`` of the value, ``None`` for None."""
        return self.java_class("scala.Option").apply(value)

    def array(self, element_class: str, items: Sequence[Any]) -> JavaObject:
        """A Java array; for a handful of items."""
        java_array = self.gateway.new_array(self.java_class(element_class), len(items))
        for position, item in enumerate(items):
            java_array[position] = item
        return java_array

    # -- Spark SQL ---------------------------------------------------------------------------------------------------------

    def data_type(self, json: str) -> JavaObject:
        """The Spark type of a type's JSON text."""
        return self.java_class("org.apache.spark.sql.types.DataType").fromJson(json)

    def column(self, expression: JavaObject) -> Column:
        """A Catalyst expression as a PySpark column."""
        from pyspark.sql.classic.column import Column as ClassicColumn

        return ClassicColumn(self.java_class("org.apache.spark.sql.classic.ExpressionUtils").column(expression))

    def expression(self, column: Column) -> JavaObject:
        """A PySpark column as a Catalyst expression."""
        return self.java_class("org.apache.spark.sql.classic.ExpressionUtils").expression(column._jc)

    def frame(self, session: JavaObject, plan: JavaObject, spark: SparkSession) -> DataFrame:
        """A DataFrame of a logical plan that runs in the given JVM session."""
        from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

        return ClassicDataFrame(self.java_class("org.apache.spark.sql.classic.Dataset").ofRows(session, plan), spark)

    def session_with(self, spark: SparkSession, settings: Mapping[str, str]) -> JavaObject:
        """A copy of the JVM session with other settings, so that nobody else sees them change."""
        copy = spark._jsparkSession.cloneSession()
        for key, value in settings.items():
            copy.conf().set(key, value)
        return copy

    @cached_property
    def bulk(self) -> Bulk:
        """What makes many objects in a few calls; one for each JVM, as it remembers the methods that it has looked up."""
        return Bulk(self)


_MOST_BYTES_AS_TEXT = 2**18
_OPEN: WeakKeyDictionary[Any, Jvm] = WeakKeyDictionary()


class _JavaClass(JavaClass):  # type: ignore[misc]
    """A class that asks the JVM once, not at each call, whether a name is one of its static methods."""

    def __getattr__(self, name: str) -> Any:
        member = super().__getattr__(name)
        if isinstance(member, JavaMember):
            setattr(self, name, member)
        return member


class Bulk:
    """Functions from a row's number to a value, made of method handles, and the arrays that they fill.

    >>> names = bulk.texts(pa.array(["a", "b"]))                             # int -> UTF8String
    >>> bulk.objects(2, bulk.apply(bulk.method("…UTF8String", "toString", "java.lang.String"), names))
    """

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm
        self._handles = jvm.java_class("java.lang.invoke.MethodHandles")
        self._method_type = jvm.java_class("java.lang.invoke.MethodType")
        self._lookup = self._handles.publicLookup()
        self._int_function = jvm.reflected("java.util.function.IntFunction")
        self._known: dict[tuple[str, ...], Handle] = {}
        self._arrays_of_zeros: dict[int, JavaObject] = {}
        self._classes: dict[str, JavaObject] = {
            "int": jvm.java_class("java.lang.Integer").TYPE,
            "long": jvm.java_class("java.lang.Long").TYPE,
            "boolean": jvm.java_class("java.lang.Boolean").TYPE,
            "byte": jvm.java_class("java.lang.Byte").TYPE,
            "void": jvm.java_class("java.lang.Void").TYPE,
        }

    # -- functions of Java -------------------------------------------------------------------------------------------------

    def constructor(self, name: str, *parameters: str) -> Handle:
        """`new name(parameters…)`."""
        return self._find(
            ("new", name, *parameters), lambda: self._lookup.findConstructor(self._class(name), self._type("void", *parameters))
        )

    def static(self, name: str, method: str, returns: str, *parameters: str) -> Handle:
        """`name.method(parameters…)`."""
        return self._find(
            ("static", name, method, *parameters),
            lambda: self._lookup.findStatic(self._class(name), method, self._type(returns, *parameters)),
        )

    def method(self, name: str, method: str, returns: str, *parameters: str) -> Handle:
        """`object.method(parameters…)`; the object is the first argument."""
        return self._find(
            ("virtual", name, method, *parameters),
            lambda: self._lookup.findVirtual(self._class(name), method, self._type(returns, *parameters)),
        )

    def fixed(self, handle: Handle, position: int, *values: Any) -> Handle:
        """The function with these arguments given."""
        return self._handles.insertArguments(handle, position, self._jvm.array("java.lang.Object", values))

    # -- functions of a row's number ---------------------------------------------------------------------------------------

    def apply(self, handle: Handle, *arguments: Handle) -> Handle:
        """`i -> handle(arguments[0](i), arguments[1](i), …)`."""
        combined = self._handles.filterArguments(handle, 0, self._jvm.array("java.lang.invoke.MethodHandle", arguments))
        returns = handle.type().returnType()
        kind = self._method_type.methodType(returns, self._classes["int"])
        return self._handles.permuteArguments(combined, kind, self._zeros(len(arguments)))

    def longs(self, values: pa.Array) -> Handle:
        """`i -> long` of an int64 array without nulls."""
        return self._elements(self._copied(values, pa.int64(), 8, "long", "asLongBuffer"))

    def ints(self, values: pa.Array) -> Handle:
        """`i -> int` of an int32 array without nulls."""
        return self._elements(self._copied(values, pa.int32(), 4, "int", "asIntBuffer"))

    def texts(self, values: pa.Array) -> Handle:
        """`i -> UTF8String` over the bytes of a string or binary array; null stays null."""
        values = _contiguous(values)
        offsets = values.buffers()[1]
        starts = pa.Array.from_buffers(pa.int32(), len(values) + 1, [None, offsets], offset=values.offset)
        first = starts[0].as_py()
        content = values.buffers()[2]
        data = b"" if content is None else content.slice(first, starts[len(values)].as_py() - first).to_pybytes()
        begin, end = starts.slice(0, len(values)), starts.slice(1)
        strings = self.apply(
            self._with_bytes(self.static(_UTF8, "fromBytes", _UTF8, "[B", "int", "int"), data),
            self.ints(pc.subtract(begin, first)),
            self.ints(pc.subtract(end, begin)),
        )
        return self._or_null(strings, values) if values.null_count else strings

    def elements(self, array: JavaObject) -> Handle:
        """`i -> array[i]`."""
        return self._elements(array)

    def ranges(self, array: JavaObject, element_class: str, starts: pa.Array, stops: pa.Array) -> Handle:
        """`i -> array[starts[i]:stops[i]]` as a Java array of `element_class`, of an array of objects."""
        objects = "[Ljava.lang.Object;"
        copy = self.static("java.util.Arrays", "copyOfRange", objects, objects, "int", "int", "java.lang.Class")
        target = f"[L{element_class};"
        copy = self.fixed(copy.bindTo(array), 2, self._class(target)).asType(self._type(target, "int", "int"))
        return self.apply(copy, self.ints(starts), self.ints(stops))

    def rows(self, columns: Sequence[Handle], projection: JavaObject) -> Handle:
        """`i -> UnsafeRow`: the projection, a Catalyst `UnsafeProjection`, of the values of the columns."""
        internal, unsafe = f"{_CATALYST}.InternalRow", f"{_CATALYST}.expressions.UnsafeRow"
        generic = self.constructor(f"{_CATALYST}.expressions.GenericInternalRow", "[Ljava.lang.Object;")
        collected = generic.asCollector(self._class("[Ljava.lang.Object;"), len(columns))
        as_objects = [column.asType(self._type("java.lang.Object", "int")) for column in columns]
        project = self.method(f"{_CATALYST}.expressions.UnsafeProjection", "apply", unsafe, internal).bindTo(projection)
        projected = self._handles.filterReturnValue(
            collected.asType(collected.type().changeReturnType(self._class(internal))), project
        )
        return self.apply(self._handles.filterReturnValue(projected, self.method(unsafe, "copy", unsafe)), *as_objects)

    def objects(self, count: int, handle: Handle) -> JavaObject:
        """The values for 0, 1, …, count - 1 as a Java array of objects; the loop runs in the JVM."""
        made = self._jvm.gateway.new_array(self._jvm.java_class("java.lang.Object"), count)
        function = self._jvm.java_class("java.lang.invoke.MethodHandleProxies").asInterfaceInstance(self._int_function, handle)
        self._jvm.java_class("java.util.Arrays").setAll(made, function)
        return made

    # -- parts -------------------------------------------------------------------------------------------------------------

    def _find(self, key: tuple[str, ...], find: Any) -> Handle:
        if key not in self._known:
            self._known[key] = find()
        return self._known[key]

    def _class(self, name: str) -> JavaObject:
        if name not in self._classes:
            self._classes[name] = self._jvm.reflected(name)
        return self._classes[name]

    def _type(self, returns: str, *parameters: str) -> JavaObject:
        classes = [self._class(name) for name in parameters]
        return self._method_type.methodType(self._class(returns), self._jvm.array("java.lang.Class", classes))

    def _with_bytes(self, handle: Handle, data: bytes) -> Handle:
        """The function with these bytes as its first argument. py4j makes texts of bytes, at each crossing; many go faster through a file,
        which the JVM, on the same host, reads into an array that stays there."""
        if len(data) < _MOST_BYTES_AS_TEXT:
            return self.fixed(handle, 0, data)
        read = self.static("java.nio.file.Files", "readAllBytes", "[B", "java.nio.file.Path")
        with TemporaryDirectory() as folder:
            path = os.path.join(folder, "bytes")
            with open(path, "wb") as file:
                file.write(data)
            content = self.fixed(read, 0, self._jvm.java_class("java.io.File")(path).toPath())
            number = self._jvm.array("java.lang.Class", [self._classes["int"]])
            held = self.objects(1, self._handles.dropArguments(content, 0, number))
        first = self.fixed(self._elements(held), 0, 0).asType(self._type("[B"))
        return self._handles.collectArguments(handle, 0, first)

    def _zeros(self, count: int) -> JavaObject:
        """An array of so many ints that nobody writes to."""
        if count not in self._arrays_of_zeros:
            self._arrays_of_zeros[count] = self._jvm.gateway.new_array(self._jvm.java_class("int"), count)
        return self._arrays_of_zeros[count]

    def _elements(self, array: JavaObject) -> Handle:
        return self._handles.arrayElementGetter(array.getClass()).bindTo(array)

    def _copied(self, values: pa.Array, data_type: pa.DataType, width: int, java_type: str, view: str) -> JavaObject:
        values = _contiguous(values).cast(data_type)
        copied = self._jvm.gateway.new_array(self._jvm.java_class(java_type), len(values))
        if len(values):
            data = values.buffers()[1].slice(values.offset * width, len(values) * width).to_pybytes()
            order = self._jvm.java_class("java.nio.ByteOrder").LITTLE_ENDIAN
            getattr(self._jvm.java_class("java.nio.ByteBuffer").wrap(data).order(order), view)().get(copied)
        return copied

    def _or_null(self, handle: Handle, values: pa.Array) -> Handle:
        flags = bytes(values.is_null().cast(pa.uint8()).to_pylist())
        getter = self._handles.arrayElementGetter(self._class("[B")).bindTo(flags)
        is_null = self._handles.explicitCastArguments(getter, self._type("boolean", "int"))
        nothing = self._handles.dropArguments(
            self._handles.constant(handle.type().returnType(), None),
            0,
            self._jvm.array("java.lang.Class", [self._classes["int"]]),
        )
        return self._handles.guardWithTest(is_null, nothing, handle)


_UTF8 = "org.apache.spark.unsafe.types.UTF8String"


def _contiguous(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
