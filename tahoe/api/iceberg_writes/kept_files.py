"""Files that stay although their client deletes them.

DuckDB 1 deletes the files of a commit without an answer, which may have succeeded: its server was killed, or a proxy gave up
(duckdb/duckdb-iceberg#1120). The table's log would name missing files then, and no reader could read the table.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from tahoe.api.iceberg_writes.incoming_files import IncomingFile
from tahoe.base.exceptions import InvalidRequest
from tahoe.store.location import decode_path, encode_path, local_path
from tahoe.txn.transaction import Transaction

_DELETING_CLIENTS = ("duckdb/v1.",)
_REASON = "its client deletes the files of a commit without an answer"


def kept_files(transaction: Transaction, files: Sequence[IncomingFile], client: str) -> list[IncomingFile]:
    """Return a client's files under names that the client does not know, or as files whose rows are written again.

    On a local disk each file gets a second name (a hard link, as commits need anyway); VACUUM deletes the first one. Object stores have no
    second names.

    Args:
        client: the client as it calls itself.

    Raises:
        InvalidRequest: the client has deleted a file already.
    """
    if not client.startswith(_DELETING_CLIENTS):
        return list(files)
    return [file if file.reason is not None else _kept(transaction, file) for file in files]


def _kept(transaction: Transaction, file: IncomingFile) -> IncomingFile:
    url = transaction.store.url
    root, name = local_path(url), decode_path(file.add.path, url)
    if root is None:
        return replace(file, reason=_REASON)
    folder, slash, _ = name.rpartition("/")
    another = f"{folder}{slash}{transaction.clock.uuid()}.parquet"
    try:
        os.link(os.path.join(root, name), os.path.join(root, another), follow_symlinks=False)
    except FileNotFoundError as error:
        raise InvalidRequest(
            f"The file {url}/{name}, which the request adds, was deleted meanwhile.", code="TAHOE_ICEBERG_FILE", table=url
        ) from error
    return replace(file, add=replace(file.add, path=encode_path(another)))
