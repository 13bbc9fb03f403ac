"""Violations in the log's folder and in a commit's actions."""

from __future__ import annotations

import shutil

from tests.unit.ops.check.planting import (
    Planted,
    as_if_given_a_vector,
    both,
    compaction,
    configure,
    edit,
    enable_times,
    feature,
    file,
    log_of,
    pointer,
    put,
    say,
    twice,
    vector,
    without_id,
)

MANAGED = ("catalogManaged", "vacuumProtocolCheck", "inCommitTimestamp")

PLANTED: list[Planted] = [
    # log rules
    ("a gap in the log", "plain", file("_delta_log/*1.json", lambda _: None), {"versions-are-contiguous"}),
    (
        "no checkpoint of what is gone",
        "plain",
        file("_delta_log/*0.json", lambda _: None),
        {"what-is-gone-is-in-a-checkpoint"},
    ),
    (
        "a short name",
        "plain",
        lambda table: shutil.copy(log_of(table) / f"{0:020d}.json", log_of(table) / "7.json"),
        {"names-have-twenty-digits"},
    ),
    (
        "a checkpoint of a version that is not there",
        "checkpointed",
        lambda table: shutil.copy(log_of(table) / f"{3:020d}.checkpoint.parquet", log_of(table) / f"{9:020d}.checkpoint.parquet"),
        {"checkpoints-follow-their-commits"},
    ),
    (
        "a checksum of a version that is not there",
        "plain",
        lambda table: (log_of(table) / f"{9:020d}.crc").write_text("{}"),
        {"checksums-follow-their-commits"},
    ),
    (
        "a compaction that goes too far",
        "plain",
        lambda table: compaction(table, 1, 9, []),
        {"compactions-cover-commits-that-there-were"},
    ),
    ("a pointer without a size", "checkpointed", pointer(size="many"), {"the-pointer-has-its-members"}),
    ("a pointer to no checkpoint", "checkpointed", pointer(version=2), {"the-pointer-names-a-checkpoint"}),
    ("a pointer with parts", "checkpointed", pointer(parts=4), {"the-pointer-names-a-checkpoint"}),
    ("a pointer's checksum", "checkpointed", pointer(checksum="0" * 32), {"the-pointer-has-the-right-checksum"}),
    # commit rules
    (
        "a commit of a catalog's table without an id",
        "plain",
        both(feature(0, *MANAGED, reader=MANAGED[:2]), edit(1, without_id)),
        {"catalog-managed-commits-have-an-id"},
    ),
    (
        "a line that is no JSON",
        "plain",
        file("_delta_log/*1.json", lambda data: data + b"{half\n"),
        {"a-line-is-one-action"},
    ),
    ("two actions in a line", "plain", say(1, {"txn": {}, "add": {}}), {"a-line-is-one-action"}),
    (
        "no metadata at the beginning",
        "plain",
        edit(0, lambda actions: [action for action in actions if "metaData" not in action]),
        {"the-first-version-has-metadata"},
    ),
    ("two metadata actions", "plain", edit(0, twice("metaData")), {"one-metadata-action"}),
    ("two protocol actions", "plain", edit(0, twice("protocol")), {"one-protocol-action"}),
    (
        "two transactions of an application",
        "plain",
        say(1, {"txn": {"appId": "a", "version": 1}}, {"txn": {"appId": "a", "version": 2}}),
        {"one-transaction-of-an-application"},
    ),
    ("a domain twice", "tracked", edit(1, twice("domainMetadata")), {"one-action-of-a-domain"}),
    ("a path twice", "plain", edit(1, twice("add")), {"a-path-occurs-once"}),
    (
        "a vector's file that is not removed",
        "vectors",
        edit(1, lambda actions: [action for action in actions if "remove" not in action]),
        {"a-live-path-is-removed-before-it-is-added"},
    ),
    ("a sidecar in a commit", "plain", say(1, {"sidecar": {"path": "a"}}), {"checkpoint-actions-stay-in-checkpoints"}),
    ("an append-only table", "plain", configure(0, delta__appendOnly="true"), {"append-only-tables-lose-nothing"}),
    ("new data that says it is none", "plain", put(1, "add", dataChange=False), {"what-changes-no-data-only-rearranges"}),
    ("a change file that changes data", "changes", put(1, "cdc", dataChange=True), {"change-files-change-no-data"}),
    (
        "a change file without the feed",
        "changes",
        both(
            configure(0, delta__enableChangeDataFeed="false"),
            put(0, "protocol", minReaderVersion=1, minWriterVersion=2, writerFeatures=...),
        ),
        {"change-files-need-the-feature"},
    ),
    (
        "a change file elsewhere",
        "changes",
        both(
            lambda table: shutil.copy(sorted(table.glob("_change_data/*"))[0], table / "moved.parquet"),
            put(1, "cdc", path="moved.parquet"),
        ),
        {"change-files-stand-in-their-folder"},
    ),
    (
        "an update that does not tell its changes",
        "changes",
        both(
            edit(1, lambda actions: [each for each in actions if "cdc" not in each]),
            edit(1, lambda actions: as_if_given_a_vector(actions)),
        ),
        {"updated-files-tell-their-changes"},
    ),
    (
        "provenance at the end",
        "timed",
        edit(1, lambda actions: actions.append(actions.pop(0))),
        {"commit-info-comes-first"},
    ),
    ("a commit without its time", "timed", put(2, "commitInfo", inCommitTimestamp=...), {"commit-info-has-its-time"}),
    ("a time that goes back", "timed", put(2, "commitInfo", inCommitTimestamp=1), {"in-commit-timestamps-increase"}),
    (
        "times since when nobody knows",
        "plain",
        both(
            feature(0, "inCommitTimestamp"),
            lambda table: enable_times(table),
        ),
        {"enablement-of-timestamps-is-told"},
    ),
    # member rules
    ("an action that is a list", "plain", say(1, {"txn": []}), {"actions-are-objects"}),
    ("an add without a size", "plain", put(2, "add", size=...), {"add-has-its-members", "live-files-have-their-size"}),
    ("a remove without dataChange", "plain", put(2, "remove", dataChange=...), {"remove-has-its-members"}),
    ("a change file without a size", "changes", put(1, "cdc", size=...), {"cdc-has-its-members", "change-files-have-their-size"}),
    ("metadata without a configuration", "plain", put(0, "metaData", configuration=...), {"meta-data-has-its-members"}),
    (
        "a protocol without a reader version",
        "plain",
        put(0, "protocol", minReaderVersion=...),
        {"protocol-has-its-members", "versions-are-known"},
    ),
    ("a txn without a version", "plain", say(1, {"txn": {"appId": "a"}}), {"txn-has-its-members"}),
    (
        "a domain that does not say whether it goes",
        "tracked",
        put(1, "domainMetadata", removed=...),
        {"domain-metadata-has-its-members"},
    ),
    (
        "a descriptor without a size",
        "vectors",
        edit(1, lambda actions: vector(actions, sizeInBytes=None)),
        {"deletion-vector-has-its-members", "vectors-can-be-read", "vector-files-have-their-version"},
    ),
]
