"""Which reads of Delta tables in a request to a Spark Connect server push filters to the data source, so that files are skipped, and the
names of the columns that they need.

Spark keeps the files of a pushed filter in the relation of the plan, and uses them for every other scan of the same relation: of a temporary
view, of a DataFrame whose schema was requested before, of a common table expression. Such a scan would miss rows. So filters are pushed only
in a request that executes a plan, for a relation with a single scan, and the option has another value for each read: then the server shares
the relation with no other plan. The same holds for the columns of a read (`tahoe.spark.connect.query_columns`).

The server also keeps the relation of a plan that it has executed, with the version that it read. So every other read has the number of its
request in the same option, which makes it a new relation: a DataFrame that is used again shows the newest version.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

from tahoe.spark.connect.query_columns import CHOOSING, TRANSPARENT, names_in
from tahoe.sql.dialect import tokenize
from tahoe.sql.named_queries import uses_each_at_most_once

_NUMBERS = count()
_PERSISTED: WeakKeyDictionary[Any, dict[int, int]] = WeakKeyDictionary()
"""The client of each session with Tahoe → the ids of its plans that the server keeps in memory, each with the number of its reads, by which
the server finds it.
"""
_RELATION = "spark.connect.Relation"
_PLANS = {"plan", "relation", "other"}
"""The arguments of ``SparkConnectClient._analyze`` that are plans or relations."""
_FILTERING = ("filter", "join", "as_of_join", "lateral_join")


def enable(client: Any) -> None:
    """Let the filters in requests of a client skip files of Delta tables."""
    _PERSISTED.setdefault(client, {})


def is_enabled(client: Any) -> bool:
    """Whether a client belongs to a session with Tahoe."""
    return client in _PERSISTED


def execute(original: Callable[..., Any], client: Any, request: Any, *positional: Any, **named: Any) -> Any:
    """Run ``SparkConnectClient._execute_and_fetch_as_iterator`` with the option in the request's plan."""
    if client in _PERSISTED:
        _set_options(request.plan, _PERSISTED[client])
    return original(client, request, *positional, **named)


def analyze(original: Callable[..., Any], client: Any, method: str, **arguments: Any) -> Any:
    """Run ``SparkConnectClient._analyze`` with the numbers of persisted plans, and note which plans are persisted."""
    if client in _PERSISTED:
        persisted, plan_id = _PERSISTED[client], _id_of(arguments.get("relation"))
        if method == "persist":
            persisted.setdefault(plan_id, next(_NUMBERS))
        for name in _PLANS & arguments.keys():
            _set_numbers(arguments[name], persisted, None)
        if method == "unpersist":
            persisted.pop(plan_id, None)
    return original(client, method, **arguments)


def _id_of(relation: Any) -> int:
    return 0 if relation is None else int(relation.common.plan_id)


def forget_persisted(client: Any) -> None:
    """Note that the server has no plan in memory any more."""
    _PERSISTED.get(client, {}).clear()


def reads_delta(plan: Any) -> bool:
    """Whether a plan (``spark.connect.Plan``) reads a Delta table."""
    return any(True for _ in _sources(plan, {}, None))


@dataclass(frozen=True, slots=True)
class DeltaRead:
    """A read of a Delta table that a plan scans once.

    Args:
        source: the ``spark.connect.Read.DataSource``.
        pushes: whether a filter or a join is above it.
        by_name: whether the plan reads its columns by their names alone.
    """

    source: Any
    pushes: bool
    by_name: bool


def delta_reads(plan: Any, persisted: Collection[int] = ()) -> Iterator[DeltaRead]:
    """Yield the reads of Delta tables in a plan (``spark.connect.Plan``) whose relations are scanned once.

    Other commands than a query and a write, such as the creation of a view, keep the relation for later scans.

    Args:
        persisted: ids of plans.
    """
    kind = plan.WhichOneof("op_type")
    if kind == "root":
        yield from _reads(plan.root, persisted, _Above())
    elif kind == "command" and plan.command.WhichOneof("command_type") == "write_operation":
        yield from _reads(plan.command.write_operation.input, persisted, _Above())


