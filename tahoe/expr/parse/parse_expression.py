"""Parses SQL text to typed expressions, by an allow-list: other names are rejected by name, and nothing is executed.

The grammar is that of Spark's expressions. Functions are those of `tahoe.expr.tree.functions`. Unknown syntax is rejected, and also
subqueries, aggregates, windows, lambdas, parameters and variables, names with a database, and adjacent string literals.

The parser makes one pass over the tokens, with a stack of operators that wait for their right operand: a chain takes linear time, and
only nested brackets use Python's own stack, at most `MOST_LEVELS` of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tahoe.base.clock import zone_of
from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.parse.clock_functions import CURRENT_TIME, WITHOUT_BRACKETS, current_time
from tahoe.expr.parse.column_names import ColumnNames, Schemas
from tahoe.expr.parse.intervals import comes_interval, interval
from tahoe.expr.parse.lexer import NAME, NUMBER, STRING, WORD, string_value
from tahoe.expr.parse.literals import TYPED_TEXTS, hexadecimal, number, type_named, typed_text
from tahoe.expr.parse.refused import MOST_LEVELS, check_length, no_condition, refused, too_deep
from tahoe.expr.parse.tokens import Tokens
from tahoe.expr.tree.chains import without_chains
from tahoe.expr.tree.common_types import BOOLEAN, VOID, same_type
from tahoe.expr.tree.common_types import STRING as TEXT
from tahoe.expr.tree.expression import PLUS_INTERVAL, Case, Cast, Expression, Literal, compared_by_bytes, levels_of
from tahoe.expr.tree.functions import FUNCTIONS, call
from tahoe.expr.tree.signatures import cast_to, condition, meet
from tahoe.schema.collations import collation_refused
from tahoe.schema.types import DataType

__all__ = ["Schemas", "parse_condition", "parse_expression"]


def parse_expression(text: str, schemas: Schemas, time_zone: str = "UTC", now_ms: int | None = None) -> Expression:
    """Parse an SQL text to a typed expression.

    Args:
        text: an expression in Spark's dialect.
        schemas: logical schemas; names are resolved case-insensitively and replaced by the schema's own. With several schemas, names
            may be qualified, and must be if more than one of them has the column.
        time_zone: of the session, for timestamps without one.
        now_ms: the time of the statement, in milliseconds since the epoch; None if it must not contain ``current_date()`` and the like.

    Raises:
        InvalidRequest: the text is not an expression, names an unknown column, has wrong types, or contains syntax that is not on the
            allow-list; or it reads a column whose strings do not compare by their bytes (``TAHOE_COLLATED_COLUMN``).
    """
    check_length(text)
    try:
        expression = _Reader(text, schemas, time_zone, now_ms).whole()
    except RecursionError as error:
        raise too_deep(text) from error
    if (levels := levels_of(expression)) > MOST_LEVELS:
        raise too_deep(text, levels)
    for column in compared_by_bytes(expression):
        raise collation_refused(str(column), text)
    return expression


def parse_condition(text: str, schemas: Schemas, time_zone: str = "UTC", now_ms: int | None = None) -> Expression:
    """Parse an expression as `parse_expression`, which must be boolean."""
    return condition(parse_expression(text, schemas, time_zone, now_ms), time_zone)


@dataclass(slots=True)
class _Operand:
    """A parsed part of the expression.

    Args:
        expression: of a chain, its first operand.
        start: the offset of its text.
        level: its greatest nesting depth of operations.
        is_test: it is a comparison, a test or a NOT without brackets, which cannot be the operand of another one.
        chain: ``and`` or ``or`` while its operands are being collected.
        parts: these operands.
    """

    expression: Expression
    start: int
    level: int = 1
    is_test: bool = False
    chain: str | None = None
    parts: list[Expression] | None = None


@dataclass(slots=True)
class _Operator:
    """An operator that waits for its right side."""

    key: str
    precedence: int
    start: int
    is_prefix: bool = False


class _Reader(Tokens):
    """Parses the tokens of one expression, and builds the typed call of each operator as soon as its operands are parsed."""

    def __init__(self, text: str, schemas: Schemas, time_zone: str, now_ms: int | None) -> None:
        super().__init__(text)
        self.depth = 0
        self.columns = ColumnNames(schemas)
        self.time_zone = time_zone
        self.zone = zone_of(time_zone)
        self.now_ms = now_ms

    def whole(self) -> Expression:
        """Parse the whole text as one expression."""
        operand = self.expression()
        if not self.at_end:
            raise self.expected("the end")
        return operand.expression

    # ---- operators

    def expression(self, least: int = 0) -> _Operand:
        """Parse the following tokens, up to an operator that binds less tightly than `least`."""
        self.depth += 1
        if self.depth > MOST_LEVELS:
            raise too_deep(self.text)
        operands: list[_Operand] = []
        operators: list[_Operator] = []
        keys = self.keys
        while True:
            if keys[self.place] in _PREFIX:
                self.prefixes(operators, least)
            operands.append(self.primary())
            while keys[self.place] in ("+", "-") and least <= _SUM and comes_interval(self):
                self.reduce(operands, operators, _SUM)
                operands[-1] = self.moved(operands[-1])
            while (key := keys[self.place]) in _MAY_BE_TESTS and least <= _PREDICATE and self.comes_predicate():
                self.reduce(operands, operators, _PREDICATE + 1)
                operands[-1] = self.predicate(operands[-1])
            precedence = _INFIX.get(key, -1)
            if precedence < max(least, 0):
                break
            if operators:
                self.reduce(operands, operators, precedence)
            operators.append(_Operator(key, precedence, self.tokens[self.place][2]))
            self.place += 1
        self.reduce(operands, operators, 0)
        self.depth -= 1
        return self.gathered(operands[0])

    def prefixes(self, operators: list[_Operator], least: int) -> None:
        """Put the signs before an operand on the stack; a minus before a number is part of that number."""
        while (key := self.keys[self.place]) in _PREFIX:
            precedence = _PREFIX[key]
            if key == "-" and self.tokens[self.place + 1][0] == NUMBER:
                return
            tighter = operators[-1].precedence if operators else least
            if precedence == _NEGATION and tighter > _NEGATION:
                raise refused(self.text[self.start() :], "inside another comparison this needs parentheses")
            operators.append(_Operator(key, precedence, self.start(), is_prefix=True))
            self.place += 1

    def reduce(self, operands: list[_Operand], operators: list[_Operator], least: int) -> None:
        """Apply the operators on the stack that bind at least this tightly."""
        while operators and operators[-1].precedence >= least:
            operator = operators.pop()
            right = operands.pop()
            if operator.is_prefix:
                operands.append(self.prefixed(operator, right))
            else:
                operands.append(self.combined(operator, operands.pop(), right))

    def prefixed(self, operator: _Operator, operand: _Operand) -> _Operand:
        if operator.precedence == _NEGATION:
            return self.made("not", operator.start, self.gathered(operand), is_test=True)
        return self.made(_SIGNS[operator.key], operator.start, self.untested(operand))

    def combined(self, operator: _Operator, left: _Operand, right: _Operand) -> _Operand:
        name = _NAMES.get(operator.key, operator.key)
        if name in ("and", "or"):
            right = self.gathered(right)
            if left.chain == name and left.parts is not None:
                left.parts.append(right.expression)
                left.level = max(left.level, right.level)
                return left
            left = self.gathered(left)
            parts = [left.expression, right.expression]
            return _Operand(left.expression, left.start, max(left.level, right.level), True, name, parts)
        is_test = operator.precedence == _COMPARISON
        return self.made(name, left.start, self.untested(left), self.untested(right), is_test=is_test)

    def moved(self, operand: _Operand) -> _Operand:
        """Parse a sign and an interval after an operand."""
        sign = -1 if self.keys[self.place] == "-" else 1
        self.place += 1
        length = interval(self)
        if _INFIX.get(self.keys[self.place], 0) > _SUM or self.keys[self.place] in _POSTFIX:
            raise refused(self.text[operand.start :], _NOT_ALLOWED)
        time = length.added_to(self.untested(operand).expression, sign, self.time_zone)
        return _Operand(time, operand.start, self.deeper(operand.level))

    def gathered(self, operand: _Operand) -> _Operand:
        """Return the operand, with a chain of AND or OR as one call."""
        if operand.chain is None or operand.parts is None:
            return operand
        parts = without_chains(operand.chain, operand.parts)
        joined = parts[0] if len(parts) == 1 else call(operand.chain, tuple(parts), self.time_zone)
        return _Operand(joined, operand.start, self.deeper(operand.level), is_test=True)

    def untested(self, operand: _Operand) -> _Operand:
        """Return the operand, which must not be a test without brackets: Spark would bind it differently from its look."""
        if operand.is_test:
            raise refused(self.since(operand.start), "inside another comparison this needs parentheses")
        return operand

    def made(self, name: str, start: int, *operands: _Operand, is_test: bool = False) -> _Operand:
        """A call of the allow-list."""
        level = self.deeper(max([operand.level for operand in operands], default=0))
        made_call = call(name, tuple(operand.expression for operand in operands), self.time_zone)
        return _Operand(made_call, start, level, is_test)

    def deeper(self, level: int) -> int:
        if level >= MOST_LEVELS:
            raise too_deep(self.text, level + 1)
        return level + 1

    # ---- tests after their operand

    def comes_predicate(self) -> bool:
        key = self.keys[self.place]
        return key in _PREDICATES or (key == "NOT" and self.keys[self.place + 1] in _PREDICATES)

    def predicate(self, left: _Operand) -> _Operand:
        left = self.untested(left)
        negated = self.take("NOT")
        word = self.keys[self.place]
        self.place += 1
        if word == "IS" and not negated:
            return self.truth(left)
        if word == "IN":
            test = self.made("in", left.start, left, *self.listed("IN needs a list of values"), is_test=True)
        elif word == "BETWEEN":
            low = self.expression(_COMPARISON + 1)
            self.need("AND")
            high = self.expression(_COMPARISON + 1)
            bounds = self.made(">=", left.start, left, low), self.made("<=", left.start, left, high)
            test = self.made("and", left.start, *bounds, is_test=True)
        elif word in ("LIKE", "RLIKE", "REGEXP"):
            pattern = self.expression(_COMPARISON + 1)
            test = self.made("like" if word == "LIKE" else "rlike", left.start, left, pattern, is_test=True)
            if self.keys[self.place] == "ESCAPE":
                raise refused(self.text[left.start :], _NOT_ALLOWED)
        else:
            raise refused(self.text[left.start :], _NOT_ALLOWED)
        return self.made("not", left.start, test, is_test=True) if negated else test

    def truth(self, left: _Operand) -> _Operand:
        """Parse the rest of an IS test."""
        negated = self.take("NOT")
        if self.take("NULL"):
            return self.made("is not null" if negated else "is null", left.start, left, is_test=True)
        if self.take("DISTINCT"):
            self.need("FROM")
            test = self.made("<=>", left.start, left, self.expression(_COMPARISON + 1), is_test=True)
            negated = not negated
        elif self.keys[self.place] in ("TRUE", "FALSE"):
            constant = _Operand(Literal(self.keys[self.place] == "TRUE", BOOLEAN), self.start())
            self.place += 1
            if left.expression.data_type not in (BOOLEAN, VOID):
                raise refused(self.since(left.start), "IS TRUE and IS FALSE need a boolean")
            test = self.made("<=>", left.start, left, constant, is_test=True)
        else:
            raise refused(self.text[left.start :], _NOT_ALLOWED)
        return self.made("not", left.start, test, is_test=True) if negated else test

    # ---- operands

    def primary(self) -> _Operand:
        """Parse a constant, a column, a call, or an expression in brackets, with the indexes, fields and casts that follow it."""
        kind, text, start = self.tokens[self.place]
        key = self.keys[self.place]
        if kind == NUMBER:
            self.place += 1
            operand = _Operand(number(text, self.zone), start)
        elif kind == STRING:
            operand = self.text_constant()
        elif kind == NAME or (kind == WORD and key not in _KEYWORDS):
            operand = self.named()
        elif key in _CONSTANTS:
            self.place += 1
            operand = _Operand(_CONSTANTS[key], start)
        elif key == "CASE":
            operand = self.case()
        elif key == "(":
            self.place += 1
            inner = self.expression()
            self.need(")")
            operand = _Operand(inner.expression, start, inner.level)
        elif key == "-":
            operand = _Operand(number(f"-{self.tokens[self.place + 1][1]}", self.zone), start)
            self.place += 2
        elif key in ("SELECT", "*"):
            raise refused(self.text[start:], _NOT_ALLOWED)
        else:
            raise self.expected("a column, a constant or a function")
        while (key := self.keys[self.place]) in _POSTFIX:
            operand = self.postfixed(operand, key)
        return operand

    def postfixed(self, left: _Operand, key: str) -> _Operand:
        """Parse indexes, fields and casts after an operand."""
        self.place += 1
        if key == "[":
            index = self.expression()
            self.need("]")
            return self.made("[]", left.start, left, index)
        if key == ".":
            name = Literal(self.name(), TEXT)
            return self.made("field", left.start, left, _Operand(name, left.start))
        return self.converted(left, self.type_name(left.start))

    def text_constant(self) -> _Operand:
        _, text, start = self.tokens[self.place]
        self.place += 1
        if self.tokens[self.place][0] == STRING:
            raise refused(self.text[start:], "texts follow one another, which Spark's versions read differently; write one text")
        if text[0] == "$":
            raise refused(text, "write the text in quotes")
        return _Operand(Literal(string_value(text), TEXT), start)

    def named(self) -> _Operand:
        """A column, a call, or a typed text."""
        _, word, start = self.tokens[self.place]
        key = self.keys[self.place]
        if self.tokens[self.place + 1][0] == STRING and key:
            return self.typed(key)
        names = [self.name()]
        while self.keys[self.place] == "." and self.tokens[self.place + 1][0] in (NAME, WORD):
            self.place += 1
            names.append(self.name())
        if self.keys[self.place] == "(":
            return self.function(names, key, start)
        if self.keys[self.place] == "." and self.keys[self.place + 1] == "*":
            self.place += 2
            raise refused(self.since(start), _NOT_ALLOWED)
        if key == "INTERVAL" and self.tokens[self.place][0] in (NUMBER, WORD):
            raise refused(self.text[start:], _NOT_ALLOWED)
        try:
            return _Operand(self.columns.reference(tuple(names), word if len(names) == 1 else self.since(start)), start)
        except InvalidRequest:
            if key not in WITHOUT_BRACKETS or len(names) > 1:
                raise
            return self.current_time(key, start)

    def current_time(self, key: str, start: int) -> _Operand:
        """A function of `CURRENT_TIME`, whose brackets are consumed."""
        if self.now_ms is None:
            return self.made(key.lower(), start)  # rejected by its name
        return _Operand(current_time(key, self.now_ms, self.zone), start)

    def typed(self, key: str) -> _Operand:
        """A constant such as ``DATE '2024-01-01'`` or ``X'1F'``."""
        start = self.start()
        self.place += 1
        if key != "X" and key not in TYPED_TEXTS:
            raise refused(self.text[start:], _NOT_ALLOWED)
        value = self.text_constant().expression
        assert isinstance(value, Literal)
        literal = hexadecimal(value.value, self.since(start)) if key == "X" else typed_text(key, value.value, self.zone)
        return _Operand(literal, start)

    def function(self, names: list[str], key: str, start: int) -> _Operand:
        """A call; those that have a grammar of their own by that."""
        name = ".".join(names).lower()
        if self.keys[self.place + 1] == "SELECT":
            raise refused(self.text[start:], _NOT_ALLOWED)
        special = _WITH_GRAMMAR.get(key) if len(names) == 1 else None
        if special is not None:
            self.place += 1
            special_call: _Operand = getattr(self, special)(key, start)
            self.need(")")
            return special_call
        if name.upper() in CURRENT_TIME and self.keys[self.place + 1] == ")":
            self.place += 2
            return self.current_time(name.upper(), start)
        if name in _SIGNS_ONLY:
            raise refused(self.text[start:], _NOT_ALLOWED)
        if name not in FUNCTIONS:
            self.made(name, start)  # rejected by its name, regardless of its arguments
        return self.made(name, start, *self.listed(None))

    def listed(self, needed: str | None) -> list[_Operand]:
        """``(expression, …)``.

        Args:
            needed: why there must be one at least; None where there need not be.
        """
        self.need("(")
        if self.take(")"):
            if needed is not None:
                raise no_condition(self.text, needed)
            return []
        items = [self.expression()]
        while self.take(","):
            items.append(self.expression())
        self.need(")")
        return items

    # ---- special forms

    def case(self) -> _Operand:
        start = self.start()
        self.place += 1
        subject = None if self.keys[self.place] == "WHEN" else self.expression()
        conditions, values, level = [], [], 0 if subject is None else subject.level
        while self.take("WHEN"):
            met = self.expression()
            self.need("THEN")
            value = self.expression()
            level = max(level, met.level, value.level)
            values.append(value.expression)
            if subject is None:
                conditions.append(condition(met.expression, self.time_zone))
            else:
                conditions.append(call("=", (subject.expression, met.expression), self.time_zone))
        if not values:
            raise self.expected("WHEN")
        otherwise = self.expression() if self.take("ELSE") else _Operand(Literal(None, VOID), start)
        self.need("END")
        branches = meet("case", (*values, otherwise.expression), self.time_zone)
        case = Case(tuple(zip(conditions, branches[:-1], strict=True)), branches[-1], branches[0].data_type)
        return _Operand(case, start, self.deeper(max(level, otherwise.level)))

    def cast(self, key: str, start: int) -> _Operand:
        value = self.expression()
        self.need("AS")
        target = self.type_name(start)
        if key == "TRY_CAST":
            return _Operand(Cast(value.expression, target, self.time_zone, lenient=True), start, self.deeper(value.level))
        return self.converted(value, target)

    def converted(self, value: _Operand, target: DataType) -> _Operand:
        """Return a CAST to a type; for a constant, the cast constant."""
        child = value.expression
        if isinstance(child, Literal):
            child = cast_to(child, target, self.time_zone)
        explicit = Cast(value.expression, target, self.time_zone)
        is_same = isinstance(child, Literal) or same_type(child.data_type, target)
        return _Operand(child if is_same and not isinstance(child, Cast) else explicit, value.start, self.deeper(value.level))

    def type_name(self, start: int) -> DataType:
        name = self.name()
        sizes: list[int] = []
        if self.take("("):
            sizes.append(self.size(start))
            while self.take(","):
                sizes.append(self.size(start))
            self.need(")")
        return type_named(name, sizes, self.since(start))

    def size(self, start: int) -> int:
        kind, text, _ = self.tokens[self.place]
        self.place += 1
        if kind != NUMBER or not text.isdecimal() or len(text) > _DIGITS_OF_A_SIZE:
            raise refused(self.since(start), "the type of the cast is not on the list")
        return int(text)

    def extract(self, key: str, start: int) -> _Operand:
        part = _PARTS.get(self.name().lower())
        if part is None:
            raise refused(self.text[start:], f"extract knows {', '.join(_PARTS)}")
        self.need("FROM")
        return self.made(part, start, self.expression())

    def position(self, key: str, start: int) -> _Operand:
        """``position(part IN text)``; ``position(part, text)`` too."""
        part = self.expression(_COMPARISON + 1)
        if not self.take(","):
            self.need("IN")
        return self.made("instr", start, self.expression(), part)

    def substring(self, key: str, start: int) -> _Operand:
        """``substring(text, from, length)``, and with FROM and FOR in place of the commas."""
        parts = [self.expression()]
        if self.take("FROM"):
            parts.append(self.expression())
            if self.take("FOR"):
                parts.append(self.expression())
        else:
            while self.take(","):
                parts.append(self.expression())
        return self.made("substring", start, *parts)

    def trim(self, key: str, start: int) -> _Operand:
        reason = "trim takes one text; blanks are what it removes"
        if self.keys[self.place] in ("BOTH", "LEADING", "TRAILING") and self.keys[self.place + 1] != ")":
            raise refused(self.text[start:], reason)
        text = self.expression()
        if self.keys[self.place] != ")":
            raise refused(self.text[start:], reason)
        return self.made("trim", start, text)


# How tightly signs bind, as in Spark's grammar: OR least, then AND, NOT, the tests, and the operators on values.
_OR, _AND, _NEGATION, _PREDICATE, _COMPARISON, _BIT_OR, _BIT_XOR, _BIT_AND, _SUM, _PRODUCT, _UNARY = range(1, 12)
_INFIX: Mapping[str, int] = {
    "OR": _OR,
    "AND": _AND,
    **dict.fromkeys(("=", "==", "<=>", "<", "<=", ">", ">=", "!=", "<>"), _COMPARISON),
    "|": _BIT_OR,
    "^": _BIT_XOR,
    "&": _BIT_AND,
    **dict.fromkeys(("+", "-", "||"), _SUM),
    **dict.fromkeys(("*", "/", "%", "DIV"), _PRODUCT),
}
"""The binary operators with their precedence; all are left-associative."""
_PREFIX: Mapping[str, int] = {"NOT": _NEGATION, "!": _NEGATION, **dict.fromkeys(("-", "+", "~"), _UNARY)}
"""The unary operators with their precedence."""
_PREDICATES = frozenset({"IS", "IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP"})
"""Words that begin a test after its operand, optionally preceded by NOT."""
_NAMES: Mapping[str, str] = {"==": "=", "<>": "!=", "OR": "or", "AND": "and", "DIV": "div"}
"""The names of the allow-list for signs that are spelt otherwise there."""
_NOT_ALLOWED = "it is not on the list of operations that expressions may contain"
_SIGNS = {"-": "negative", "+": "positive", "~": "~"}
_CONSTANTS = {"NULL": Literal(None, VOID), "TRUE": Literal(True, BOOLEAN), "FALSE": Literal(False, BOOLEAN)}
_KEYWORDS = frozenset({*_CONSTANTS, *_PREDICATES, "AND", "OR", "NOT", "CASE", "SELECT"})
"""Words that are names of columns and functions only in back-ticks."""
_POSTFIX = frozenset({"[", ".", "::"})
_WITH_GRAMMAR = {
    "CAST": "cast",
    "TRY_CAST": "cast",
    "EXTRACT": "extract",
    "POSITION": "position",
    "SUBSTRING": "substring",
    "SUBSTR": "substring",
    "TRIM": "trim",
}
_PARTS = {
    **{name: name for name in ("year", "quarter", "month", "day", "hour", "minute", "dayofweek")},
    "week": "weekofyear",
    "doy": "dayofyear",
}
_MAY_BE_TESTS = _PREDICATES | {"NOT"}
_SIGNS_ONLY = frozenset({"is null", "is not null", "[]", "field", "||", *PLUS_INTERVAL})
"""Rows of the allow-list that are no function's name."""
_DIGITS_OF_A_SIZE = 9
