"""`RuleList`: the rules of one kind of subject, each a function that yields the violations of a section of PROTOCOL.md.

    RULES: RuleList[Step] = RuleList()

    @RULES.rule("Append-only Tables")
    def append_only_tables_lose_nothing(step: Step) -> Breaches: ...

A rule checks one subject (a commit in sequence, a checkpoint, a data file) independently of the others. Its name is the code of its
findings at the level `STRICT`; at the other levels several rules share a code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Generic, TypeVar

from tahoe.ops.check.subjects.violation import Reported, Violation, violation_of

S = TypeVar("S")


class Level(Enum):
    """The levels of a check: the log and the files' metadata; all rows; every rule of the specification."""

    QUICK = auto()
    DEEP = auto()
    STRICT = auto()


@dataclass(frozen=True, slots=True)
class Broken:
    """A violation of a rule by a file or a version that the subject names.

    Args:
        message: one sentence with the actual and the expected value, without a period.
        file: the store's name of the file, or the path as in the log.
    """

    message: str
    file: str | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file, or a part of it, that cannot be checked.

    Args:
        part: its name, for errors that are not Tahoe's own.
        file: the store's name of the file, or the path as in the log.
    """

    error: Exception
    part: str
    file: str | None


Breaches = Iterator[str | Broken | Unreadable]
"""Sentences if the subject itself breaks the rule, `Broken` if a file or a version that the subject names does."""


@dataclass(frozen=True, slots=True)
class Rule(Generic[S]):
    """One requirement of the specification.

    Args:
        section: of PROTOCOL.md, as its heading spells it.
        codes: the code of the rule's findings at each level that includes it.
        breaches: yields the violations in a subject.
    """

    section: str
    codes: Mapping[Level, str]
    breaches: Callable[[S], Breaches]

    def violations(self, level: Level, subject: S, version: int | None, file: str | None) -> list[Violation]:
        """Return the violations in a subject; an error of the rule is one too."""
        code, strict = self.codes[level], level is Level.STRICT
        violations: list[Violation] = []
        with Reported(violations.append, code, f"The rule {code}", version, file):
            for breach in self.breaches(subject):
                if isinstance(breach, Unreadable):
                    violations.append(violation_of(breach.error, code, breach.part, version, breach.file))
                    continue
                broken = breach if isinstance(breach, Broken) else Broken(breach)
                name, at = broken.file or file, version if broken.version is None else broken.version
                text = f"{name}: {broken.message}" if name and name not in broken.message else broken.message
                text = text if strict else f"{text}."
                violations.append(Violation(code, text, at, name, section=self.section if strict else None))
        return violations


class RuleList(Generic[S]):
    """The rules of one kind of subject, in the order of their definitions."""

    def __init__(self, *parts: Iterable[Rule[S]]) -> None:
        self._rules = [rule for part in parts for rule in part]

    def __iter__(self) -> Iterator[Rule[S]]:
        return iter(self._rules)

    def rule(
        self, section: str, *, quick: str | None = None, deep: str | None = None, strict: bool = True
    ) -> Callable[[Callable[[S], Breaches]], Rule[S]]:
        """Make a function a rule.

        Args:
            quick, deep: the code of its findings at the level `QUICK` or `DEEP`, if that level includes it.
            strict: whether the level `STRICT` includes it; the code is the function's name.
        """

        def add(breaches: Callable[[S], Breaches]) -> Rule[S]:
            codes = {Level.STRICT: breaches.__name__.replace("_", "-")} if strict else {}
            codes |= {level: code for level, code in ((Level.QUICK, quick), (Level.DEEP, deep)) if code}
            self._rules.append(Rule(section, codes, breaches))
            return self._rules[-1]

        return add

    def violations(self, level: Level, subject: S, version: int | None = None, file: str | None = None) -> Iterator[Violation]:
        """Yield the violations in a subject of the rules of a level.

        Args:
            version: of the subject, for findings.
            file: the store's name of the subject, for findings.
        """
        for rule in self._rules:
            if level in rule.codes:
                yield from rule.violations(level, subject, version, file)
