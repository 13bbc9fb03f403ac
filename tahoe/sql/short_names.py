"""Columns with the database of their table, ``db.t.column``, where the rows of the table have an alias, which is one name.

The alias is the table's own name, so ``db.t.column`` becomes ``t.column``. Where that would mean another table, as for ``dev.t`` and
``prod.t`` in one query, the alias is the whole name: ``FROM … AS `spark_catalog.dev.t` ``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.sql.dialect import Token, tokenize
from tahoe.sql.dml import Delete, Merge, MergeClause, Update
from tahoe.sql.selects import selects_of

Name = tuple[str, ...]
"""The parts of a table's name: perhaps its catalog, its database, and its own name."""
MOST_PARTS = 3
"""Of a table's name."""


@dataclass(frozen=True, slots=True)
class QueriedTable:
    """A table whose columns a text may name.

    Args:
        name: with catalog and database, where they are known.
        start, stop: its place in the text; None for a table of the statement around the text, such as the target of MERGE.
        alias: the one that the user gave it.
        takes_alias: whether the text's author gave it none, and the rows that replace it need one.
    """

    name: Name
    start: int | None = None
    stop: int | None = None
    alias: str | None = None
    takes_alias: bool = True

    @property
    def key(self) -> Name:
        """The name in lower case."""
        return tuple(part.lower() for part in self.name)

    def alias_among(self, whole: Collection[Name]) -> str:
        """Return the alias of the table's rows.

        Args:
            whole: the keys of the tables whose alias is the whole name.
        """
        return ".".join(self.name) if self.key in whole else self.name[-1]


@dataclass(frozen=True, slots=True)
class Replacement:
    """A new text for the part of a text from `start` to `stop`."""

    start: int
    stop: int
    text: str


@dataclass(frozen=True, slots=True)
class Qualifier:
    """The names before a column, each with a dot after it, from a place among the tokens on; in lower case."""

    place: int
    names: Name


def qualifiers(tokens: Sequence[Token]) -> Iterator[Qualifier]:
    """Yield the names before the columns of a text, in their order."""
    for place, token in enumerate(tokens):
        if token.name is None or (place and tokens[place - 1].is_symbol(".")):
            continue
        names, end = list[str](), place
        while end + 1 < len(tokens) and tokens[end + 1].is_symbol(".") and (name := tokens[end].name) is not None:
            names.append(name.lower())
            end += 2
        if names:
            yield Qualifier(place, tuple(names))


