"""Which reads of Delta tables in a request to a Spark Connect server push filters to the data source, so that files are skipped.

Spark keeps the files of a pushed filter in the relation of the plan, and uses them for every other scan of the same relation: of a temporary
view, of a DataFrame whose schema was requested before, of a common table expression. Such a scan would miss rows. So filters are pushed only
in a request that executes a plan, for a relation with a single scan, and the option has another value for each read: then the server shares
the relation with no other plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

from tahoe.sql.dialect import tokenize

_NUMBERS = count()
_PERSISTED: WeakKeyDictionary[Any, set[int]] = WeakKeyDictionary()
"""The client of each session with Tahoe → the ids of its plans that the server keeps in memory, which it finds by their unchanged reads."""
_FILTERING = ("filter", "join", "as_of_join", "lateral_join")


def enable(client: Any) -> None:
    """Let the filters in requests of a client skip files of Delta tables."""
    _PERSISTED.setdefault(client, set())


def execute(original: Callable[..., Any], client: Any, request: Any, *positional: Any, **named: Any) -> Any:
    """Run ``SparkConnectClient._execute_and_fetch_as_iterator`` with the option in the request's plan."""
    if client in _PERSISTED:
        for source in sources_that_push(request.plan, _PERSISTED[client]):
            source.options["pushFilters"] = f"true:{next(_NUMBERS)}"
    return original(client, request, *positional, **named)


def analyze(original: Callable[..., Any], client: Any, method: str, **arguments: Any) -> Any:
    """Run ``SparkConnectClient._analyze``, and note which plans are persisted."""
    if client in _PERSISTED and method in ("persist", "unpersist"):
        persisted = _PERSISTED[client]
        change = persisted.add if method == "persist" else persisted.discard
        change(arguments["relation"].common.plan_id)
    return original(client, method, **arguments)


def sources_that_push(plan: Any, persisted: Collection[int] = ()) -> Iterator[Any]:
    """Yield the data sources of Delta tables in a plan (``spark.connect.Plan``) that are below a filter and scanned once.

    Other commands than a query and a write, such as the creation of a view, keep the relation for later scans.

    Args:
        persisted: ids of plans.
    """
    kind = plan.WhichOneof("op_type")
    if kind == "root":
        yield from _sources(plan.root, persisted, below_filter=False)
    elif kind == "command" and plan.command.WhichOneof("command_type") == "write_operation":
        yield from _sources(plan.command.write_operation.input, persisted, below_filter=False)


def _sources(relation: Any, persisted: Collection[int], *, below_filter: bool) -> Iterator[Any]:
    kind = relation.WhichOneof("rel_type")
    if kind is None or relation.common.plan_id in persisted:
        return
    if kind == "read":
        source = relation.read.data_source
        if below_filter and source.format.lower() == "delta" and not relation.read.is_streaming:
            yield source
    elif kind == "with_relations":
        for reference in _references_to_one_place(relation.with_relations):
            yield from _sources(reference, persisted, below_filter=True)
    else:
        for each in _inputs(getattr(relation, kind)):
            yield from _sources(each, persisted, below_filter=below_filter or kind in _FILTERING)


def _references_to_one_place(query: Any) -> Iterator[Any]:
    """Yield the relations of a query in SQL whose names its text has once.

    A common table expression may be scanned several times, and so may a relation to which the expressions of a DataFrame refer.
    """
    if query.root.WhichOneof("rel_type") != "sql":
        return
    tokens = tokenize(query.root.sql.query)
    if any(token.is_word("WITH") for token in tokens):
        return
    mentions = Counter(token.name for token in tokens)
    for reference in query.references:
        if reference.WhichOneof("rel_type") == "subquery_alias" and mentions[reference.subquery_alias.alias] == 1:
            yield reference.subquery_alias.input


def _inputs(node: Any) -> Iterator[Any]:
    """Yield the relations of which a node of a plan is made."""
    for field, value in node.ListFields():
        if field.message_type is not None and field.message_type.full_name == "spark.connect.Relation":
            yield from (value,) if hasattr(value, "ListFields") else value
