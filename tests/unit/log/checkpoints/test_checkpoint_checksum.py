"""The embedded checksum of a checkpoint: it changes nothing for readers, and detects a footer or a version that is not its own."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq

from tahoe.log.checkpoints.checkpoint_checksum import (
    CHECKSUM_BYTES,
    checkpoint_with_checksum,
    fault_in_checkpoint_checksum,
    footer_of,
)


def parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"n": list(range(10))}), sink)
    return sink.getvalue()


def checksum_and_footer(data: bytes) -> tuple[bytes, bytes]:
    footer = footer_of(data)
    end = len(data) - 8 - len(footer)
    return data[end - CHECKSUM_BYTES : end], footer


def test_a_sidecar_may_be_older_than_its_checkpoint_but_not_newer() -> None:
    before, footer = checksum_and_footer(checkpoint_with_checksum(parquet(), 12))
    assert fault_in_checkpoint_checksum(before, footer, 20, may_be_older=True) == (True, None)
    assert fault_in_checkpoint_checksum(before, footer, 11, may_be_older=True) == (True, "it was written for version 12")
    assert fault_in_checkpoint_checksum(before, footer, 20) == (True, "it was written for version 12")


def test_a_sealed_file_reads_as_before() -> None:
    data = parquet()
    data_with_checksum = checkpoint_with_checksum(data, 12)
    assert len(data_with_checksum) == len(data) + CHECKSUM_BYTES and footer_of(data_with_checksum) == footer_of(data)
    assert pq.read_table(io.BytesIO(data_with_checksum)).equals(pq.read_table(io.BytesIO(data)))


def test_the_seal_fits_its_version_and_its_footer_alone() -> None:
    checksum, footer = checksum_and_footer(checkpoint_with_checksum(parquet(), 12))
    assert fault_in_checkpoint_checksum(checksum, footer, 12) == (True, None)
    assert fault_in_checkpoint_checksum(checksum, footer, 13)[1] is not None
    there, fault = fault_in_checkpoint_checksum(checksum, footer[:-1] + b"?", 12)
    assert there and fault is not None


def test_a_file_of_another_writer_has_no_seal_and_no_fault() -> None:
    assert fault_in_checkpoint_checksum(*checksum_and_footer(parquet()), 12) == (False, None)
