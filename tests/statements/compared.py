"""Compares delta-spark's outcome of each statement (``reference.json``) with that of another run.

``reference.json`` has the outcomes of `tests.statements.observed` on delta-spark 4.0.1; `tests/jvm/test_every_statement.py` compares it
with a new run, and rewrites it if ``TAHOE_RECORD_REFERENCE`` is set. Outcomes that are the same in all ways of naming a table are
under ``*``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tests.statements.differences import DIFFERENCES, Difference
from tests.statements.lives import KINDS, LIVES

__all__ = ["differences_of", "kind_of", "recorded", "reference"]

FILE = Path(__file__).with_name("reference.json")
Outcomes = Mapping[str, Mapping[str, Any]]


def kind_of(name: str) -> str:
    """The one way in which a life is run where there is no time for all: each gets its turn."""
    return KINDS[list(LIVES).index(name) % len(KINDS)]


def reference(name: str, kind: str) -> dict[str, Any]:
    """The recorded outcomes of a life's statements."""
    life = json.loads(FILE.read_text(encoding="utf-8"))[name]
    return {text: by_kind.get(kind, by_kind.get("*")) for text, by_kind in life.items() if kind in by_kind or "*" in by_kind}


def recorded(outcomes: Mapping[str, Mapping[str, Outcomes]]) -> str:
    """The content of ``reference.json``.

    Args:
        outcomes: by kind, life and statement.
    """
    lives: dict[str, Any] = {}
    for name in LIVES:
        texts = dict.fromkeys(text for kind in KINDS for text in outcomes[kind][name])
        lives[name] = {text: _by_kind({kind: outcomes[kind][name].get(text) for kind in KINDS}) for text in texts}
    return json.dumps(lives, indent=1, ensure_ascii=False) + "\n"


def _by_kind(found: Mapping[str, Any]) -> dict[str, Any]:
    known = {kind: outcome for kind, outcome in found.items() if outcome is not None}
    first = next(iter(known.values()))
    if len(known) == len(KINDS) and all(outcome == first for outcome in known.values()):
        return {"*": first}
    return known


def differences_of(name: str, kind: str, ours: Outcomes, pyspark: str) -> list[str]:
    """The differences from the reference that no reason is given for, and the given ones that are none.

    Args:
        pyspark: the version of the session, as some reasons are of one version.
    """
    theirs, reported, met = reference(name, kind), [], set()
    if theirs.keys() != ours.keys():
        return [f"{name}: not recorded: {ours.keys() - theirs.keys()}, not run: {theirs.keys() - ours.keys()}"]
    for text in ours:
        for key, left, right in _differing(theirs[text], ours[text]):
            known = [item for item in DIFFERENCES if _is_of(item, name, kind, pyspark) and _names(item, text, key, left, right)]
            met.update(known)
            if not known:
                reported.append(f"{name} ({kind}): {text}\n    {key}\n      reference: {left}\n      Tahoe:     {right}")
    for item in DIFFERENCES:
        if item.life == name and item not in met and _is_of(item, name, kind, pyspark):
            reported.append(f"{name} ({kind}): no difference at {item.statement} {item.key}, though one is listed: {item.reason}")
    return reported


def _is_of(one: Difference, name: str, kind: str, pyspark: str) -> bool:
    return fnmatchcase(name, one.life) and kind in one.kinds and pyspark.startswith(one.pyspark)


def _names(one: Difference, text: str, key: str, left: object, right: object) -> bool:
    actual = ((text, one.statement), (key, one.key), (str(left), one.theirs), (str(right), one.ours))
    return all(fnmatchcase(value, pattern) for value, pattern in actual)


def _differing(left: Any, right: Any, key: str = "") -> Iterator[tuple[str, Any, Any]]:
    if isinstance(left, dict) and isinstance(right, dict):
        for name in dict.fromkeys([*left, *right]):
            yield from _differing(left.get(name), right.get(name), f"{key}.{name}" if key else name)
    elif key.rpartition(".")[2] == "commits" and isinstance(left, list) and isinstance(right, list):
        for number in range(max(len(left), len(right))):
            yield from _differing(dict(enumerate(left)).get(number), dict(enumerate(right)).get(number), f"{key}.{number}")
    elif left != right:
        yield key, left, right
