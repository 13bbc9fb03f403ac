"""Where a query reads ``delta.`/path` `` as a relation, and the same text with these slices replaced. Nothing else of the text changes.

A reference is one where the grammar has a relation: after FROM, JOIN, TABLE, and after a comma between relations. ``delta.`x` `` anywhere
else is field ``x`` of something named ``delta``, and so is what follows FROM in ``extract(year FROM …)`` and ``IS DISTINCT FROM …``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tahoe.exceptions import Unsupported
from tahoe.sql.dialect import NAME, STRING, WORD, Cursor, Token
from tahoe.sql.table_name import name_at

__all__ = ["Reference", "Replacement", "path_at", "references", "rewritten"]


@dataclass(frozen=True, slots=True)
class Reference:
    """A table by path, read as a relation.

    Args:
        start, stop: the slice of the text that names the table and the version.
        path: of the table, as it stands between the back-ticks.
        travel: ``version`` or ``timestamp`` where it is read as of one, else None.
        expression: the user's text of that version or time.
        form: ``relation``, ``sampled`` (TABLESAMPLE follows) or ``query`` (the slice is ``TABLE delta.`/path` ``, a whole query).
    """

    start: int
    stop: int
    path: str
    travel: str | None = None
    expression: str | None = None
    form: str = "relation"


@dataclass(frozen=True, slots=True)
class Replacement:
    """What stands in the text now, and what the user wrote there."""

    written: str
    generated: str


def references(text: str, tokens: Sequence[Token]) -> tuple[Reference, ...]:
    """The references of a query, in order.

    Raises `Unsupported` for one with options (``WITH (…)``).
    """
    found: list[Reference] = []
    levels = [_Level(is_query=True)]
    cursor = Cursor(text, tokens)
    while not cursor.at_end:
        level = levels[-1]
        if level.expecting and path_at(cursor) is not None:
            found.append(_reference(cursor))
            level.expecting = False
            continue
        token, before = cursor.peek(), cursor.peek(-1) if cursor.place else None
        if token.is_symbol("("):
            levels.append(_Level(is_query=level.expecting, in_from=level.expecting, expecting=level.expecting))
            level.expecting = False
        elif token.is_symbol(")"):
            if len(levels) > 1:
                levels.pop()
        else:
            level.go_on(token, before)
        cursor.place += 1
    return tuple(found)


def rewritten(
    text: str, found: Sequence[Reference], function: str, statement: int | None = None
) -> tuple[str, tuple[Replacement, ...]]:
    """The text with a call of a table function in the place of each reference, and what was replaced.

    Args:
        function: its name; the arguments are the path, for time travel the kind and the user's own expression, and the statement.
        statement: the last argument of each call, None for none.
    """
    edges = [(0, 0), *((one.start, one.stop) for one in found), (len(text), len(text))]
    kept = [text[stop:start] for (_, stop), (start, _) in pairwise(edges)]
    replacements = tuple(Replacement(text[one.start : one.stop], _call(one, function, statement)) for one in found)
    parts = [kept[0]]
    for one, after in zip(replacements, kept[1:], strict=True):
        parts += [one.generated, after]
    return "".join(parts), replacements


def path_at(cursor: Cursor) -> tuple[str, int] | None:
    """The path of a table named ``delta.`/path` `` that comes, and how many tokens name it (`tahoe.sql.table_name`)."""
    named = name_at(cursor)
    return None if named is None or named[0].path is None else (named[0].path, named[1])


@dataclass(slots=True)
class _Level:
    """What is known between two brackets.

    Attributes:
        is_query: a query stands here, so FROM begins its relations.
        in_from: relations are being listed, so a comma is followed by another.
        expecting: a relation comes.
    """

    is_query: bool = False
    in_from: bool = False
    expecting: bool = False

    def go_on(self, token: Token, before: Token | None) -> None:
        """Past one token that is no bracket."""
        if token.is_symbol(","):
            self.expecting = self.in_from
        elif token.is_word("FROM"):
            starts = self.is_query or before is None or before.is_symbol("(")
            if starts and not (before is not None and before.is_word("DISTINCT", "DELETE")):
                self.is_query = self.in_from = self.expecting = True
        elif token.is_word("JOIN"):
            self.expecting = True
        elif token.is_word("TABLE"):
            # `TABLE t` is a query of its own; `INSERT INTO TABLE t` and the like are no queries.
            self.expecting = before is None or not before.is_word(*_BEFORE_A_NAME)
        elif token.is_word("SELECT", "WITH"):
            self.is_query, self.in_from, self.expecting = True, False, False
        elif token.is_word(*_AFTER_FROM) or token.is_symbol(";", "|"):
            self.in_from = self.expecting = False
        elif not token.is_word("LATERAL"):
            self.expecting = False


# Keywords after which TABLE belongs to the name of what a statement is about.
_BEFORE_A_NAME = (
    *("INTO", "OVERWRITE", "CREATE", "REPLACE", "EXTERNAL", "TEMPORARY", "DROP", "ALTER", "TRUNCATE", "REFRESH", "CACHE", "LAZY"),
    *("UNCACHE", "ANALYZE", "REPAIR", "REORG", "RESTORE", "DESCRIBE", "DESC", "ON", "SHOW", "FOR"),
)
_AFTER_FROM = (
    *("WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET", "WINDOW", "QUALIFY"),
    *("UNION", "EXCEPT", "INTERSECT", "MINUS", "INSERT"),
)


def _reference(cursor: Cursor) -> Reference:
    """The reference that comes; the cursor goes past it."""
    named = path_at(cursor)
    assert named is not None
    path, count = named
    begins = cursor.peek(-1) if cursor.place and cursor.peek(-1).is_word("TABLE") else cursor.peek()
    form = "query" if begins.is_word("TABLE") else "relation"
    cursor.place += count
    stop, travel, expression = cursor.peek(-1).stop, None, None
    kind = _travel(cursor)
    if kind is not None:
        travel = kind
        start = cursor.peek().start
        _operand(cursor)
        while travel == "timestamp" and _operator(cursor):
            _operand(cursor)
        stop = cursor.peek(-1).stop
        expression = cursor.text[start:stop]
    if cursor.peek().is_word("WITH") and cursor.peek(1).is_symbol("("):
        raise Unsupported(
            f"Options of a relation (WITH …) are not supported for table delta.`{path}` by this version of Tahoe. Use "
            "VERSION AS OF or TIMESTAMP AS OF, or spark.read.format('delta').option(…).",
            code="TAHOE_OPTION_NOT_SUPPORTED",
            table=path,
        )
    if cursor.comes("TABLESAMPLE"):
        form = "sampled"
    return Reference(begins.start, stop, path, travel, expression, form)


def _travel(cursor: Cursor) -> str | None:
    """Whether ``[FOR] VERSION AS OF`` or the like comes; the cursor goes past it."""
    ahead = 1 if cursor.comes("FOR") else 0
    if not (cursor.peek(ahead + 1).is_word("AS") and cursor.peek(ahead + 2).is_word("OF")):
        return None
    word = cursor.peek(ahead)
    kind = "version" if word.is_word("VERSION", "SYSTEM_VERSION") else "timestamp" if word.is_word(*_TIMES) else None
    if kind is not None:
        cursor.place += ahead + 3
    return kind


_TIMES = ("TIMESTAMP", "SYSTEM_TIME")
_UNITS = ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND", "NANOSECOND")
_ALL_UNITS = (*_UNITS, *(f"{unit}S" for unit in _UNITS))
_OPERATORS = ("+", "-", "*", "/", "%", "&", "^")


def _operator(cursor: Cursor) -> bool:
    """Go past a binary operator, if one comes."""
    if cursor.peek().is_symbol("|") and cursor.peek(1).is_symbol("|"):
        cursor.place += 2
        return True
    if cursor.peek().is_symbol(*_OPERATORS) or cursor.peek().is_word("DIV"):
        cursor.place += 1
        return True
    return False


def _operand(cursor: Cursor) -> None:
    """Go past one operand of a value expression: a literal, a call, a bracket, a parameter."""
    while cursor.peek().is_symbol("+", "-", "~"):
        cursor.place += 1
    token = cursor.peek()
    if token.is_word("INTERVAL"):
        _interval(cursor)
    elif token.is_word("CASE"):
        _case(cursor)
    elif token.is_symbol("("):
        _bracket(cursor, "(", ")")
    elif token.is_symbol("{"):
        _bracket(cursor, "{", "}")
    elif token.is_symbol(":", "?"):
        cursor.place += 2 if token.text == ":" else 1
    elif token.kind == STRING:
        cursor.string()
    elif token.kind in (WORD, NAME):
        _word(cursor)
    else:
        cursor.fail("a version or a time")
    while cursor.peek().is_symbol(":") and cursor.peek(1).is_symbol(":"):
        cursor.place += 3
        if cursor.peek().is_symbol("("):
            _bracket(cursor, "(", ")")


def _word(cursor: Cursor) -> None:
    """A number, a typed literal, a name or a call."""
    cursor.place += 1
    if cursor.peek().kind == STRING:
        cursor.string()
        return
    while cursor.peek().is_symbol(".") and cursor.peek(1).kind in (WORD, NAME):
        cursor.place += 2
    while cursor.peek().is_symbol("(", "["):
        _bracket(cursor, cursor.peek().text, ")" if cursor.peek().text == "(" else "]")


def _interval(cursor: Cursor) -> None:
    cursor.place += 1
    while True:
        place = cursor.place
        while cursor.peek().is_symbol("+", "-"):
            cursor.place += 1
        if cursor.peek().is_symbol("("):
            _bracket(cursor, "(", ")")
        elif cursor.peek().kind in (WORD, STRING) and (cursor.peek().kind == STRING or cursor.peek().text[:1].isdecimal()):
            cursor.place += 1
            if cursor.peek().is_symbol(".") and cursor.peek(1).text.isdecimal():
                cursor.place += 2
        else:
            cursor.place = place
            return
        units = 0
        while cursor.peek().is_word(*_ALL_UNITS) or (
            units and cursor.peek().is_word("TO") and cursor.peek(1).is_word(*_ALL_UNITS)
        ):
            cursor.place += 1
            units += 1
        if not units:
            return


def _case(cursor: Cursor) -> None:
    depth = 0
    while not cursor.at_end:
        token = cursor.next()
        depth += token.is_word("CASE") - token.is_word("END")
        if depth == 0:
            return
    cursor.fail("END")


def _bracket(cursor: Cursor, opening: str, closing: str) -> None:
    depth = 0
    while not cursor.at_end:
        token = cursor.next()
        depth += token.is_symbol(opening) - token.is_symbol(closing)
        if depth == 0:
            return
    cursor.fail(f"'{closing}'")


def _call(reference: Reference, function: str, statement: int | None) -> str:
    arguments = [_literal(reference.path)]
    if reference.travel is not None:
        arguments += [f"'{reference.travel}'", reference.expression or ""]
    if statement is not None:
        arguments.append(str(statement))
    call = f"{function}({', '.join(arguments)})"
    if reference.form == "relation":
        return call
    return f"(SELECT * FROM {call})"


def _literal(text: str) -> str:
    """The text as an SQL literal that means the same whatever the session says of back slashes."""
    if "'" in text or "\\" in text:
        return f"X'{text.encode('utf-8', 'surrogatepass').hex().upper()}'"
    return f"'{text}'"
