"""Violations in checkpoints, checksums and compactions."""

from __future__ import annotations

import pyarrow as pa

from tests.unit.ops.check.planting import (
    Planted,
    actions_of,
    add_of,
    both,
    checkpoint,
    checksum,
    compaction,
    edit,
    file,
    in_two_parts,
    one_file_beside_the_sidecar,
    pointer,
    renamed_checkpoint,
    set_members,
    sidecar,
    without_feature,
)

PLANTED: list[Planted] = [
    # checkpoint rules
    (
        "a tombstone with statistics",
        "checkpointed",
        checkpoint(
            lambda rows: set_members(rows, "remove", stats="{}"),
            remove=pa.struct(
                {"path": pa.string(), "dataChange": pa.bool_(), "deletionTimestamp": pa.int64(), "stats": pa.string()}
            ),
        ),
        {"tombstones-have-no-statistics"},
    ),
    (
        "a checkpoint with a domain that no commit made",
        "checkpointed",
        checkpoint(lambda rows: rows.append({"domainMetadata": {"domain": "mine", "configuration": "{}", "removed": False}})),
        {"checkpoints-hold-the-domains"},
    ),
    (
        "a checkpoint with provenance",
        "checkpointed",
        checkpoint(
            lambda rows: rows.append({"commitInfo": {"operation": "WRITE"}}),
            commitInfo=pa.struct({"operation": pa.string()}),
        ),
        {"checkpoints-keep-no-provenance"},
    ),
    (
        "a classic checkpoint under the name of a V2",
        "checkpointed",
        renamed_checkpoint(f"{3:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.parquet"),
        {"specs-fit-their-names"},
    ),
    (
        "a checkpoint of two parts beside V2",
        "v2_classic",
        both(in_two_parts, pointer(parts=2)),
        {"no-parts-beside-v2"},
    ),
    (
        "a sidecar with an action of another kind",
        "v2",
        sidecar(lambda rows: rows.append({"later": {"id": 1}}), later=pa.struct({"id": pa.int64()})),
        {"sidecars-hold-file-actions"},
    ),
    (
        "file actions in the checkpoint and in a sidecar",
        "v2",
        one_file_beside_the_sidecar,
        {"files-are-in-sidecars-or-not"},
    ),
    (
        "a tag that counts other files",
        "v2",
        checkpoint(lambda rows: set_members(rows, "checkpointMetadata", tags=[("numOfAddFiles", "9")])),
        {"tags-of-v2-checkpoints-are-right"},
    ),
    (
        "a checkpoint that cannot be read",
        "checkpointed",
        file("_delta_log/*.checkpoint.parquet", lambda data: data[: len(data) // 2]),
        {"checkpoints-can-be-read"},
    ),
    (
        "a checkpoint without a protocol",
        "checkpointed",
        checkpoint(lambda rows: [row for row in rows if row["protocol"] is None]),
        {"checkpoints-have-protocol-and-metadata"},
    ),
    (
        "a checkpoint of other metadata",
        "checkpointed",
        checkpoint(lambda rows: set_members(rows, "metaData", id="other")),
        {"checkpoints-repeat-the-settings"},
    ),
    (
        "a checkpoint without lists of features",
        "checkpointed",
        checkpoint(lambda rows: set_members(rows, "protocol", writerFeatures=None)),
        {"lists-of-features-are-kept", "checkpoints-repeat-the-settings"},
    ),
    (
        "a checkpoint that lacks a file",
        "checkpointed",
        checkpoint(lambda rows: rows.remove(next(row for row in rows if row["add"] is not None))),
        {"checkpoints-hold-the-live-files"},
    ),
    (
        "a checkpoint that has a file twice",
        "checkpointed",
        checkpoint(lambda rows: rows.append(next(row for row in rows if row["add"] is not None))),
        {"checkpoints-hold-the-live-files"},
    ),
    (
        "a missing sidecar",
        "v2",
        file("_delta_log/_sidecars/*.parquet", lambda _: None),
        {"sidecars-are-there", "checkpoints-hold-the-live-files"},
    ),
    (
        "a checkpoint that says another size",
        "checkpointed",
        checkpoint(lambda rows: set_members(rows, "add", size=1)),
        {"checkpoints-say-the-same-of-files"},
    ),
    (
        "a checkpoint with a file that has no path",
        "checkpointed",
        checkpoint(lambda rows: set_members(rows, "add", modificationTime=None)),
        {"checkpoint-files-have-their-members", "checkpoints-say-the-same-of-files"},
    ),
    (
        "a tombstone of a live file",
        "checkpointed",
        checkpoint(lambda rows: set_members(rows, "remove", **{name: add_of(rows)[name] for name in ("path", "deletionVector")})),
        {"tombstones-are-not-live", "tombstones-were-removed"},
    ),
    (
        "a tombstone that no commit made",
        "checkpointed",
        checkpoint(lambda rows: set_members(rows, "remove", path="never.parquet")),
        {"tombstones-were-removed"},
    ),
    (
        "a checkpoint of another transaction",
        "checkpointed",
        checkpoint(lambda rows: set_members(rows, "txn", version=6)),
        {"checkpoints-hold-the-transactions"},
    ),
    (
        "a checkpoint without statistics",
        "checkpointed",
        checkpoint(lambda rows: [row["add"].update(stats=None) for row in rows if row["add"] is not None] and None),
        {"statistics-are-kept-as-asked"},
    ),
    (
        "a V2 checkpoint without the feature",
        "v2",
        both(
            edit(0, lambda actions: without_feature(actions, "v2Checkpoint")),
            checkpoint(lambda rows: without_feature(rows, "v2Checkpoint")),
            *(checksum(each, protocol=...) for each in range(4)),
        ),
        {"v2-checkpoints-need-the-feature", "checksums-have-their-members"},
    ),
    (
        "a V2 checkpoint of another version",
        "v2",
        checkpoint(lambda rows: set_members(rows, "checkpointMetadata", version=7)),
        {"v2-checkpoints-have-one-metadata"},
    ),
    # summary rules
    ("a checksum without a protocol", "checkpointed", checksum(3, protocol=...), {"checksums-have-their-members"}),
    ("a checksum of other files", "checkpointed", checksum(3, numFiles=9), {"checksums-count-the-files"}),
    ("a checksum of other vectors", "checkpointed", checksum(3, numDeletedRecordsOpt=9), {"checksums-count-the-vectors"}),
    (
        "a checksum of other metadata",
        "checkpointed",
        checksum(3, metadata={"id": "other"}),
        {"checksums-repeat-the-settings"},
    ),
    ("a checksum with a time", "checkpointed", checksum(3, inCommitTimestampOpt=5), {"checksums-have-the-time"}),
    ("a checksum of another transaction", "checkpointed", checksum(3, txnId="other"), {"checksums-have-the-commits-id"}),
    (
        "a checksum of other transactions",
        "checkpointed",
        checksum(3, setTransactions=[{"appId": "app", "version": 8}]),
        {"checksums-hold-the-transactions"},
    ),
    (
        "a checksum with a domain",
        "checkpointed",
        checksum(3, domainMetadata=[{"domain": "mine", "configuration": "", "removed": False}]),
        {"checksums-hold-the-domains"},
    ),
    ("a checksum that lists no files", "checkpointed", checksum(3, allFiles=[]), {"checksums-hold-the-files"}),
    (
        "a checksum with another histogram",
        "checkpointed",
        checksum(3, fileSizeHistogram={"sortedBinBoundaries": [0], "fileCounts": [9], "totalBytes": [9]}),
        {"size-histograms-are-right"},
    ),
    (
        "a checksum with another histogram of deletions",
        "checkpointed",
        checksum(3, deletedRecordCountsHistogramOpt={"deletedRecordCounts": [9] * 10}),
        {"deletion-histograms-are-right"},
    ),
    (
        "a compaction with a line that is none",
        "plain",
        both(
            lambda table: compaction(
                table, 1, 2, [each for v in (1, 2) for each in actions_of(table, v) if "commitInfo" not in each]
            ),
            file("_delta_log/*.compacted.json", lambda data: data + b"{\n"),
        ),
        {"compactions-are-lines-of-actions"},
    ),
    (
        "a compaction that lacks a file",
        "plain",
        lambda table: compaction(table, 0, 1, [each for each in actions_of(table, 0) if "commitInfo" not in each]),
        {"compactions-say-what-their-commits-say"},
    ),
    (
        "a compaction that keeps provenance",
        "plain",
        lambda table: compaction(table, 0, 1, [*actions_of(table, 0), *actions_of(table, 1)]),
        {"compactions-keep-no-provenance"},
    ),
]
