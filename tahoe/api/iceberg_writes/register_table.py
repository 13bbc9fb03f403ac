"""Registration of an Iceberg table that another catalog wrote: its folder becomes a Delta table with UniForm, without copies of files.

    metadata file ─► CONVERT TO DELTA ─► upgrade to UniForm ─► Iceberg metadata of the Delta version

The metadata of the other writer stays in place. An attempt that was interrupted is finished by the next one.
"""

from __future__ import annotations

import gzip
import json
from functools import partial

from tahoe.api.table import Table
from tahoe.base.exceptions import ForeignWriter, InvalidRequest, NotFound, Unsupported
from tahoe.ops.copies.convert import ConvertRequest, convert
from tahoe.ops.copies.iceberg_table import IcebergRequest, iceberg_table, newest_metadata_file
from tahoe.ops.upkeep.upgrade_uniform import upgrade_uniform
from tahoe.protocol.iceberg_compat import uniform_is_enabled
from tahoe.store.location import name_below
from tahoe.store.log_store import LogStore
from tahoe.txn.hooks import commit_transaction, default_hooks
from tahoe.uniform.external.metadata_listing import newest_metadata
from tahoe.uniform.formats.metadata_files import FOLDER


def metadata_file(url: str, location: str) -> str:
    """Return the name of a metadata file in the folder of a table.

    Args:
        url: of the table.
        location: of the file.

    Raises `Unsupported` if the file is elsewhere.
    """
    name = name_below(url, location)
    if name is None or name.rpartition("/")[0] != FOLDER or not name.endswith(".metadata.json"):
        raise Unsupported(
            f"A table of this catalog is in the folder of its name, {url}, and its metadata below {url}/{FOLDER}; the request has the "
            f"metadata file {location[:500]}. Register the table under the name of its folder, or move the folder.",
            code="TAHOE_ICEBERG_LOCATION",
            table=url,
        )
    return name


def is_registered(table: Table) -> bool:
    """Whether there is a Delta table with UniForm, and Iceberg metadata of it."""
    try:
        if not uniform_is_enabled(table.snapshot().config.properties):
            return False
        return newest_metadata(table.store) is not None
    except ForeignWriter:
        return False
    except NotFound as error:
        if error.code != "DELTA_TABLE_NOT_FOUND":
            raise
        return False


def register_table(table: Table, name: str) -> None:
    """Convert the Iceberg table in a folder to a Delta table with UniForm.

    Args:
        table: in the folder.
        name: of the table's newest metadata file.

    Raises:
        NotFound: there is no Iceberg table in the folder.
        InvalidRequest: another metadata file is the newest; the table has something that UniForm does not support.
        Unsupported: types, partitions, files or deletes that Delta does not support; PyIceberg is not installed.
        CorruptTable: metadata or a file cannot be read, or is outside the table's folder.
    """
    newest = newest_metadata_file(table.store)
    if newest != name:
        raise InvalidRequest(
            f"The newest metadata file of the Iceberg table {table.url} is {newest}, and the request registers {name}. Register the newest "
            "one.",
            code="TAHOE_ICEBERG_METADATA_AMBIGUOUS",
            table=table.url,
        )
    # The hook of UniForm would refuse to convert over the metadata of the other writer, and log that.
    commit = partial(commit_transaction, policy=table.policy, hooks=default_hooks(table.clock))
    convert(table.begin, commit, partial(iceberg_table, table.store, IcebergRequest()), ConvertRequest())
    upgrade_uniform(table.begin, commit, 3 if _format_version(table.store, name) >= 3 else 2)
    table.uniform.sync(rebuild=True)


def _format_version(store: LogStore, name: str) -> int:
    """Return Iceberg's format version in a metadata file, which the conversion has read."""
    data = store.get(name)
    return int(json.loads(gzip.decompress(data) if ".gz." in name else data)["format-version"])
