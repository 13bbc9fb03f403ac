"""The seal of a checkpoint: it changes nothing for readers, and tells a footer or a version that is not its own."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq

from tahoe.log.checkpoints.checkpoint_seal import SEAL_BYTES, checkpoint_with_seal, fault_in_checkpoint_seal, footer_of


def parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"n": list(range(10))}), sink)
    return sink.getvalue()


def seal_and_footer(data: bytes) -> tuple[bytes, bytes]:
    footer = footer_of(data)
    end = len(data) - 8 - len(footer)
    return data[end - SEAL_BYTES : end], footer


def test_a_sidecar_may_be_older_than_its_checkpoint_but_not_newer() -> None:
    before, footer = seal_and_footer(checkpoint_with_seal(parquet(), 12))
    assert fault_in_checkpoint_seal(before, footer, 20, may_be_older=True) == (True, None)
    assert fault_in_checkpoint_seal(before, footer, 11, may_be_older=True) == (True, "it was written for version 12")
    assert fault_in_checkpoint_seal(before, footer, 20) == (True, "it was written for version 12")


def test_a_sealed_file_reads_as_before() -> None:
    data = parquet()
    sealed = checkpoint_with_seal(data, 12)
    assert len(sealed) == len(data) + SEAL_BYTES and footer_of(sealed) == footer_of(data)
    assert pq.read_table(io.BytesIO(sealed)).equals(pq.read_table(io.BytesIO(data)))


def test_the_seal_fits_its_version_and_its_footer_alone() -> None:
    seal, footer = seal_and_footer(checkpoint_with_seal(parquet(), 12))
    assert fault_in_checkpoint_seal(seal, footer, 12) == (True, None)
    assert fault_in_checkpoint_seal(seal, footer, 13)[1] is not None
    there, fault = fault_in_checkpoint_seal(seal, footer[:-1] + b"?", 12)
    assert there and fault is not None


def test_a_file_of_another_writer_has_no_seal_and_no_fault() -> None:
    assert fault_in_checkpoint_seal(*seal_and_footer(parquet()), 12) == (False, None)
