"""Determine the engines that can read and write a table, and the features that prevent the others. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tahoe.ops.features.engines import ENGINES, Engine
from tahoe.protocol.actions import Protocol
from tahoe.protocol.config import TableConfig
from tahoe.protocol.features import FEATURES
from tahoe.protocol.protocols import features_of

Answer = Literal["yes", "no", "unknown"]


@dataclass(frozen=True, slots=True)
class EngineCompat:
    """The compatibility of an engine with a table.

    Args:
        reads, writes: ``yes``, ``no`` or ``unknown``.
        why: the features that the engine refuses, or that are undocumented for it; empty if both answers are yes.
        source: the URL of the engine's feature list.
    """

    engine: str
    versions: str
    reads: Answer
    writes: Answer
    why: str
    source: str


def compat_of(config: TableConfig) -> list[EngineCompat]:
    """Return the compatibility of a table with each engine of `tahoe.ops.features.engines`."""
    return [_judged(engine, config.protocol, config.column_mapping_mode) for engine in ENGINES]


def readers_of(protocol: Protocol) -> tuple[str, ...]:
    """Return the engines that can read a table with this protocol, each with its versions."""
    judged = (_judged(engine, protocol, "name") for engine in ENGINES)
    return tuple(f"{compat.engine} {compat.versions}" for compat in judged if compat.reads == "yes")


def _judged(engine: Engine, protocol: Protocol, mapping_mode: str) -> EngineCompat:
    needed = features_of(protocol)
    of_readers = {name for name in needed if name not in FEATURES or FEATURES[name].reader}
    reads, unread = _answer(of_readers, engine.reads, engine, protocol.min_reader_version > engine.most_reader)
    if engine.by_name_only and mapping_mode == "id":
        reads, unread = "no", "columns mapped by id"
    if engine.writes is None:
        return EngineCompat(engine.name, engine.versions, reads, "no", _why(unread, "it writes no Delta tables"), engine.source)
    if reads == "no":
        return EngineCompat(engine.name, engine.versions, reads, "no", unread, engine.source)
    writes, unwritten = _answer(needed, engine.writes, engine, protocol.min_writer_version > engine.most_writer)
    if reads == "unknown" and writes == "yes":
        writes = "unknown"
    return EngineCompat(
        engine.name, engine.versions, reads, writes, _why(unread, f"to write: {unwritten}" if unwritten else ""), engine.source
    )


def _answer(needed: Iterable[str], supported: str, engine: Engine, is_too_new: bool) -> tuple[Answer, str]:
    """Return whether the engine supports these features, and the reason if it does not or if that is unknown."""
    unnamed = sorted(set(needed) - set(supported.split()))
    refused = [name for name in unnamed if name not in engine.unless_used.split()]
    if not engine.is_complete:
        refused = [name for name in unnamed if name in engine.refuses.split()]
    if refused:
        return "no", ", ".join(refused)
    if is_too_new:
        return "no", "it knows no features by name"
    if not unnamed:
        return "yes", ""
    return "unknown", f"{'only where not used' if engine.is_complete else 'not said'}: {', '.join(unnamed)}"


def _why(*reasons: str) -> str:
    return "; ".join(reason for reason in reasons if reason)
