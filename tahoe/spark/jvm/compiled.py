"""Tahoe's own Java classes, for Spark interfaces that a Python object cannot implement well.

Their sources are the resource files ``tahoe/spark/java/*.java``. Janino, the compiler that Spark uses for its queries, compiles each at its
first use in the driver. Executors need none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.resources import files
from threading import Lock
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaGateway
from pyspark.sql import SparkSession

from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.records import items

PACKAGE = "tahoe"
_COMPILING = Lock()
_CONSTRUCTORS: WeakKeyDictionary[JavaGateway, dict[str, JavaObject]] = WeakKeyDictionary()


def java_source(name: str, placeholders: dict[str, str]) -> str:
    """Return the source of a class.

    Args:
        name: the name of the class, and of its file in ``tahoe/spark/java``.
        placeholders: the text for each ``{{name}}`` in the file.
    """
    source = (files("tahoe.spark") / "java" / f"{name}.java").read_text(encoding="utf-8")
    for placeholder, text in placeholders.items():
        source = source.replace("{{" + placeholder + "}}", text)
    return source


def compiled_object(jvm: Jvm, name: str, *arguments: object, **placeholders: str) -> JavaObject:
    """Return a new object of a class of ``tahoe/spark/java``, which has one constructor.

    Args:
        arguments: constructor arguments; may be Python objects that implement interfaces.
        placeholders: the arguments of `java_source`, the same in every call of one JVM.
    """
    return compiled_source(jvm, name, lambda: (name, java_source(name, placeholders)), *arguments)


def compiled_source(jvm: Jvm, key: str, source: Callable[[], tuple[str, str]], *arguments: object) -> JavaObject:
    """Return a new object of a class whose source is generated. It is compiled once per JVM.

    Args:
        key: identifies the class here.
        source: returns the name and the source of the class. It is called before the class is compiled.
        arguments: constructor arguments; may be Python objects that implement interfaces.
    """
    constructors = _CONSTRUCTORS.setdefault(jvm.gateway, {})
    # py4j caches methods by class name, so two classes with one name would be confused.
    with _COMPILING:
        if key not in constructors:
            constructors[key] = _constructor(jvm, *source())
    # py4j cannot put a proxy into an array, only into a list.
    values = jvm.java_class("java.util.ArrayList")()
    for argument in arguments:
        values.add(argument)
    return constructors[key].newInstance(values.toArray())


def add_strategy(spark: SparkSession, name: str, functions: Callable[[], Sequence[object]], **placeholders: str) -> None:
    """Add a strategy of ``tahoe/spark/java`` to the session's planner; copies of the session have it too. A second call does nothing.

    Args:
        name: the name of the class.
        functions: creates the Python objects that implement the functions of its constructor.
        placeholders: the arguments of `java_source`.
    """
    _extend(spark, "extraStrategies", name, functions, placeholders)


def add_optimizer_rule(spark: SparkSession, name: str, function: Callable[[], object], **placeholders: str) -> None:
    """Add a rule to the session's optimizer. The arguments are those of `add_strategy`, for a class whose constructor takes one function."""
    _extend(spark, "extraOptimizations", name, lambda: (function(),), placeholders)


def _extend(
    spark: SparkSession, extensions: str, name: str, functions: Callable[[], Sequence[object]], placeholders: dict[str, str]
) -> None:
    experimental = spark._jsparkSession.experimental()
    present = getattr(experimental, extensions)()
    if not any(str(extension.getClass().getName()) == f"{PACKAGE}.{name}" for extension in items(present)):
        extension = compiled_object(Jvm.of(spark), name, *functions(), **placeholders)
        getattr(experimental, f"{extensions}_$eq")(present.appended(extension))


def _constructor(jvm: Jvm, name: str, source: str) -> JavaObject:
    compiler = jvm.java_class("org.codehaus.janino.SimpleCompiler")()
    compiler.setParentClassLoader(jvm.java_class("org.apache.spark.util.Utils").getContextOrSparkClassLoader())
    compiler.cook(source)
    return compiler.getClassLoader().loadClass(f"{PACKAGE}.{name}").getConstructors()[0]
