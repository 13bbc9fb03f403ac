"""Rules of a commit: which actions it may combine, how it may change the version before it, and its commit info."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from tahoe.ops.check.subjects.raw_log import Commit
from tahoe.ops.check.subjects.replayed_log import Step, unique_id
from tahoe.ops.check.subjects.rule import Breaches, Broken, RuleList
from tahoe.protocol.features import Feature

FORMAT_RULES: RuleList[Commit] = RuleList()
RULES: RuleList[Step] = RuleList()


def _twice(values: Iterable[object]) -> list[Any]:
    return [value for value, count in Counter(values).items() if count > 1]


@FORMAT_RULES.rule("Delta Log Entries")
def a_line_is_one_action(commit: Commit) -> Breaches:
    """A commit is newline-delimited JSON with one action per line."""
    yield from commit.unreadable


@FORMAT_RULES.rule("Change Metadata", quick="commit")
def the_first_version_has_metadata(commit: Commit) -> Breaches:
    """It has a protocol too: without both there is no snapshot."""
    for kind in ("protocol", "metaData") if commit.version == 0 else ():
        if not commit.of(kind):
            yield f"version 0 has no {kind} action"


@RULES.rule("Delta Log Entries")
def one_metadata_action(step: Step) -> Breaches:
    """A commit has at most one `metaData`."""
    if len(step.commit.of("metaData")) > 1:
        yield f"the commit has {len(step.commit.of('metaData'))} metaData actions"


@RULES.rule("Delta Log Entries")
def one_protocol_action(step: Step) -> Breaches:
    """A commit has at most one `protocol`."""
    if len(step.commit.of("protocol")) > 1:
        yield f"the commit has {len(step.commit.of('protocol'))} protocol actions"


@RULES.rule("Delta Log Entries")
def one_transaction_of_an_application(step: Step) -> Breaches:
    """A commit has at most one `txn` with the same `appId`."""
    for application in _twice(value.get("appId") for value in step.commit.of("txn")):
        yield f"the commit has two txn actions of the application '{application}'"


@RULES.rule("Domain Metadata")
def one_action_of_a_domain(step: Step) -> Breaches:
    """A commit has at most one action for each domain."""
    for domain in _twice(value.get("domain") for value in step.commit.of("domainMetadata")):
        yield f"the commit has two domainMetadata actions of '{domain}'"


@RULES.rule("Add File and Remove File")
def a_path_occurs_once(step: Step) -> Breaches:
    """A commit has at most one `add` and one `remove` of a path, and not both for one logical file."""
    for kind in ("add", "remove"):
        for path in _twice(step.before.path(value) for value in step.commit.of(kind)):
            yield Broken(f"the commit has two {kind} actions of the path", path)
    added = {step.before.key(value) for value in step.commit.of("add")}
    for key in added & {step.before.key(value) for value in step.commit.of("remove")}:
        yield Broken("the commit adds and removes the same logical file", key[0])


@RULES.rule("Add File and Remove File")
def a_live_path_is_removed_before_it_is_added(step: Step) -> Breaches:
    """A path that is live with another vector is added only together with the removal of that logical file."""
    live = step.before.live_paths()
    removed = {step.before.key(value) for value in step.commit.of("remove")}
    for value in step.commit.of("add"):
        key = live.get(step.before.path(value))
        if key is not None and key != step.before.key(value) and key not in removed:
            yield Broken("the file is added with another deletion vector, and the live one is not removed", key[0])


@RULES.rule("Action Reconciliation")
def checkpoint_actions_stay_in_checkpoints(step: Step) -> Breaches:
    """`checkpointMetadata` and `sidecar` are not allowed in commits."""
    for kind in ("checkpointMetadata", "sidecar"):
        if step.commit.of(kind):
            yield f"the commit has a {kind} action"


@RULES.rule("Append-only Tables")
def append_only_tables_lose_nothing(step: Step) -> Breaches:
    """No removal in an append-only table changes data."""
    before = step.before.settings
    if before is None or not before.is_active(Feature.APPEND_ONLY, "delta.appendOnly"):
        return
    if not step.settings.is_active(Feature.APPEND_ONLY, "delta.appendOnly"):
        return
    for value in step.commit.of("remove"):
        if value.get("dataChange"):
            yield Broken("the table is append-only, and the commit removes data", str(value.get("path")))


@RULES.rule("Add File and Remove File")
def what_changes_no_data_only_rearranges(step: Step) -> Breaches:
    """If `dataChange` is false, the file existed already, or its rows come from files that the commit removes."""
    removes, adds, live = step.commit.of("remove"), step.commit.of("add"), step.before.live_paths()
    for value in adds:
        if value.get("dataChange") is False and not removes and step.before.path(value) not in live:
            yield Broken(
                "the file is new, says dataChange false, and the commit removes no file whose rows it could contain",
                value["path"],
            )
    for value in removes:
        live_add = step.before.adds.get(step.before.key(value))
        if value.get("dataChange") is False and not adds and live_add is not None and _living_rows(live_add) != 0:
            yield Broken("the file is removed with dataChange false, and the commit adds no file for its rows", value["path"])


def _living_rows(add: dict[str, Any]) -> int | None:
    """Return the number of a file's live rows; None if its statistics lack a row count."""
    try:
        rows = json.loads(add.get("stats") or "{}").get("numRecords")
    except (ValueError, AttributeError):
        return None
    vector = add.get("deletionVector")
    return rows - (vector.get("cardinality") or 0 if isinstance(vector, dict) else 0) if isinstance(rows, int) else None


