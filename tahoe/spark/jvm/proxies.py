"""Proxies that replace Spark's objects: some methods are answered in Python, all others are forwarded to the replaced object.

A method answered in Python costs a py4j round trip of 0.3 ms; Spark queries a catalog for its name dozens of times per statement. So a
proxy is a JVM object: its class is generated from the interfaces by reflection, for all methods that they have in this Spark version, and
compiled (`tahoe.spark.jvm.compiled`). It exists only in the driver.

Errors from the JVM are returned as the original exceptions, because Spark catches some by class (``NoSuchTableException``); Tahoe's errors
are stored for the caller of the query (`tahoe.spark.jvm.errors`).
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.compiled import PACKAGE, compiled_source
from tahoe.spark.jvm.errors import origin_of, stores_errors

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_NUMBERS = itertools.count(1)


def proxy(
    spark: SparkSession,
    original: JavaObject,
    answers: object,
    methods: Iterable[str],
    interfaces: Sequence[str],
    *,
    fluent: Sequence[str] = (),
    described: Callable[[object], object] = lambda function: function,
) -> JavaObject:
    """Return a JVM object with these interfaces.

    Args:
        original: the replaced object; its methods are forwarded to it.
        answers: a Python object with the methods to answer in Python; or a JVM function that answers as `AnswersFunction` does.
        methods: their names; all overloads of a name are answered.
        interfaces: full names.
        fluent: those of `methods` that return the proxy; Python's result is ignored. (The answers must not refer to the proxy: neither
            garbage collector sees a cycle through Python and the JVM.)
        described: returns the function that the JVM calls instead of the given one, which answers ``(method, number of arguments,
            arguments…)``; the returned one may add arguments.
    """
    jvm, names = Jvm.of(spark), sorted(methods)
    function = answers if isinstance(answers, JavaObject) else AnswersFunction(answers)
    key = " ".join((*interfaces, *names, *fluent, str(original.getClass().getName())))

    def source() -> tuple[str, str]:
        name = f"Proxy{next(_NUMBERS)}"
        return name, _source(jvm, name, original, _InPython(names, fluent), interfaces)

    return compiled_source(jvm, key, source, original, described(function))


def is_proxy(java: JavaObject) -> bool:
    """Return whether a JVM object is a proxy created here."""
    return str(java.getClass().getName()).startswith(f"{PACKAGE}.Proxy")


def answered(method: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Decorate a method that the JVM calls: an exception from the JVM is raised there again as the original one."""
    storing = stores_errors(method)

    @functools.wraps(method)
    def call(*arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
        try:
            return storing(*arguments, **named)
        except RuntimeError as error:
            java_error = origin_of(error.__cause__)
            if java_error is None:
                raise
            raise Py4JJavaError("", java_error) from None

    return call


class Proxied:
    """The methods of every Java object, for Python objects that implement interfaces."""

    def toString(self) -> str:  # noqa: N802 - Java's name
        """The text in plans and errors."""
        return "Tahoe"

    def hashCode(self) -> int:  # noqa: N802 - Java's name
        """Consistent with `equals`; positive, because a Java ``int`` has a sign bit."""
        return id(self) & 0x7FFFFFFF

    def equals(self, other: object) -> bool:
        """Identity."""
        return other is self


class PartialFunction(Proxied):
    """A Scala ``PartialFunction`` over the nodes of a plan.

    Args:
        change: returns the replacement of a node; None for a node that stays.
    """

    def __init__(self, change: Callable[[JavaObject], JavaObject | None]) -> None:
        self._change = change

    @answered
    def isDefinedAt(self, node: JavaObject) -> bool:  # noqa: N802 - Scala's name
        """Return whether the node is replaced."""
        return self._change(node) is not None

    @answered
    def apply(self, node: JavaObject) -> JavaObject:
        """Return the replacement of the node."""
        return self._change(node)

    @answered
    def applyOrElse(self, node: JavaObject, otherwise: JavaObject) -> JavaObject:  # noqa: N802 - Scala's name
        """Return the replacement of the node; for a node that stays, the result of `otherwise`."""
        replacement = self._change(node)
        return otherwise.apply(node) if replacement is None else replacement

    class Java:
        """The interface that the JVM may call on this object."""

        implements = ("scala.PartialFunction",)


class AnswersFunction(Proxied):
    """``(method, number of arguments, arguments…) → answer``. The arguments are separate, because reading an array takes a call per
    element.

    Args:
        answers: a Python object with the methods.
    """

    def __init__(self, answers: object) -> None:
        self._answers = answers

    @answered
    def apply(self, method: str, count: int, *arguments: object) -> object:
        """Return the answer of a method."""
        return getattr(self._answers, method)(*arguments[:count])

    class Java:
        """The interface that the JVM may call on this object."""

        implements = ("scala.Function6",)


_MOST_ARGUMENTS = 4


# -- the generated class -------------------------------------------------------------------------------------------------------

_CLASS = """
package {package};

public class {name} implements {interfaces} {{
  private final Object original;
  private final scala.Function6 answers;

  public {name}(Object original, scala.Function6 answers) {{ this.original = original; this.answers = answers; }}

  private Object answer(String method, int count, Object a, Object b, Object c, Object d) {{
    try {{
      return answers.apply(method, count, a, b, c, d);
    }} catch (java.lang.reflect.UndeclaredThrowableException error) {{
      org.apache.spark.unsafe.Platform.throwException(error.getCause());
      return null;
    }}
  }}

  public String toString() {{ return "Tahoe"; }}

{methods}
}}
"""


@dataclass(frozen=True, slots=True)
class _Method:
    """A method of an interface, parsed from the text of ``java.lang.reflect.Method``."""

    owner: str
    name: str
    result: str
    types: tuple[str, ...]
    throws: str
    is_default: bool

    @classmethod
    def of(cls, text: str) -> _Method | None:
        """Parse a method; None for a static method and for the methods of every object."""
        match = _METHOD.fullmatch(text)
        assert match is not None, text
        *modifiers, result = match["modifiers"].split()
        if "static" in modifiers or match["name"] in ("toString", "equals", "hashCode"):
            return None
        types = tuple(part.replace("$", ".") for part in match["types"].split(",") if part)
        return cls(match["owner"], match["name"], result.replace("$", "."), types, match["throws"] or "", "default" in modifiers)


_METHOD = re.compile(r"(?P<modifiers>.+) (?P<owner>\S+)\.(?P<name>[\w$]+)\((?P<types>\S*)\)( throws (?P<throws>\S+))?")


@dataclass(frozen=True, slots=True)
class _InPython:
    """The names of the methods answered in Python, and of those among them that return the proxy."""

    methods: Sequence[str]
    fluent: Sequence[str]


def _source(jvm: Jvm, name: str, original: JavaObject, in_python: _InPython, interfaces: Sequence[str]) -> str:
    methods: dict[str, str] = {}
    is_implemented: dict[str, bool] = {}
    for interface in interfaces:
        for method in filter(None, map(_Method.of, _texts(jvm, jvm.reflected(interface).getMethods()))):
            if method.owner not in is_implemented:
                is_implemented[method.owner] = bool(jvm.reflected(method.owner).isInstance(original))
            is_answered = method.name in in_python.methods
            if is_answered or is_implemented[method.owner] or not method.is_default:
                signature = f"{method.name}({','.join(method.types)})"
                is_forwarded = is_implemented[method.owner] and not is_answered
                methods.setdefault(signature, _method_source(method, is_forwarded, method.name in in_python.fluent))
    return _CLASS.format(package=PACKAGE, name=name, interfaces=", ".join(interfaces), methods="\n".join(methods.values()))


def _texts(jvm: Jvm, array: JavaObject) -> list[str]:
    """Return the texts of all elements, in a few calls."""
    # py4j finds methods with an array parameter only for arrays of `Object`.
    objects = jvm.gateway.new_array(jvm.java_class("java.lang.Object"), len(array))
    jvm.java_class("java.lang.System").arraycopy(array, 0, objects, 0, len(array))
    return str(jvm.seq_of(objects).mkString("\n")).splitlines()


def _method_source(method: _Method, is_forwarded: bool, is_fluent: bool) -> str:
    names = [f"a{position}" for position in range(len(method.types))]
    parameters = ", ".join(f"{kind} {name}" for kind, name in zip(method.types, names, strict=True))
    throws = f" throws {method.throws}" if method.throws else ""
    head = f"  public {method.result} {method.name}({parameters}){throws} {{ "
    if is_forwarded:
        call = f"(({method.owner}) original).{method.name}({', '.join(names)})"
        return head + (f"{call}; }}" if method.result == "void" else f"return {call}; }}")
    assert len(names) <= _MOST_ARGUMENTS, method
    arguments = ", ".join((*names, *["null"] * (_MOST_ARGUMENTS - len(names))))
    call = f'answer("{method.name}", {len(names)}, {arguments})'
    return head + (f"{call}; return this; }}" if is_fluent else _returned(call, method.result))


def _returned(call: str, result: str) -> str:
    if result == "void":
        return f"{call}; }}"
    if result == "boolean":
        return f"return ((Boolean) {call}).booleanValue(); }}"
    if result in ("int", "long"):
        return f"return ((Number) {call}).{result}Value(); }}"
    return f"return ({result}) {call}; }}"
