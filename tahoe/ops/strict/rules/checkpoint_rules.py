"""Rules of a checkpoint: its spec, and its agreement with the commits."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from tahoe.ops.strict.held.folded_state import State
from tahoe.ops.strict.held.raw_log import CheckpointFiles
from tahoe.ops.strict.held.rule import Breaches, Broken, Rule, rule
from tahoe.ops.strict.rules.member_rules import wrong_members
from tahoe.protocol.features import Feature

__all__ = [
    "RULES",
    "HeldCheckpoint",
    "as_compared",
    "checkpoint_files_have_their_members",
    "checkpoints_can_be_read",
    "checkpoints_have_protocol_and_metadata",
    "checkpoints_hold_the_domains",
    "checkpoints_hold_the_live_files",
    "checkpoints_hold_the_transactions",
    "checkpoints_keep_no_provenance",
    "checkpoints_repeat_the_settings",
    "checkpoints_say_the_same_of_files",
    "differing",
    "files_are_in_sidecars_or_not",
    "lists_of_features_are_kept",
    "no_parts_beside_v2",
    "sidecars_are_there",
    "sidecars_hold_file_actions",
    "specs_fit_their_names",
    "statistics_are_kept_as_asked",
    "tags_of_v2_checkpoints_are_right",
    "tombstones_are_not_live",
    "tombstones_have_no_statistics",
    "tombstones_were_removed",
    "v2_checkpoints_have_one_metadata",
    "v2_checkpoints_need_the_feature",
]

_FILE_ACTIONS = ("add", "remove")
_SAME = ("size", "modificationTime", "baseRowId", "defaultRowCommitVersion", "clusteringProvider", "deletionVector", "tags")


@dataclass(frozen=True)
class HeldCheckpoint:
    """A checkpoint and the state after its commits; None if the commits do not reach back to it."""

    files: CheckpointFiles
    state: State | None

    @property
    def is_v2(self) -> bool:
        """Whether it follows the V2 spec, because it contains actions of that spec."""
        return bool(self.files.of("checkpointMetadata") or self.files.sidecars)

    def supports(self, feature: str) -> bool:
        """Whether the state's protocol supports a feature; True without a state."""
        return self.state is None or self.state.settings is None or self.state.settings.supports(feature)


