"""The messages of which a plan of Spark Connect is made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

Message: TypeAlias = Any
"""A message of ``spark.connect``, whose generated classes type checkers do not know."""
RELATION = "spark.connect.Relation"
"""The name of the message that is a node of a plan with the nodes below it."""


def parts_of_message(message: Message) -> Iterator[tuple[str, Message]]:
    """Yield the messages in the fields of a message, each with the name of its field."""
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            yield from ((field.name, part) for part in value.values() if hasattr(part, "ListFields"))
        else:
            yield from ((field.name, part) for part in ([value] if hasattr(value, "ListFields") else value))


def outermost_relations(message: Message) -> Iterator[Message]:
    """Yield the relations in a message that are in no other relation."""
    if message.DESCRIPTOR.full_name == RELATION:
        yield message
        return
    for _, part in parts_of_message(message):
        yield from outermost_relations(part)


def expressions_of(node: Message) -> list[Message]:
    """Return the expressions of a node, without its inputs."""
    return [part for _, part in parts_of_message(node) if part.DESCRIPTOR.full_name != RELATION]
