"""The files of a table that a MERGE from a Spark Connect client has to read: those that may have the keys of the source.

The client reads the condition after ON as text: of its parts, joined by AND, those of the form ``target column = source column``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame

from tahoe.expr.tree.predicate import TRUE
from tahoe.expr.tree.predicate import Column as PredicateColumn
from tahoe.schema.collations import compares_by_bytes
from tahoe.schema.types import DecimalType, StructField, StructType
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.commands.source_keys import READ, Candidates, Key, candidates_of
from tahoe.spark.connect.conditions import as_sql
from tahoe.spark.names.frame_columns import column_in
from tahoe.spark.scan.file_index import opaque_columns
from tahoe.sql.dialect import Token, tokenize


@dataclass(frozen=True)
class MergeSource:
    """The stored source of a MERGE.

    Args:
        columns: its own columns.
        alias: its name in expressions; None without one.
    """

    rows: DataFrame
    columns: StructType
    alias: str | None


def candidates(snapshot: Snapshot, target_alias: str | None, source: MergeSource, on: str | Column) -> Candidates:
    """Count the source rows and derive a condition on the target from their keys.

    Args:
        on: the condition after ON.
    """
    text = on if isinstance(on, str) else as_sql(on)
    keys = [] if text is None else list(_keys(snapshot, target_alias, source, text))
    return candidates_of(snapshot, source.rows, keys, TRUE)


def _keys(snapshot: Snapshot, target_alias: str | None, source: MergeSource, text: str) -> Iterator[Key]:
    opaque = set(opaque_columns(snapshot))
    for left, right in equalities(text):
        for first, second in ((left, right), (right, left)):
            column = _column(first, snapshot.schema, target_alias, source.columns)
            other = _column(second, source.columns, source.alias, snapshot.schema)
            if column is not None and other is not None and column.name not in opaque and _is_key(column, other):
                values = column_in(source.rows, other.name)
                yield Key(PredicateColumn((column.name,)), column.data_type, values, str(other.data_type))
                break


def _is_key(column: StructField, other: StructField) -> bool:
    same = column.data_type == other.data_type and compares_by_bytes(column) and compares_by_bytes(other)
    return same and (str(column.data_type) in READ or isinstance(column.data_type, DecimalType))


def _column(parts: Sequence[str], columns: StructType, alias: str | None, others: StructType) -> StructField | None:
    """Return the column of one side with this name, which its alias may qualify; None if the name may be of the other side."""
    if len(parts) == 2 and alias is not None and parts[0].lower() == alias.lower():
        return columns.find(parts[1])
    return columns.find(parts[0]) if len(parts) == 1 and others.find(parts[0]) is None else None


def equalities(text: str) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield the names on both sides of each ``name = name`` among the parts of a condition that AND joins."""
    for part in _conjuncts(list(tokenize(text))):
        place = next((number for number, token in enumerate(part) if token.is_symbol("=")), None)
        if place is not None:
            is_double = len(part) > place + 1 and part[place + 1].is_symbol("=")
            left, right = _name(part[:place]), _name(part[place + 1 + is_double :])
            if left is not None and right is not None:
                yield left, right


def _conjuncts(tokens: list[Token]) -> Iterator[list[Token]]:
    while _is_in_brackets(tokens):
        tokens = tokens[1:-1]
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        if depth == 0 and token.is_word("OR"):
            return
        if depth == 0 and token.is_word("AND"):
            parts.append([])
            continue
        depth += token.is_symbol("(", "[") + token.is_word("CASE") - token.is_symbol(")", "]") - token.is_word("END")
        parts[-1].append(token)
    if len(parts) == 1:
        yield parts[0]
        return
    for part in parts:
        yield from _conjuncts(part)


def _is_in_brackets(tokens: list[Token]) -> bool:
    """Whether one pair of brackets is around all of the tokens."""
    if len(tokens) < 2 or not tokens[0].is_symbol("("):
        return False
    depth = 0
    for number, token in enumerate(tokens):
        depth += token.is_symbol("(") - token.is_symbol(")")
        if depth == 0:
            return number == len(tokens) - 1
    return False


def _name(tokens: list[Token]) -> tuple[str, ...] | None:
    """Return the identifiers of a name; None for any other expression."""
    names = [token.name for token in tokens[::2] if token.name is not None and not token.text[:1].isdigit()]
    is_name = len(tokens) == 2 * len(names) - 1 and all(token.is_symbol(".") for token in tokens[1::2])
    return tuple(names) if is_name else None