def differing(mine: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    """Return the members of two `add` actions that differ for a reader."""
    names = [name for name in _SAME if (mine.get(name) or None) != (theirs.get(name) or None)]
    values = [{key: text or None for key, text in (each.get("partitionValues") or {}).items()} for each in (mine, theirs)]
    return names + (["partitionValues"] if values[0] != values[1] else [])


@rule("Checkpoints")
def checkpoints_can_be_read(held: HeldCheckpoint) -> Breaches:
    """All files of a checkpoint can be read, including sidecars."""
    yield from held.files.unreadable


@rule("Checkpoints")
def checkpoints_have_protocol_and_metadata(held: HeldCheckpoint) -> Breaches:
    """A checkpoint has exactly one of each."""
    for kind in ("protocol", "metaData") if not held.files.unreadable else ():
        if len(held.files.of(kind)) != 1:
            yield f"it has {len(held.files.of(kind))} {kind} actions"


@rule("Checkpoints")
def checkpoints_repeat_the_settings(held: HeldCheckpoint) -> Breaches:
    """Protocol and metadata are those of the commits."""
    if held.state is None:
        return
    for kind, mine in (("protocol", held.state.protocol), ("metaData", held.state.metadata)):
        for value in held.files.of(kind)[:1]:
            if mine is not None and as_compared(value) != as_compared(mine):
                yield f"its {kind} is not that of the commits"


def as_compared(value: dict[str, Any]) -> dict[str, Any]:
    """A protocol or metadata without null or empty members, and with sorted lists of features."""
    told: dict[str, Any] = {}
    for name, held in value.items():
        if name.endswith("Features") and isinstance(held, list):
            told[name] = sorted(map(str, held))
        elif name == "format" and isinstance(held, dict):
            told[name] = {member: text for member, text in held.items() if text}
        elif held not in (None, {}, ""):
            told[name] = held
    return told


@rule("Checkpoints")
def checkpoints_hold_the_live_files(held: HeldCheckpoint) -> Breaches:
    """All of them, exactly once, and no other files."""
    if held.state is None or held.files.unreadable:
        return
    found = Counter(held.state.key(value) for value in held.files.of("add"))
    for key in sorted(held.state.adds.keys() - found.keys())[:5]:
        yield Broken(f"the checkpoint of version {held.state.version} lacks the live file", key[0])
    for key in sorted(found.keys() - held.state.adds.keys())[:5]:
        yield Broken(f"the checkpoint of version {held.state.version} has the file, which is not live", key[0])
    for key, count in found.items():
        if count > 1:
            yield Broken(f"the checkpoint of version {held.state.version} has the file {count} times", key[0])


@rule("Checkpoints")
def checkpoints_say_the_same_of_files(held: HeldCheckpoint) -> Breaches:
    """Sizes, partition values, vectors, row ids and tags are those of the commits."""
    for value in held.files.of("add") if held.state is not None else ():
        assert held.state is not None
        mine = held.state.adds.get(held.state.key(value))
        names = differing(mine, value) if mine is not None else []
        if names:
            yield Broken(
                f"the checkpoint of version {held.state.version} says otherwise of {', '.join(names)}", str(value.get("path"))
            )


@rule("Checkpoints")
def checkpoint_files_have_their_members(held: HeldCheckpoint) -> Breaches:
    """The members are those required in a commit."""
    for kind in _FILE_ACTIONS:
        for value in held.files.of(kind):
            for wrong in wrong_members(kind, value):
                yield Broken(wrong, str(value.get("path")))


@rule("Action Reconciliation")
def tombstones_are_not_live(held: HeldCheckpoint) -> Breaches:
    """No logical file is both added and removed."""
    if held.state is None:
        return
    live = {held.state.key(value) for value in held.files.of("add")}
    for value in held.files.of("remove"):
        if held.state.key(value) in live:
            yield Broken("the checkpoint has an add and a remove of the logical file", str(value.get("path")))


@rule("Checkpoints")
def tombstones_were_removed(held: HeldCheckpoint) -> Breaches:
    """A checkpoint's tombstones are in the commits."""
    if held.state is None or not held.state.complete:
        return
    for value in held.files.of("remove"):
        if held.state.key(value) not in held.state.removes:
            yield Broken("the checkpoint has a tombstone that no commit made", str(value.get("path")))


@rule("Checkpoints")
def tombstones_have_no_statistics(held: HeldCheckpoint) -> Breaches:
    """`remove` has neither `stats` nor `tags` in a checkpoint."""
    for value in held.files.of("remove"):
        for name in ("stats", "tags"):
            if value.get(name):
                yield Broken(f"the tombstone has {name}", str(value.get("path")))


@rule("Checkpoints")
def checkpoints_hold_the_transactions(held: HeldCheckpoint) -> Breaches:
    """They are the newest of each application; old ones may have expired."""
    if held.state is None or not held.state.complete or held.files.unreadable:
        return
    for value in held.files.of("txn"):
        mine = held.state.transactions.get(str(value.get("appId")))
        if mine is None or mine.get("version") != value.get("version"):
            yield f"it says transaction {value.get('version')} of '{value.get('appId')}', and the commits {mine and mine.get('version')}"
    known = {str(value.get("appId")) for value in held.files.of("txn")}
    keeps = held.state.settings is not None and not held.state.settings.property("delta.setTransactionRetentionDuration")
    for application in sorted(held.state.transactions.keys() - known) if keeps else ():
        yield f"it lacks the transaction of '{application}'"


@rule("Checkpoints")
def checkpoints_hold_the_domains(held: HeldCheckpoint) -> Breaches:
    """They are those that were not removed, without tombstones."""
    found = {str(value.get("domain")): value for value in held.files.of("domainMetadata")}
    for domain, value in found.items():
        if value.get("removed"):
            yield f"it holds the domain '{domain}', which is removed"
    if held.state is None or not held.state.complete or held.files.unreadable:
        return
    for domain in sorted(held.state.domains.keys() | found.keys()):
        if (held.state.domains.get(domain) or {}).get("configuration") != (found.get(domain) or {}).get("configuration"):
            yield f"it says otherwise of the domain '{domain}' than the commits"


@rule("Checkpoints")
def checkpoints_keep_no_provenance(held: HeldCheckpoint) -> Breaches:
    """A checkpoint contains no `commitInfo` and no `cdc`."""
    for kind in ("commitInfo", "cdc"):
        if held.files.of(kind):
            yield f"it has a {kind} action"


@rule("Checkpoints")
def statistics_are_kept_as_asked(held: HeldCheckpoint) -> Breaches:
    """It has `stats` unless `writeStatsAsJson` is false, `stats_parsed` if `writeStatsAsStruct` is true."""
    settings = None if held.state is None else held.state.settings
    if settings is None or held.state is None:
        return
    told = [key for key, value in held.state.adds.items() if value.get("stats")]
    members = held.files.members.get("add", frozenset())
    as_json = settings.property("delta.checkpoint.writeStatsAsJson", "true").lower() == "true"
    as_struct = settings.is_on("delta.checkpoint.writeStatsAsStruct")
    if as_json and told and not any(value.get("stats") for value in held.files.of("add")) and held.files.of("add"):
        yield "the commits tell statistics, and the checkpoint has none as JSON"
    if not as_json and any(value.get("stats") for value in held.files.of("add")):
        yield "delta.checkpoint.writeStatsAsJson is false, and the checkpoint has statistics as JSON"
    if members and not held.files.sidecars and as_struct and told and "stats_parsed" not in members:
        yield "delta.checkpoint.writeStatsAsStruct is true, and the checkpoint has no stats_parsed"


@rule("Checkpoint Schema")
def lists_of_features_are_kept(held: HeldCheckpoint) -> Breaches:
    """It has `readerFeatures` with reader version 3, `writerFeatures` with writer version 7, and not otherwise."""
    for value in held.files.of("protocol"):
        for name, version, needed in (("readerFeatures", "minReaderVersion", 3), ("writerFeatures", "minWriterVersion", 7)):
            if (value.get(name) is not None) != (value.get(version) == needed):
                yield f"its {version} is {value.get(version)}, and {name} is {value.get(name)}"


# -- specs -----------------------------------------------------------------------------------------------------------------


@rule("V2 Spec")
def v2_checkpoints_need_the_feature(held: HeldCheckpoint) -> Breaches:
    """`v2Checkpoint` is supported if there is a V2 checkpoint."""
    if held.is_v2 and not held.supports(Feature.V2_CHECKPOINT):
        yield "it follows the V2 spec, and the protocol does not support v2Checkpoint"


@rule("V2 Spec")
def v2_checkpoints_have_one_metadata(held: HeldCheckpoint) -> Breaches:
    """A V2 checkpoint has exactly one `checkpointMetadata`, of its own version."""
    found = held.files.of("checkpointMetadata")
    if held.is_v2 and len(found) != 1:
        yield f"it has {len(found)} checkpointMetadata actions"
    for value in found[:1]:
        if value.get("version") != held.files.checkpoint.version:
            yield f"its checkpointMetadata says version {value.get('version')}"


@rule("Allowed combinations for `checkpoint spec` <-> `checkpoint file naming`")
def specs_fit_their_names(held: HeldCheckpoint) -> Breaches:
    """A name with a UUID is of the V2 spec, a name with a part number of the V1 spec."""
    if held.files.unreadable:
        return
    parts = len(held.files.checkpoint.entries)
    if held.files.name.count("-") >= 4 and not held.is_v2:
        yield "its name has a UUID, and it has no checkpointMetadata"
    if parts > 1 and held.is_v2:
        yield f"it has {parts} parts, and follows the V2 spec"


@rule("V2 Checkpoint Table Feature")
def no_parts_beside_v2(held: HeldCheckpoint) -> Breaches:
    """Multi-part checkpoints are forbidden if `v2Checkpoint` is supported."""
    settings = None if held.state is None else held.state.settings
    if len(held.files.checkpoint.entries) > 1 and settings is not None and settings.supports(Feature.V2_CHECKPOINT):
        yield f"it has {len(held.files.checkpoint.entries)} parts, and the protocol supports v2Checkpoint"


@rule("Sidecar File Information")
def sidecars_are_there(held: HeldCheckpoint) -> Breaches:
    """Each is in ``_delta_log/_sidecars``, readable, and has its recorded size."""
    for sidecar in held.files.sidecars:
        path = str(sidecar.action.get("path"))
        if sidecar.size is None:
            yield Broken("the sidecar is missing", path)
        elif sidecar.size != sidecar.action.get("sizeInBytes"):
            yield Broken(f"the sidecar has {sidecar.size} bytes, the checkpoint says {sidecar.action.get('sizeInBytes')}", path)
        elif sidecar.rows is None:
            yield Broken("the sidecar cannot be read", path)
        if not isinstance(sidecar.action.get("modificationTime"), int):
            yield Broken("the sidecar action has no modificationTime", path)


@rule("Sidecar Files")
def sidecars_hold_file_actions(held: HeldCheckpoint) -> Breaches:
    """Sidecars contain only `add` and `remove`."""
    for sidecar in held.files.sidecars:
        for kind in sorted({name for name, _ in sidecar.rows or ()} - {*_FILE_ACTIONS}):
            yield Broken(f"the sidecar holds {kind} actions", str(sidecar.action.get("path")))


@rule("V2 Spec")
def files_are_in_sidecars_or_not(held: HeldCheckpoint) -> Breaches:
    """Sidecars contain all of the file actions or none."""
    within = [name for name, _ in held.files.rows if name in _FILE_ACTIONS]
    if within and any(sidecar.rows for sidecar in held.files.sidecars):
        yield f"it holds {len(within)} file actions itself, and others in sidecars"


@rule("Checkpoint Metadata Tags")
def tags_of_v2_checkpoints_are_right(held: HeldCheckpoint) -> Breaches:
    """Counts in the tags are the actual counts."""
    if any(sidecar.rows is None for sidecar in held.files.sidecars):
        return
    counts = {
        "sidecarNumActions": sum(len(sidecar.rows or ()) for sidecar in held.files.sidecars),
        "sidecarSizeInBytes": sum(sidecar.size or 0 for sidecar in held.files.sidecars),
        "numOfAddFiles": len(held.files.of("add")),
    }
    for value in held.files.of("checkpointMetadata"):
        tags = value.get("tags")
        for name, counted in counts.items():
            said = tags.get(name) if isinstance(tags, dict) else None
            if said is not None and said != str(counted):
                yield f"its tag {name} is {said!r}, counted are {counted}"


RULES: tuple[Rule[HeldCheckpoint], ...] = (
    checkpoints_can_be_read,
    checkpoints_have_protocol_and_metadata,
    checkpoints_repeat_the_settings,
    checkpoints_hold_the_live_files,
    checkpoints_say_the_same_of_files,
    checkpoint_files_have_their_members,
    tombstones_are_not_live,
    tombstones_were_removed,
    tombstones_have_no_statistics,
    checkpoints_hold_the_transactions,
    checkpoints_hold_the_domains,
    checkpoints_keep_no_provenance,
    statistics_are_kept_as_asked,
    lists_of_features_are_kept,
    v2_checkpoints_need_the_feature,
    v2_checkpoints_have_one_metadata,
    specs_fit_their_names,
    no_parts_beside_v2,
    sidecars_are_there,
    sidecars_hold_file_actions,
    files_are_in_sidecars_or_not,
    tags_of_v2_checkpoints_are_right,
)
