"""The snapshot that an Iceberg client committed, as the history of the Delta table records it.

A commit of an Iceberg client is a Delta commit whose operation is ``ICEBERG …``. Its parameters name the client and its snapshot, so that any
process that converts the version later, and any retry, gives the Iceberg snapshot the client's id and summary.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tahoe.base.json_values import JsonMapping

OPERATIONS = ("append", "replace", "overwrite", "delete")
"""The operations of snapshots (format/spec.md, "Snapshots")."""

REPLACE_TABLE = "ICEBERG REPLACE TABLE"
"""The operation of a Delta commit with which a client replaced the table's rows and its definition."""

CREATE_TABLE = "CREATE TABLE"
"""The operation of a Delta commit that creates a table; its parameters name the client, if it was one of Iceberg."""

_PREFIX = "ICEBERG "
_COUNTED = ("added-", "deleted-", "removed-", "total-", "changed-partition-count", "partitions.")
_ID = re.compile(r"[1-9]\d{0,18}")
_GREATEST_ID = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ClientSnapshot:
    """A snapshot as its client committed it.

    Args:
        snapshot_id: the client's id.
        operation: one of `OPERATIONS`.
        summary: the client's summary without its operation.
        client: name and version of the client, as it calls itself.
    """

    snapshot_id: int
    operation: str
    summary: Mapping[str, str] = field(default_factory=dict)
    client: str = ""

    @property
    def operation_name(self) -> str:
        """The operation in the history of the Delta table."""
        return f"{_PREFIX}{self.operation.upper()}"

    @property
    def own_summary(self) -> dict[str, str]:
        """The summary without counts, which are those of the files in the table: its writer may have written the rows to other files."""
        return {key: value for key, value in self.summary.items() if not key.startswith(_COUNTED)}

    def parameters(self) -> dict[str, str]:
        """Return the parameters of the operation in the history."""
        summary = json.dumps(self.own_summary, separators=(",", ":"), sort_keys=True)
        return {"client": self.client, "snapshotId": str(self.snapshot_id), "summary": summary}


def client_snapshot(commit_info: JsonMapping) -> ClientSnapshot | None:
    """Return the client's snapshot from the commitInfo of a Delta commit; None for any other commit."""
    name, parameters = commit_info.get("operation"), commit_info.get("operationParameters")
    if not isinstance(name, str) or not name.startswith(_PREFIX) or not isinstance(parameters, Mapping):
        return None
    number = str(parameters.get("snapshotId"))
    operation = "overwrite" if name == REPLACE_TABLE else name.removeprefix(_PREFIX).lower()
    if not _ID.fullmatch(number) or int(number) > _GREATEST_ID or operation not in OPERATIONS:
        return None
    client = parameters.get("client")
    return ClientSnapshot(int(number), operation, _summary(parameters.get("summary")), client if isinstance(client, str) else "")


def is_created_by_client(commit_info: JsonMapping) -> bool:
    """Whether a client created the table with this commit, without a snapshot."""
    parameters = commit_info.get("operationParameters")
    return commit_info.get("operation") == CREATE_TABLE and isinstance(parameters, Mapping) and "client" in parameters


def rolled_back_to(commit_info: JsonMapping) -> int | None:
    """Return the id of the earlier snapshot that a client made current, from the commitInfo of the RESTORE; None for any other commit."""
    parameters = commit_info.get("operationParameters")
    if commit_info.get("operation") != "RESTORE" or not isinstance(parameters, Mapping) or "client" not in parameters:
        return None
    number = str(parameters.get("snapshotId"))
    return int(number) if _ID.fullmatch(number) else None


def _summary(text: object) -> dict[str, str]:
    """Return the summary; empty if another writer has left no JSON object there."""
    try:
        value = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return {}
    return {key: each for key, each in value.items() if isinstance(each, str)} if isinstance(value, dict) else {}