@RULES.rule("Add CDC File")
def change_files_change_no_data(step: Step) -> Breaches:
    """`dataChange` is false in a `cdc` action."""
    for value in step.commit.of("cdc"):
        if value.get("dataChange") is True:
            yield Broken("the cdc action says dataChange true", str(value.get("path")))


@RULES.rule("Writer Requirements for AddCDCFile")
def change_files_need_the_feature(step: Step) -> Breaches:
    """Change files are written only if the change data feed is supported."""
    for value in step.commit.of("cdc"):
        if not step.settings.supports(Feature.CHANGE_DATA_FEED):
            yield Broken("the commit has a change file, and the protocol does not support changeDataFeed", str(value.get("path")))


@RULES.rule("Change Data Files")
def change_files_stand_in_their_folder(step: Step) -> Breaches:
    """They are below ``_change_data``, unless the file is added too."""
    added = {step.before.path(value) for value in step.commit.of("add")}
    for value in step.commit.of("cdc"):
        path = step.before.path(value)
        if not path.startswith("_change_data/") and path not in added:
            yield Broken("the change file is not below _change_data", path)


@RULES.rule("Writer Requirements for AddCDCFile")
def updated_files_tell_their_changes(step: Step) -> Breaches:
    """A file that only gets another vector would appear as all of its rows removed and most of them inserted."""
    if not step.settings.is_active(Feature.CHANGE_DATA_FEED, "delta.enableChangeDataFeed") or step.commit.of("cdc"):
        return
    removed = {step.before.path(value): value for value in step.commit.of("remove") if value.get("dataChange")}
    for value in step.commit.of("add"):
        gone = removed.get(step.before.path(value))
        updated = gone is not None and bool(value.get("dataChange")) and _operation(step) == "UPDATE"
        if gone is not None and updated and unique_id(gone.get("deletionVector")) != unique_id(value.get("deletionVector")):
            yield Broken("rows of the file change, the change data feed is on, and the commit has no cdc action", value["path"])


def _operation(step: Step) -> str | None:
    return next((info.get("operation") for info in step.commit.of("commitInfo")), None)


@RULES.rule("Writer Requirements for In-Commit Timestamps")
def commit_info_comes_first(step: Step) -> Breaches:
    """`commitInfo` is the first action if commits record their timestamps."""
    kinds = [name for name, _ in step.commit.actions]
    if _times(step) and kinds[:1] != ["commitInfo"]:
        yield f"in-commit timestamps are on, and the first action is {kinds[0] if kinds else 'missing'}, not commitInfo"


@RULES.rule("Writer Requirements for In-Commit Timestamps")
def commit_info_has_its_time(step: Step) -> Breaches:
    """It has `inCommitTimestamp`, a long."""
    if _times(step) and not any(isinstance(info.get("inCommitTimestamp"), int) for info in step.commit.of("commitInfo")):
        yield "in-commit timestamps are on, and no commitInfo action has one"


@RULES.rule("Writer Requirements for In-Commit Timestamps")
def in_commit_timestamps_increase(step: Step) -> Breaches:
    """Each is at least a millisecond after the previous commit's."""
    last = step.before.timestamp
    for info in step.commit.of("commitInfo")[:1] if _times(step) and _times_before(step) else ():
        time = info.get("inCommitTimestamp")
        if isinstance(time, int) and last is not None and time <= last:
            yield f"the in-commit timestamp {time} is not after {last}, its predecessor's"


@RULES.rule("Writer Requirements for In-Commit Timestamps")
def enablement_of_timestamps_is_told(step: Step) -> Breaches:
    """The properties record the first version with in-commit timestamps and its time, if there are older versions."""
    if not _times(step) or _times_before(step) or step.commit.version == 0 or step.before.version < 0:
        return
    times = [info.get("inCommitTimestamp") for info in step.commit.of("commitInfo")]
    for name, expected in (("Version", step.commit.version), ("Timestamp", times[0] if times else None)):
        value = step.settings.property(f"delta.inCommitTimestampEnablement{name}")
        if value != str(expected):
            yield f"delta.inCommitTimestampEnablement{name} is {value or 'not there'}, expected {expected}"


def _times(step: Step) -> bool:
    return step.settings.is_active(Feature.IN_COMMIT_TIMESTAMP, "delta.enableInCommitTimestamps")


def _times_before(step: Step) -> bool:
    return step.before.settings is not None and step.before.settings.is_active(
        Feature.IN_COMMIT_TIMESTAMP, "delta.enableInCommitTimestamps"
    )


@RULES.rule("Commit Provenance Information")
def catalog_managed_commits_have_an_id(step: Step) -> Breaches:
    """`commitInfo` has a `txnId`, if the table is managed by a catalog."""
    if step.settings.supports(Feature.CATALOG_MANAGED) and not any(info.get("txnId") for info in step.commit.of("commitInfo")):
        yield "the table is catalog-managed, and no commitInfo action has a txnId"
