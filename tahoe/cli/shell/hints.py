"""Translates remedies for the shell: the library's messages name Python calls and arguments, which become commands and options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from tahoe.base.method_options import FLAG, Flag
from tahoe.ops.tables import requests


def for_shell(sentence: str) -> str:
    """Return the sentence with Python's calls and arguments replaced by commands and options of `tahoe`."""
    for pattern, words in (*_CALLS, *_options(), *_SETTINGS):
        sentence = re.sub(pattern, words, sentence)
    return sentence


_END = r"(?:\(\)|(?=[.,;)\s]|$))"
_OBJECT = r"\b(?:tahoe\.)?[Tt]able\."
_COMMANDS = {
    "set_properties": "tahoe set TABLE NAME=VALUE",
    "add_feature": "tahoe set TABLE delta.feature.NAME=supported",
    "drop_feature": "tahoe drop-feature TABLE NAME",
    "compute_statistics": "tahoe analyze TABLE",
    "repair_log": "tahoe repair-log TABLE",
    "uniform.upgrade": "tahoe uniform enable TABLE",
}
"""By methods of `Table` with another name than their command: what to type."""

_SAME_NAME = "check|history|files|detail|optimize|vacuum|restore|fsck|generate|convert|clone|report|layout|compat"
_CALLS = (
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
    (r"\b(?:table\.)?uniform\.sync\(rebuild=True\)", "tahoe uniform sync --rebuild TABLE"),
    (r"\b(?:table\.)?uniform\.repair\((\w+)=True\)", r"tahoe uniform repair --\1 TABLE"),
    (r"\b(?:table\.)?uniform\.(sync|status|repair)\(\)", r"tahoe uniform \1 TABLE"),
    (r", Table\.convert_to_delta or CONVERT TO DELTA", ""),
    *((rf"{_OBJECT}{re.escape(method)}{_END}", command) for method, command in _COMMANDS.items()),
    (rf"{_OBJECT}({_SAME_NAME}){_END}", r"tahoe \1 TABLE"),
    (
        r"tahoe\.Table\(path, coordinator=[^,;]*\)+, or on Spark tahoe\.enable\(spark, coordinator=…\)(?:, or for the command line )?",
        "",
    ),
    (r"tahoe\.Table\(path, coordinator=…\)", "TAHOE_COORDINATOR"),
    (r"(Name it|Configure one): ;? ?(?:TAHOE_COORDINATOR)?", r"\1 in the variable TAHOE_COORDINATOR"),
    (r"Call resolve\(\) on this error before trying again", "Look for it with tahoe history TABLE before trying again"),
    (r"\b(adopt|discard|rebuild)=True\b", r"--\1"),
    (r"\bstorage_options\b", "--option"),
)
_SETTINGS = (
    # Settings of Spark sessions have no effect here.
    (r",? or (?:set )?spark\.[\w.]+ (?:=|to) \w+", ""),
    (r"set spark\.[\w.]+ (?:=|to) \w+ \((--[^)]+)\)", r"use \1"),
)


def _options() -> Iterator[tuple[str, str]]:
    """Yield the arguments of operations that are flags of commands: ``retention_check=False`` is ``--no-retention-check``."""
    for options in vars(requests).values():
        if isinstance(options, type) and is_dataclass(options):
            for field in fields(options):
                flag: Flag | None = field.metadata.get(FLAG)
                if flag is not None and isinstance(field.default, bool):
                    # A partition's folder may look like an argument: replace=True/part-0.parquet.
                    yield rf"(?<![\w./]){field.name}=(?:True|False)(?![\w/])", flag.names[0]
