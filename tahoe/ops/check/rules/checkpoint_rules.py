"""Rules of a checkpoint: its spec, and its agreement with the commits."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from tahoe.ops.check.rules.member_rules import wrong_members
from tahoe.ops.check.subjects.raw_log import CheckpointContents
from tahoe.ops.check.subjects.replayed_log import ReplayedLog
from tahoe.ops.check.subjects.rule import Breaches, Broken, RuleList
from tahoe.protocol.features import Feature

RULES: RuleList[CheckpointFile] = RuleList()

_FILE_ACTIONS = ("add", "remove")
_SAME = ("size", "modificationTime", "baseRowId", "defaultRowCommitVersion", "clusteringProvider", "deletionVector", "tags")


@dataclass(frozen=True)
class CheckpointFile:
    """A checkpoint and the state after its commits; None if the commits do not reach back to it."""

    contents: CheckpointContents
    state: ReplayedLog | None

    @property
    def is_v2(self) -> bool:
        """Whether it follows the V2 spec, because it contains actions of that spec."""
        return bool(self.contents.of("checkpointMetadata") or self.contents.sidecars)

    def supports(self, feature: str) -> bool:
        """Whether the state's protocol supports a feature; True without a state."""
        return self.state is None or self.state.settings is None or self.state.settings.supports(feature)


def differing(expected: dict[str, Any], actual: dict[str, Any]) -> list[str]:
    """Return the members of two `add` actions that differ for a reader."""
    names = [name for name in _SAME if (expected.get(name) or None) != (actual.get(name) or None)]
    values = [{key: text or None for key, text in (add.get("partitionValues") or {}).items()} for add in (expected, actual)]
    return names + (["partitionValues"] if values[0] != values[1] else [])


@RULES.rule("Checkpoints")
def checkpoints_can_be_read(checkpoint: CheckpointFile) -> Breaches:
    """All files of a checkpoint can be read, including sidecars."""
    yield from checkpoint.contents.unreadable


@RULES.rule("Checkpoints")
def checkpoints_have_protocol_and_metadata(checkpoint: CheckpointFile) -> Breaches:
    """A checkpoint has exactly one of each."""
    for kind in ("protocol", "metaData") if not checkpoint.contents.unreadable else ():
        if len(checkpoint.contents.of(kind)) != 1:
            yield f"it has {len(checkpoint.contents.of(kind))} {kind} actions"


@RULES.rule("Checkpoints")
def checkpoints_repeat_the_settings(checkpoint: CheckpointFile) -> Breaches:
    """Protocol and metadata are those of the commits."""
    if checkpoint.state is not None:
        protocol, metadata = (next(iter(checkpoint.contents.of(kind)), None) for kind in ("protocol", "metaData"))
        yield from checkpoint.state.differences(protocol, metadata)


@RULES.rule("Checkpoints")
def checkpoints_hold_the_live_files(checkpoint: CheckpointFile) -> Breaches:
    """All of them, exactly once, and no other counts."""
    if checkpoint.state is None or checkpoint.contents.unreadable:
        return
    counts = Counter(checkpoint.state.key(value) for value in checkpoint.contents.of("add"))
    for key in sorted(checkpoint.state.adds.keys() - counts.keys())[:5]:
        yield Broken(f"the checkpoint of version {checkpoint.state.version} lacks the live file", key[0])
    for key in sorted(counts.keys() - checkpoint.state.adds.keys())[:5]:
        yield Broken(f"the checkpoint of version {checkpoint.state.version} has the file, which is not live", key[0])
    for key, count in counts.items():
        if count > 1:
            yield Broken(f"the checkpoint of version {checkpoint.state.version} has the file {count} times", key[0])


@RULES.rule("Checkpoints")
def checkpoints_say_the_same_of_files(checkpoint: CheckpointFile) -> Breaches:
    """Sizes, partition values, vectors, row ids and tags are those of the commits."""
    for value in checkpoint.contents.of("add") if checkpoint.state is not None else ():
        assert checkpoint.state is not None
        expected = checkpoint.state.adds.get(checkpoint.state.key(value))
        names = differing(expected, value) if expected is not None else []
        if names:
            yield Broken(
                f"the checkpoint of version {checkpoint.state.version} says otherwise of {', '.join(names)}",
                str(value.get("path")),
            )


@RULES.rule("Checkpoints")
def checkpoint_files_have_their_members(checkpoint: CheckpointFile) -> Breaches:
    """The members are those required in a commit."""
    for kind in _FILE_ACTIONS:
        for value in checkpoint.contents.of(kind):
            for wrong in wrong_members(kind, value):
                yield Broken(wrong, str(value.get("path")))


@RULES.rule("Action Reconciliation")
def tombstones_are_not_live(checkpoint: CheckpointFile) -> Breaches:
    """No logical file is both added and removed."""
    if checkpoint.state is None:
        return
    live = {checkpoint.state.key(value) for value in checkpoint.contents.of("add")}
    for value in checkpoint.contents.of("remove"):
        if checkpoint.state.key(value) in live:
            yield Broken("the checkpoint has an add and a remove of the logical file", str(value.get("path")))