@dataclass(frozen=True, slots=True)
class _Above:
    """The nodes above a relation.

    Args:
        filters: whether one of them filters.
        by_name: whether one of them chooses columns, and those below it read columns by their names.
    """

    filters: bool = False
    by_name: bool = False

    def with_node(self, kind: str, node: Any) -> _Above:
        by_name = kind in CHOOSING or (self.by_name and (kind in TRANSPARENT or _is_by_columns(kind, node)))
        return _Above(self.filters or kind in _FILTERING, by_name)


def _is_by_columns(kind: str, node: Any) -> bool:
    return kind == "deduplicate" and not node.all_columns_as_keys


def _reads(relation: Any, persisted: Collection[int], above: _Above) -> Iterator[DeltaRead]:
    kind = relation.WhichOneof("rel_type")
    if kind is None or relation.common.plan_id in persisted:
        return
    if kind == "read":
        source = _delta_source(relation.read)
        if source is not None:
            # A schema of the user has all columns of the table.
            yield DeltaRead(source, above.filters, above.by_name and not source.schema)
    elif kind == "with_relations":
        for reference in _references_to_one_place(relation.with_relations):
            yield from _reads(reference, persisted, _Above(filters=True, by_name=True))
    else:
        node = getattr(relation, kind)
        for each in _inputs(node):
            yield from _reads(each, persisted, above.with_node(kind, node))


def _delta_source(read: Any) -> Any | None:
    """Return the ``spark.connect.Read.DataSource`` of a read of a Delta table; None for streams and other formats."""
    return read.data_source if read.data_source.format.lower() == "delta" and not read.is_streaming else None


def _set_options(plan: Any, persisted: Mapping[int, int]) -> None:
    """Tell the data sources to take filters, and the names in the plan; make each read a new one."""
    reads = list(delta_reads(plan, persisted))
    names = names_in(plan) if any(read.by_name for read in reads) else None
    _set_numbers(plan, persisted, next(_NUMBERS))
    for read in reads:
        number = next(_NUMBERS)
        if read.pushes:
            read.source.options["pushFilters"] = f"true:{number}"
        if read.by_name and names is not None and "queryNames" not in read.source.options:
            read.source.options["queryNames"] = f"{number}:{json.dumps(sorted(names))}"


def _set_numbers(message: Any, persisted: Mapping[int, int], number: int | None) -> None:
    """Set the number of each read of a Delta table in a message of PySpark's client.

    Args:
        number: of the request, for the reads outside of persisted plans; None leaves them as they are.
    """
    for source, own in _sources(message, persisted, number):
        # The relation of a statement, which the server returns, has the number of its request. Other values are the user's.
        if own is not None and source.options.get("pushFilters", "false:").startswith("false:"):
            source.options["pushFilters"] = f"false:{own}"


def _sources(message: Any, persisted: Mapping[int, int], number: int | None) -> Iterator[tuple[Any, int | None]]:
    """Yield the ``spark.connect.Read.DataSource`` of each read of a Delta table, apart from streams, with its number."""
    if message.DESCRIPTOR.full_name == _RELATION:
        number = persisted.get(message.common.plan_id, number)
        if message.WhichOneof("rel_type") == "read":
            source = _delta_source(message.read)
            if source is not None:
                yield source, number
            return
    for field, value in message.ListFields():
        if field.message_type is not None and not field.message_type.GetOptions().map_entry:
            for part in [value] if hasattr(value, "ListFields") else value:
                yield from _sources(part, persisted, number)


def _references_to_one_place(query: Any) -> Iterator[Any]:
    """Yield the relations of a query in SQL whose names its text has once.

    Not those of a query whose common table expressions are scanned several times, nor those to which the expressions of a DataFrame refer.
    """
    if query.root.WhichOneof("rel_type") != "sql":
        return
    tokens = tokenize(query.root.sql.query)
    if not uses_each_at_most_once(tokens):
        return
    mentions = Counter(token.name for token in tokens)
    for reference in query.references:
        if reference.WhichOneof("rel_type") == "subquery_alias" and mentions[reference.subquery_alias.alias] == 1:
            yield reference.subquery_alias.input


def _inputs(node: Any) -> Iterator[Any]:
    """Yield the relations of which a node of a plan is made."""
    for field, value in node.ListFields():
        if field.message_type is not None and field.message_type.full_name == _RELATION:
            yield from (value,) if hasattr(value, "ListFields") else value