class QualifiedText:
    """A text whose columns may have a table or a database before them.

    Args:
        tables: those in its FROM clauses, and those of the statement around it.
    """

    def __init__(self, text: str, tables: Sequence[QueriedTable]) -> None:
        self._tables = tables
        self._by_suffix = {
            table.key[-count:]: table.key
            for table in tables
            if table.takes_alias and table.alias is None
            for count in range(2, len(table.name) + 1)
        }
        self._tokens: Sequence[Token] = tokenize(text) if self._by_suffix else ()
        self._qualifiers = [each for each in qualifiers(self._tokens) if not self._is_in_table_name(each)]
        self._selects = selects_of(self._tokens)
        self._named, self._aliases = self._names_by_select()

    def whole_names(self) -> set[Name]:
        """Return the keys of the tables that need their whole name as an alias: the last part alone would mean another relation."""
        named = ((qualifier, self._table_of(qualifier)) for qualifier in self._qualifiers)
        return {key for qualifier, key in named if key is not None and list(self._nearest(qualifier.place, key[-1])) != [key]}

    def replacements(self, whole: Collection[Name]) -> Iterator[Replacement]:
        """Yield the changes of the qualifiers of columns, in their order. Raises `InvalidRequest` for a name that means two tables.

        Args:
            whole: the keys of the tables whose alias is the whole name.
        """
        short = {key[-1] for key in whole}
        for qualifier in self._qualifiers:
            key = self._table_of(qualifier)
            if key is not None:
                table = self._nearest(qualifier.place, key[-1], key).get(key)
                if table is None or table.takes_alias:
                    last = self._tokens[qualifier.place + 2 * (len(self._matched(qualifier)) - 1)]
                    shown = quote_identifier(".".join(key if table is None else table.name)) if key in whole else last.text
                    yield Replacement(self._tokens[qualifier.place].start, last.stop, shown)
            elif qualifier.names[0] in short:
                table = self._only_table(qualifier)
                if table is not None and table.key in whole and table.takes_alias:
                    token = self._tokens[qualifier.place]
                    yield Replacement(token.start, token.stop, quote_identifier(".".join(table.name)))

    def _only_table(self, qualifier: Qualifier) -> QueriedTable | None:
        """Return the table that one name before a column means; None if it may be the alias of a query."""
        tables = list(self._nearest(qualifier.place, qualifier.names[0]).values())
        if len(tables) > 1:
            name = self._tokens[qualifier.place].text
            raise InvalidRequest(
                f"{name} before a column is ambiguous: it could be {' or '.join('.'.join(table.name) for table in tables)}. Give the tables "
                "aliases, or name the database too.",
                code="AMBIGUOUS_REFERENCE",
                name=name,
            )
        return tables[0] if tables else None

    def _is_in_table_name(self, qualifier: Qualifier) -> bool:
        start = self._tokens[qualifier.place].start
        places = ((table.start, table.stop) for table in self._tables)
        return any(first is not None and stop is not None and first <= start < stop for first, stop in places)

    def _matched(self, qualifier: Qualifier) -> Name:
        """Return the names of a qualifier that are a table with its database."""
        prefixes = (qualifier.names[:count] for count in range(MOST_PARTS, 1, -1) if len(qualifier.names) >= count)
        return next((names for names in prefixes if names in self._by_suffix), ())

    def _table_of(self, qualifier: Qualifier) -> Name | None:
        return self._by_suffix.get(self._matched(qualifier))

    def _names_by_select(self) -> tuple[dict[tuple[str, int | None], dict[Name, QueriedTable]], set[tuple[str, int | None]]]:
        """Return the tables by the name that columns may have before them and by the SELECT whose FROM has them; and other aliases."""
        named: dict[tuple[str, int | None], dict[Name, QueriedTable]] = defaultdict(dict)
        places = {token.start: place for place, token in enumerate(self._tokens)}
        for table in self._tables if self._tokens else ():
            select = None if table.start is None else self._selects.of_tokens[places[table.start]]
            key = table.key if table.alias is None else (table.alias,)
            named[(table.alias or table.name[-1]).lower(), select][key] = table
        short, starts = {name for name, _ in named}, {table.start for table in self._tables}
        aliases = {
            (token.name.lower(), self._selects.of_tokens[place])
            for place, token in enumerate(self._tokens)
            if token.name is not None and token.name.lower() in short and token.start not in starts and self._may_be_alias(place)
        }
        return named, aliases

    def _may_be_alias(self, place: int) -> bool:
        """Whether the name at a place may be the alias of a query in brackets, or a named query in FROM."""
        before = self._tokens[place - 1] if place else None
        is_qualifier = place + 1 < len(self._tokens) and self._tokens[place + 1].is_symbol(".")
        return before is not None and not is_qualifier and (before.is_symbol(")", ",") or before.is_word("AS", "FROM", "JOIN"))

    def _nearest(self, place: int, name: str, key: Name | None = None) -> dict[Name, QueriedTable]:
        """Return the tables that a name means at a place: those of the innermost SELECT around it that has any.

        Args:
            key: look for the SELECT that has this table.
        """
        select = self._selects.of_tokens[place]
        while True:
            tables = self._named.get((name, select), {})
            is_alias = key is None and (name, select) in self._aliases
            if select is None or is_alias or (bool(tables) if key is None else key in tables):
                return tables
            select = self._selects.around[select]


def with_short_names(
    statement: Delete | Update | Merge,
    target: QueriedTable | None,
    source: QueriedTable | None,
    tables_in: Callable[[str], Sequence[QueriedTable]],
) -> Delete | Update | Merge:
    """Return a statement whose conditions and assignments name columns without databases, with the aliases for them.

    Args:
        target, source: None for a path and for a query without an alias.
        tables_in: returns the tables in the subqueries of an expression; they take no alias.
    """
    around = [table for table in (target, source) if table is not None]
    qualified = {text: QualifiedText(text, [*around, *tables_in(text)]) for text in _texts_of(statement)}
    whole = set[Name]().union(*(text.whole_names() for text in qualified.values()))

    def short(text: str) -> str:
        return replaced(text, qualified[text].replacements(whole))

    def of_values(values: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
        return tuple((short(column), short(value)) for column, value in values)

    def of_clause(clause: MergeClause) -> MergeClause:
        condition = None if clause.condition is None else short(clause.condition)
        return replace(clause, condition=condition, values=None if clause.values is None else of_values(clause.values))

    alias = statement.alias if target is None or target.key not in whole else target.alias_among(whole)
    if isinstance(statement, Merge):
        source_alias = statement.source_alias if source is None or source.key not in whole else source.alias_among(whole)
        clauses = tuple(map(of_clause, statement.clauses))
        return replace(statement, alias=alias, source_alias=source_alias, on=short(statement.on), clauses=clauses)
    where = None if statement.where is None else short(statement.where)
    if isinstance(statement, Update):
        return replace(statement, alias=alias, values=of_values(statement.values), where=where)
    return replace(statement, alias=alias, where=where)


def _texts_of(statement: Delete | Update | Merge) -> Iterator[str]:
    if isinstance(statement, Merge):
        yield statement.on
        for clause in statement.clauses:
            yield from [] if clause.condition is None else [clause.condition]
            yield from chain.from_iterable(clause.values or ())
        return
    yield from [] if statement.where is None else [statement.where]
    if isinstance(statement, Update):
        yield from chain.from_iterable(statement.values)


def replaced(text: str, replacements: Iterator[Replacement]) -> str:
    """Return a text with its replacements, which are in their order."""
    parts, place = list[str](), 0
    for each in replacements:
        parts += [text[place : each.start], each.text]
        place = each.stop
    return "".join([*parts, text[place:]])
