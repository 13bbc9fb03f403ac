"""Copies and creates values of Spark's case classes by field name: their parameters differ between versions, their names rarely."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.versions.members import field_names


def copied(record: JavaObject, *second: object, **changed: object) -> JavaObject:
    """Return a case class value with changed fields, like Scala's ``copy``.

    Args:
        second: the second parameter list, for a class that has one.
    """
    names = field_names(record)
    unknown = set(changed) - set(names)
    assert not unknown, (str(record.getClass().getName()), unknown)
    values = [
        changed[name] if name in changed else getattr(record, f"copy$default${position}")()
        for position, name in enumerate(names, 1)
    ]
    return record.copy(*values, *second)


def created(jvm: Jvm, name: str, *first: object) -> JavaObject:
    """Return a value of the case class ``org.apache.spark.sql.catalyst.{name}``: the first fields as passed, the others with their
    defaults.
    """
    kind = jvm.catalyst(name)
    count = max(
        constructor.getParameterCount()
        for constructor in jvm.reflected(f"org.apache.spark.sql.catalyst.{name}").getConstructors()
    )
    return kind(*first, *(getattr(kind, f"apply$default${position}")() for position in range(len(first) + 1, count + 1)))


def items(seq: JavaObject) -> Iterator[JavaObject]:
    """Iterate over the elements of a Scala sequence, in order."""
    return (seq.apply(position) for position in range(seq.size()))


def with_queries(jvm: Jvm, node: JavaObject, change: Callable[[JavaObject], JavaObject]) -> JavaObject:
    """Return an ``UnresolvedWith`` with changed named queries, which are not among its children."""
    queries = []
    for query in items(node.cteRelations()):
        parts = list(items(query.productIterator().toSeq()))
        parts[1] = change(parts[1])
        queries.append(jvm.java_class(str(query.getClass().getName()))(*parts))
    return copied(node, cteRelations=jvm.seq(*queries))