@RULES.rule("Checkpoints")
def tombstones_were_removed(checkpoint: CheckpointFile) -> Breaches:
    """A checkpoint's tombstones are in the commits."""
    if checkpoint.state is None or not checkpoint.state.complete:
        return
    for value in checkpoint.contents.of("remove"):
        if checkpoint.state.key(value) not in checkpoint.state.removes:
            yield Broken("the checkpoint has a tombstone that no commit made", str(value.get("path")))


@RULES.rule("Checkpoints")
def tombstones_have_no_statistics(checkpoint: CheckpointFile) -> Breaches:
    """`remove` has neither `stats` nor `tags` in a checkpoint."""
    for value in checkpoint.contents.of("remove"):
        for name in ("stats", "tags"):
            if value.get(name):
                yield Broken(f"the tombstone has {name}", str(value.get("path")))


@RULES.rule("Checkpoints")
def checkpoints_hold_the_transactions(checkpoint: CheckpointFile) -> Breaches:
    """They are the newest of each application; old ones may have expired."""
    if checkpoint.state is None or not checkpoint.state.complete or checkpoint.contents.unreadable:
        return
    for value in checkpoint.contents.of("txn"):
        expected = checkpoint.state.transactions.get(str(value.get("appId")))
        if expected is None or expected.get("version") != value.get("version"):
            newest = expected and expected.get("version")
            yield f"it says transaction {value.get('version')} of '{value.get('appId')}', and the commits {newest}"
    applications = {str(value.get("appId")) for value in checkpoint.contents.of("txn")}
    keeps = checkpoint.state.settings is not None and not checkpoint.state.settings.property(
        "delta.setTransactionRetentionDuration"
    )
    for application in sorted(checkpoint.state.transactions.keys() - applications) if keeps else ():
        yield f"it lacks the transaction of '{application}'"


@RULES.rule("Checkpoints")
def checkpoints_hold_the_domains(checkpoint: CheckpointFile) -> Breaches:
    """They are those that were not removed, without tombstones."""
    domains = {str(value.get("domain")): value for value in checkpoint.contents.of("domainMetadata")}
    for domain, value in domains.items():
        if value.get("removed"):
            yield f"it contains the domain '{domain}', which is removed"
    if checkpoint.state is None or not checkpoint.state.complete or checkpoint.contents.unreadable:
        return
    for domain in sorted(checkpoint.state.domains.keys() | domains.keys()):
        if (checkpoint.state.domains.get(domain) or {}).get("configuration") != (domains.get(domain) or {}).get("configuration"):
            yield f"it says otherwise of the domain '{domain}' than the commits"


@RULES.rule("Checkpoints")
def checkpoints_keep_no_provenance(checkpoint: CheckpointFile) -> Breaches:
    """A checkpoint contains no `commitInfo` and no `cdc`."""
    for kind in ("commitInfo", "cdc"):
        if checkpoint.contents.of(kind):
            yield f"it has a {kind} action"


@RULES.rule("Checkpoints")
def statistics_are_kept_as_asked(checkpoint: CheckpointFile) -> Breaches:
    """It has `stats` unless `writeStatsAsJson` is false, `stats_parsed` if `writeStatsAsStruct` is true."""
    settings = None if checkpoint.state is None else checkpoint.state.settings
    if settings is None or checkpoint.state is None:
        return
    with_statistics = [key for key, value in checkpoint.state.adds.items() if value.get("stats")]
    adds = checkpoint.contents.of("add")
    has_json = any(value.get("stats") for value in adds)
    members = checkpoint.contents.members.get("add", frozenset())
    as_json = settings.property("delta.checkpoint.writeStatsAsJson", "true").lower() == "true"
    as_struct = settings.is_on("delta.checkpoint.writeStatsAsStruct")
    if (
        as_json
        and with_statistics
        and not any(value.get("stats") for value in checkpoint.contents.of("add"))
        and checkpoint.contents.of("add")
    ):
        yield "the commits have statistics, and the checkpoint has none as JSON"
    if not as_json and has_json:
        yield "delta.checkpoint.writeStatsAsJson is false, and the checkpoint has statistics as JSON"
    if members and not checkpoint.contents.sidecars and as_struct and with_statistics and "stats_parsed" not in members:
        yield "delta.checkpoint.writeStatsAsStruct is true, and the checkpoint has no stats_parsed"


@RULES.rule("Checkpoint Schema")
def lists_of_features_are_kept(checkpoint: CheckpointFile) -> Breaches:
    """It has `readerFeatures` with reader version 3, `writerFeatures` with writer version 7, and not otherwise."""
    for value in checkpoint.contents.of("protocol"):
        for name, version, needed in (("readerFeatures", "minReaderVersion", 3), ("writerFeatures", "minWriterVersion", 7)):
            if (value.get(name) is not None) != (value.get(version) == needed):
                yield f"its {version} is {value.get(version)}, and {name} is {value.get(name)}"


