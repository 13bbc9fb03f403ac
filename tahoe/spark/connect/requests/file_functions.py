"""Functions of the file that is read, such as ``input_file_name()``, in a request to a Spark Connect server.

They are empty for Delta tables, whose files Python workers read. For files that Spark's JVM reads they have their values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from tahoe.base.exceptions import Unsupported
from tahoe.spark.connect.requests.plan_parts import Message, expressions_of, outermost_relations, parts_of_message
from tahoe.spark.connect.requests.plan_reads import inputs, reads_delta
from tahoe.spark.portable.file_metadata import METADATA
from tahoe.sql.dialect import Token, tokenize
from tahoe.sql.selects import selects_of

FILE_FUNCTIONS = frozenset({"input_file_name", "input_file_block_start", "input_file_block_length"})


def refuse_file_functions(message: Message) -> None:
    """Raise `Unsupported` if a node of a plan calls such a function for the rows of a Delta table.

    Args:
        message: a plan, or a part of one.
    """
    called = next((name for relation in outermost_relations(message) for name in _called(relation)), None)
    if called is not None:
        raise Unsupported(
            f"{called}() is empty in a session of Spark Connect, because Python workers read the files of Delta tables. Use "
            f"{METADATA}.file_path.",
            code="TAHOE_INPUT_FILE_NAME",
            function=called,
        )


def _called(relation: Message) -> Iterator[str]:
    """Yield the functions that a plan calls for the rows of Delta tables."""
    kind = relation.WhichOneof("rel_type")
    if kind is None:
        return
    node = getattr(relation, kind)
    if kind == "with_relations":
        if node.root.WhichOneof("rel_type") == "sql":
            yield from _called_in_query(node.root.sql.query, _delta_names(node))
        for each in (node.root, *node.references):
            yield from _called(each)
        return
    if any(map(reads_delta, inputs(node))):
        yield from (name for part in expressions_of(node) for name in _calls(part))
    for each in inputs(node):
        yield from _called(each)


def _delta_names(query: Message) -> set[str]:
    return {
        each.subquery_alias.alias
        for each in query.references
        if each.WhichOneof("rel_type") == "subquery_alias" and reads_delta(each)
    }


def _called_in_query(text: str, names: Collection[str]) -> Iterator[str]:
    """Yield the functions that a query calls for the rows of relations with these names, or may call for them: it reads them in a common
    table expression, or before a SELECT.
    """
    tokens = tokenize(text)
    selects = selects_of(tokens)
    reading = [number for token, number in zip(tokens, selects.of_tokens, strict=True) if token.name in names]
    may_read = None in reading or any(token.is_word("WITH") for token in tokens)
    for place in _places_of_calls(tokens):
        calling = selects.of_tokens[place]
        if calling is None or may_read or any(selects.is_inside(number, calling) for number in reading):
            yield tokens[place].text.lower()


def _places_of_calls(tokens: Sequence[Token]) -> Iterator[int]:
    for place, (function, bracket) in enumerate(pairwise(tokens)):
        if function.text.lower() in FILE_FUNCTIONS and bracket.is_symbol("("):
            yield place


def _calls(message: Message) -> Iterator[str]:
    if message.DESCRIPTOR.name == "Expression":
        kind = message.WhichOneof("expr_type")
        if kind == "unresolved_function" and message.unresolved_function.function_name.lower() in FILE_FUNCTIONS:
            yield message.unresolved_function.function_name.lower()
        elif kind == "expression_string":
            tokens = tokenize(message.expression_string.expression)
            yield from (tokens[place].text.lower() for place in _places_of_calls(tokens))
    for _, part in parts_of_message(message):
        yield from _calls(part)
