"""Classes of the JVM that Tahoe writes itself, in a few lines of Java, where Spark wants a class and Python cannot stand in for one.

Janino compiles them in the driver: the compiler that Spark brings along for its queries. Nothing is shipped to executors. The package is
Tahoe's, so that a class is known by its name.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.records import items

__all__ = ["PACKAGE", "add_optimizer_rule", "compiled_object"]

PACKAGE = "tahoe"
_COMPILING = Lock()
_CONSTRUCTORS: WeakKeyDictionary[Any, dict[str, JavaObject]] = WeakKeyDictionary()


def compiled_object(jvm: Jvm, key: str, source: Callable[[], tuple[str, str]], *arguments: Any) -> JavaObject:
    """A new object of a class with one constructor, which is compiled once for each JVM.

    Args:
        key: what the class is known by here.
        source: gives the class's name and its source; asked where it is not compiled yet.
        arguments: of the constructor; may be Python objects that stand for interfaces.
    """
    known = _CONSTRUCTORS.setdefault(jvm.gateway, {})
    # py4j remembers methods by the name of their class: two classes of one name would be taken for each other.
    with _COMPILING:
        if key not in known:
            known[key] = _constructor(jvm, *source())
    # py4j puts no proxy into an array; a list takes them.
    given = jvm.java_class("java.util.ArrayList")()
    for one in arguments:
        given.add(one)
    return known[key].newInstance(given.toArray())


def add_optimizer_rule(spark: SparkSession, name: str, source: str, answer: Callable[[], Any]) -> None:
    """Have a rule among the session's extra ones of the optimizer; copies of the session have it too. A second call does nothing.

    Args:
        name: of the rule's class, whose constructor takes one function.
        answer: makes the Python object that stands for that function.
    """
    experimental = spark._jsparkSession.experimental()
    rules = experimental.extraOptimizations()
    if any(str(rule.ruleName()) == f"{PACKAGE}.{name}" for rule in items(rules)):
        return
    rule = compiled_object(Jvm.of(spark), name, lambda: (name, source), answer())
    getattr(experimental, "extraOptimizations_$eq")(rules.appended(rule))


def _constructor(jvm: Jvm, name: str, source: str) -> JavaObject:
    compiler = jvm.java_class("org.codehaus.janino.SimpleCompiler")()
    compiler.setParentClassLoader(jvm.java_class("org.apache.spark.util.Utils").getContextOrSparkClassLoader())
    compiler.cook(source)
    return compiler.getClassLoader().loadClass(f"{PACKAGE}.{name}").getConstructors()[0]
