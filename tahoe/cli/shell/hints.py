"""Translates remedies for the shell: the library's messages name Python calls, which become commands."""

from __future__ import annotations

import re


def for_shell(sentence: str) -> str:
    """Return the sentence with Python's calls and arguments replaced by commands and options of `tahoe`."""
    for pattern, words in _WORDS:
        sentence = pattern.sub(words, sentence)
    return sentence


_WORDS = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r"\b(?:table\.)?uniform\.sync\(rebuild=True\)", "tahoe uniform sync --rebuild TABLE"),
        (r"\b(?:table\.)?uniform\.repair\((\w+)=True\)", r"tahoe uniform repair --\1 TABLE"),
        (r"\b(?:table\.)?uniform\.(sync|status|repair)\(\)", r"tahoe uniform \1 TABLE"),
        (r"\b(?:tahoe\.)?[Tt]able\.(check|history|files|detail)\(\)", r"tahoe \1 TABLE"),
        (r"\b(adopt|discard|rebuild)=True\b", r"--\1"),
        (r"\bdry_run=True\b", "--dry-run"),
        (r"\bstorage_options\b", "--option"),
    )
)
