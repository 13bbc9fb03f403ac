"""Files that a checkpoint names as live and as removed too, under two spellings of one path.

delta-rs encodes letters outside ASCII when it removes a file, and compares paths as texts. So its checkpoint has the tombstone
``p=%C3%A9/…`` beside the file ``p=é/…`` that it is about. Whether the file was added again later, such a checkpoint does not say:
the commits do, and where these are gone, the tombstone counts.
"""

from __future__ import annotations

import pyarrow as pa

from tahoe.base.lazy import pc
from tahoe.log.checkpoints.checkpoint_reader import CheckpointReader
from tahoe.log.checkpoints.parquet_source import DamagedCheckpoint
from tahoe.log.files.live_files import file_keys
from tahoe.schema.arrow_values import array


class ContradictoryCheckpoint(DamagedCheckpoint):
    """A checkpoint names a logical file as live and as removed."""


def contradiction(checkpoint: CheckpointReader, path: str) -> ContradictoryCheckpoint:
    """The error about a file of a checkpoint.

    Args:
        path: as its tombstone or its `add` spells it.
    """
    name, url = checkpoint.checkpoint.names[0], checkpoint.store.url
    message = f"Table {url}: the checkpoint file {name} names the file {path} as live and, spelt otherwise, as removed."
    return ContradictoryCheckpoint(url, checkpoint.checkpoint, name, "", message)


def removed_too(files: pa.Table, checkpoint: CheckpointReader) -> pa.Array:
    """The keys (`file_keys`) of the files that the checkpoint has a tombstone of.

    Only names outside ASCII are looked for: of the others, all writers spell a removed path as its `add` does. So tombstones are
    read only where a table has such names.

    Args:
        files: some of the checkpoint's `add` actions, with the columns ``path`` and ``deletionVector``.
    """
    suspects = _outside_ascii(files)
    if suspects.num_rows == 0:
        return array([], pa.string())
    url = checkpoint.store.url
    removed = _outside_ascii(checkpoint.removes())
    keys = {key for batch in removed.to_batches() for key in file_keys(batch, url).to_pylist()}
    live = [key for batch in suspects.to_batches() for key in file_keys(batch, url).to_pylist()]
    return array([key for key in live if key in keys], pa.string())


def _outside_ascii(files: pa.Table) -> pa.Table:
    files = files.select(["path", "deletionVector"])
    paths = files["path"]
    plain = pc.string_is_ascii(paths)
    if pc.all(plain, min_count=0).as_py() and not pc.any(pc.match_substring(paths, "%"), min_count=0).as_py():
        return files.slice(0, 0)
    return files.filter(pc.or_(pc.invert(plain), pc.match_substring_regex(paths, _ESCAPED_BYTE)))


_ESCAPED_BYTE = "%[89A-Fa-f][0-9A-Fa-f]"
