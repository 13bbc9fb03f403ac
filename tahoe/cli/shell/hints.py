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
        (r"`tahoe convert`, Table\.convert_to_delta or CONVERT TO DELTA", "tahoe convert"),
        (r"retention_check=False, or spark\.databricks\.delta\.retentionDurationCheck\.enabled = false", "--no-retention-check"),
        (r"Set mergeSchema\b", "Pass --merge-schema"),
        (r"\(CREATE OR REPLACE TABLE … CLONE, replace=True\)", "with --replace"),
        (
            r"For lists, maps and structs pass a type of pyarrow\.",
            "For lists, maps and structs, create the table with Python or SQL.",
        ),
        (r"(Set delta\.universalFormat\.enabledFormats = iceberg)", r"Run tahoe uniform enable TABLE, or: \1"),
        (
            r"Say to which version to restore the table, or to which time: one of the two\.",
            "Pass --version or --timestamp, one of the two.",
        ),
        (r"Read the newest version, or restore it\.", "Read the newest version, restore the file, or run tahoe fsck TABLE."),
        (r", on Spark fs\.s3a\.access\.key and fs\.s3a\.secret\.key", ""),
        (r"\bstorage_options\b", "--option"),
    )
)
