"""For any corruption of a data file, a vector or a change data file, reading raises an error of Tahoe that names table, version and file."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.exceptions import CorruptTable, StorageFailure, TahoeError
from tahoe.snapshot.read_errors import locating

ROWS = pa.table(
    {
        "id": pa.array(range(60), pa.int64()),
        "text": [f"text {i} é" for i in range(60)],
        "number": pa.array([Decimal(i) for i in range(60)], pa.decimal128(20, 5)),
        "list": [[i, i + 1] for i in range(60)],
        "p": ["a"] * 60,
    }
)
PROPERTIES = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of three versions: rows, rows less some by a vector, rows changed with change data files."""
    folder = tmp_path_factory.mktemp("damage") / "t"
    table = Table.create(folder, ROWS.schema, partition_by=["p"], properties=PROPERTIES)
    table.append(ROWS)
    table.delete("id % 3 = 0")
    table.update({"text": "'new'"}, "id = 1")
    return folder


READS: dict[str, Callable[[Path], object]] = {
    "whole": lambda folder: Table(folder).to_arrow(),
    "filtered": lambda folder: Table(folder).to_arrow(filter="id > 5", columns=["list"]),
    "an older version": lambda folder: Table(folder).to_arrow(version=2),
    "changes": lambda folder: Table(folder).changes(0),
    "a delete": lambda folder: Table(folder).delete("id = -1"),
}


def _files(folder: Path) -> list[Path]:
    actual = (file for file in folder.rglob("*") if file.suffix in (".parquet", ".bin") and "_delta_log" not in file.parts)
    return sorted(actual, key=lambda file: (file.suffix, file.stat().st_size))


def _answer_or_named_error(folder: Path, file: Path) -> int:
    """The number of failed reads; each error names the required facts."""
    errors = [message for read in READS.values() if (message := _message(read, folder)) is not None]
    for message in errors:
        assert f"file://{folder}" in message
        assert file.name in message
        assert "ersion" in message
    return len(errors)


def _message(read: Callable[[Path], object], folder: Path) -> str | None:
    try:
        read(folder)
    except TahoeError as error:
        return error.message
    return None


@pytest.mark.parametrize("number", range(5))
def test_one_flipped_bit_is_an_answer_or_an_error_that_names_table_version_and_file(folder: Path, number: int) -> None:
    files = _files(folder)
    assert len(files) == 5  # two vectors, rows, changed rows, changes
    file = files[number]
    whole = file.read_bytes()
    chance = random.Random(number)
    errors = 0
    try:
        for _ in range(25):
            bit = chance.randrange(len(whole) * 8)
            damaged = bytearray(whole)
            damaged[bit // 8] ^= 1 << (bit % 8)
            file.write_bytes(damaged)
            errors += _answer_or_named_error(folder, file)
    finally:
        file.write_bytes(whole)
    assert errors


@pytest.mark.parametrize("number", range(5))
def test_a_file_cut_short_is_an_error_that_names_table_version_and_file(folder: Path, number: int) -> None:
    file = _files(folder)[number]
    whole = file.read_bytes()
    try:
        for length in {0, 1, 4, len(whole) // 2, len(whole) - 8, len(whole) - 1}:
            file.write_bytes(whole[:length])
            assert _answer_or_named_error(folder, file)
    finally:
        file.write_bytes(whole)


VECTORS = {
    "an offset beyond the file": {"offset": 2**31 - 1},
    "an offset beyond 32 bits": {"offset": 2**31},
    "an offset beyond 64 bits": {"offset": 2**80},
    "a negative offset": {"offset": -5},
    "a size beyond the file": {"sizeInBytes": 2**31 - 1},
    "a size beyond 32 bits": {"sizeInBytes": 2**31},
    "a cardinality beyond the file": {"cardinality": 2**62},
    "a name that is no UUID": {"pathOrInlineDv": "x"},
    "a name of other characters": {"pathOrInlineDv": "é" * 20},
    "a name that leads out": {"storageType": "p", "pathOrInlineDv": "file:///etc/passwd"},
    "an unknown kind": {"storageType": "z"},
    "an inline one that is none": {"storageType": "i", "pathOrInlineDv": "00000", "offset": None},
}


@pytest.mark.parametrize("case", VECTORS)
@pytest.mark.damages_tables
def test_a_mad_vector_in_the_log_is_an_error_that_names_table_and_file(folder: Path, tmp_path: Path, case: str) -> None:
    copy = tmp_path / "t"
    for file in folder.rglob("*"):
        if file.is_file():
            (copy / file.relative_to(folder)).parent.mkdir(parents=True, exist_ok=True)
            (copy / file.relative_to(folder)).write_bytes(file.read_bytes())
    for old in (3,):
        for file in (copy / "_delta_log").glob(f"{old:020d}*"):
            file.unlink()
    commit = copy / "_delta_log" / f"{2:020d}.json"
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    path = next(line["add"]["path"] for line in lines if "add" in line)
    for line in lines:
        if "add" in line:
            line["add"]["deletionVector"].update(VECTORS[case])
    commit.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(CorruptTable) as caught:
        Table(copy).to_arrow()
    assert f"file://{copy}" in caught.value.message
    assert Path(path).name in caught.value.message or commit.stem in caught.value.message


@pytest.mark.parametrize(
    "error", [pa.ArrowInvalid("x"), OverflowError("x"), UnicodeDecodeError("utf-8", b"", 0, 1, "x"), KeyError("x")]
)
def test_an_error_of_another_library_becomes_one_of_ours(error: Exception) -> None:
    with pytest.raises(CorruptTable, match=r"Table url, version 7: Data file 'f' cannot be read"), locating("url", 7, "f"):
        raise error


def test_an_error_of_ours_stays_and_states_where_it_happened() -> None:
    with pytest.raises(StorageFailure, match=r"Table url, version 7, file 'f': no answer") as caught, locating("url", 7, "f"):
        raise StorageFailure("no answer")
    assert caught.value.facts == {"table": "url", "version": 7, "file": "f"}


def test_a_programming_error_is_not_called_damage() -> None:
    with pytest.raises(AttributeError), locating("url", 7, "f"):
        raise AttributeError("x")