# -- specs -----------------------------------------------------------------------------------------------------------------


@RULES.rule("V2 Spec")
def v2_checkpoints_need_the_feature(checkpoint: CheckpointFile) -> Breaches:
    """`v2Checkpoint` is supported if there is a V2 checkpoint."""
    if checkpoint.is_v2 and not checkpoint.supports(Feature.V2_CHECKPOINT):
        yield "it follows the V2 spec, and the protocol does not support v2Checkpoint"


@RULES.rule("V2 Spec")
def v2_checkpoints_have_one_metadata(checkpoint: CheckpointFile) -> Breaches:
    """A V2 checkpoint has exactly one `checkpointMetadata`, of its own version."""
    actions = checkpoint.contents.of("checkpointMetadata")
    if checkpoint.is_v2 and len(actions) != 1:
        yield f"it has {len(actions)} checkpointMetadata actions"
    for value in actions[:1]:
        if value.get("version") != checkpoint.contents.checkpoint.version:
            yield f"its checkpointMetadata says version {value.get('version')}"


@RULES.rule("Allowed combinations for `checkpoint spec` <-> `checkpoint file naming`")
def specs_fit_their_names(checkpoint: CheckpointFile) -> Breaches:
    """A name with a UUID is of the V2 spec, a name with a part number of the V1 spec."""
    if checkpoint.contents.unreadable:
        return
    parts = len(checkpoint.contents.checkpoint.entries)
    if checkpoint.contents.name.count("-") >= 4 and not checkpoint.is_v2:
        yield "its name has a UUID, and it has no checkpointMetadata"
    if parts > 1 and checkpoint.is_v2:
        yield f"it has {parts} parts, and follows the V2 spec"


@RULES.rule("V2 Checkpoint Table Feature")
def no_parts_beside_v2(checkpoint: CheckpointFile) -> Breaches:
    """Multi-part checkpoints are forbidden if `v2Checkpoint` is supported."""
    settings = None if checkpoint.state is None else checkpoint.state.settings
    if len(checkpoint.contents.checkpoint.entries) > 1 and settings is not None and settings.supports(Feature.V2_CHECKPOINT):
        yield f"it has {len(checkpoint.contents.checkpoint.entries)} parts, and the protocol supports v2Checkpoint"


@RULES.rule("Sidecar File Information")
def sidecars_are_there(checkpoint: CheckpointFile) -> Breaches:
    """Each is in ``_delta_log/_sidecars``, readable, and has its recorded size."""
    for sidecar in checkpoint.contents.sidecars:
        path = str(sidecar.action.get("path"))
        if sidecar.size is None:
            yield Broken("the sidecar is missing", path)
        elif sidecar.size != sidecar.action.get("sizeInBytes"):
            yield Broken(f"the sidecar has {sidecar.size} bytes, the checkpoint says {sidecar.action.get('sizeInBytes')}", path)
        elif sidecar.rows is None:
            yield Broken("the sidecar cannot be read", path)
        if not isinstance(sidecar.action.get("modificationTime"), int):
            yield Broken("the sidecar action has no modificationTime", path)


@RULES.rule("Sidecar Files")
def sidecars_hold_file_actions(checkpoint: CheckpointFile) -> Breaches:
    """Sidecars contain only `add` and `remove`."""
    for sidecar in checkpoint.contents.sidecars:
        for kind in sorted({name for name, _ in sidecar.rows or ()} - {*_FILE_ACTIONS}):
            yield Broken(f"the sidecar contains {kind} actions", str(sidecar.action.get("path")))


@RULES.rule("V2 Spec")
def files_are_in_sidecars_or_not(checkpoint: CheckpointFile) -> Breaches:
    """Sidecars contain all of the file actions or none."""
    within = [name for name, _ in checkpoint.contents.rows if name in _FILE_ACTIONS]
    if within and any(sidecar.rows for sidecar in checkpoint.contents.sidecars):
        yield f"it contains {len(within)} file actions itself, and others in sidecars"


@RULES.rule("Checkpoint Metadata Tags")
def tags_of_v2_checkpoints_are_right(checkpoint: CheckpointFile) -> Breaches:
    """Counts in the tags are the actual counts."""
    if any(sidecar.rows is None for sidecar in checkpoint.contents.sidecars):
        return
    counts = {
        "sidecarNumActions": sum(len(sidecar.rows or ()) for sidecar in checkpoint.contents.sidecars),
        "sidecarSizeInBytes": sum(sidecar.size or 0 for sidecar in checkpoint.contents.sidecars),
        "numOfAddFiles": len(checkpoint.contents.of("add")),
    }
    for value in checkpoint.contents.of("checkpointMetadata"):
        tags = value.get("tags")
        for name, count in counts.items():
            stated = tags.get(name) if isinstance(tags, dict) else None
            if stated is not None and stated != str(count):
                yield f"its tag {name} is {stated!r}, counted are {count}"
