"""The reads of Delta tables in a request to a Spark Connect server.

Spark keeps the files of a pushed filter in the relation of the plan, and uses them for every other scan of the same relation: of a temporary
view, of a DataFrame whose schema was requested before, of a common table expression. Such a scan would miss rows. So filters are pushed only
in a request that executes a plan, for a relation with a single scan. The same holds for the columns of a read
(`tahoe.spark.connect.requests.query_columns`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from tahoe.spark.connect.requests.plan_parts import RELATION, Message
from tahoe.spark.connect.requests.query_columns import CHOOSING, TRANSPARENT
from tahoe.sql.dialect import tokenize
from tahoe.sql.named_queries import uses_each_at_most_once

_FILTERING = ("filter", "join", "as_of_join", "lateral_join")


def reads_delta(plan: Message) -> bool:
    """Whether a plan (``spark.connect.Plan``) reads a Delta table."""
    return any(True for _ in sources(plan, {}, None))


@dataclass(frozen=True, slots=True)
class DeltaRead:
    """A read of a Delta table that a plan scans once.

    Args:
        source: the ``spark.connect.Read.DataSource``.
        pushes: whether a filter or a join is above it.
        by_name: whether the plan reads its columns by their names alone.
    """

    source: Message
    pushes: bool
    by_name: bool


def delta_reads(plan: Message, persisted: Collection[int] = ()) -> Iterator[DeltaRead]:
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

    def with_node(self, kind: str, node: Message) -> _Above:
        by_name = kind in CHOOSING or (self.by_name and (kind in TRANSPARENT or _is_by_columns(kind, node)))
        return _Above(self.filters or kind in _FILTERING, by_name)


def _is_by_columns(kind: str, node: Message) -> bool:
    return kind == "deduplicate" and not node.all_columns_as_keys


def _reads(relation: Message, persisted: Collection[int], above: _Above) -> Iterator[DeltaRead]:
    kind = relation.WhichOneof("rel_type")
    if kind is None or relation.common.plan_id in persisted:
        return
    if kind == "read":
        source = delta_source(relation.read)
        if source is not None:
            # A schema of the user has all columns of the table.
            yield DeltaRead(source, above.filters, above.by_name and not source.schema)
    elif kind == "with_relations":
        for reference in _references_to_one_place(relation.with_relations):
            yield from _reads(reference, persisted, _Above(filters=True, by_name=True))
    else:
        node = getattr(relation, kind)
        for each in inputs(node):
            yield from _reads(each, persisted, above.with_node(kind, node))


def delta_source(read: Message) -> Message | None:
    """Return the ``spark.connect.Read.DataSource`` of a read of a Delta table; None for streams and other formats."""
    return read.data_source if read.data_source.format.lower() == "delta" and not read.is_streaming else None


def sources(message: Message, persisted: Mapping[int, int], number: int | None) -> Iterator[tuple[Message, int | None]]:
    """Yield the ``spark.connect.Read.DataSource`` of each read of a Delta table, apart from streams, with its number."""
    if message.DESCRIPTOR.full_name == RELATION:
        number = persisted.get(message.common.plan_id, number)
        if message.WhichOneof("rel_type") == "read":
            source = delta_source(message.read)
            if source is not None:
                yield source, number
            return
    for field, value in message.ListFields():
        if field.message_type is not None and not field.message_type.GetOptions().map_entry:
            for part in [value] if hasattr(value, "ListFields") else value:
                yield from sources(part, persisted, number)


def _references_to_one_place(query: Message) -> Iterator[Message]:
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


def inputs(node: Message) -> Iterator[Message]:
    """Yield the relations of which a node of a plan is made."""
    for field, value in node.ListFields():
        if field.message_type is not None and field.message_type.full_name == RELATION:
            yield from (value,) if hasattr(value, "ListFields") else value
