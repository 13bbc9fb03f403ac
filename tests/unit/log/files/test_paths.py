"""Names of the log's files, and the hint's text."""

from __future__ import annotations

import json

import pytest

from tahoe.base.exceptions import CorruptTable
from tahoe.log.files.last_checkpoint import canonical_json, checksum_of_json, parse_last_checkpoint, read_last_checkpoint
from tahoe.log.files.paths import LAST_CHECKPOINT, ParsedLogPath, checkpoint_name, checksum_name, commit_name, parse, sidecar_name
from tahoe.testing.log_builder import DAMAGES, memory_log

UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"
V10 = "_delta_log/00000000000000000010"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"{V10}.json", ParsedLogPath(f"{V10}.json", 10, "commit", 10)),
        ("00000000000000000010.json", ParsedLogPath("00000000000000000010.json", 10, "commit", 10)),
        (f"{V10}.crc", ParsedLogPath(f"{V10}.crc", 10, "checksum", 10)),
        (f"{V10}.checkpoint.parquet", ParsedLogPath(f"{V10}.checkpoint.parquet", 10, "checkpoint", 10, format="parquet")),
        (
            f"{V10}.checkpoint.0000000002.0000000003.parquet",
            ParsedLogPath(f"{V10}.checkpoint.0000000002.0000000003.parquet", 10, "checkpoint", 10, 2, 3, format="parquet"),
        ),
        (
            f"{V10}.checkpoint.{UUID}.json",
            ParsedLogPath(f"{V10}.checkpoint.{UUID}.json", 10, "checkpoint", 10, unique_id=UUID, format="json"),
        ),
        (
            f"{V10}.00000000000000000020.compacted.json",
            ParsedLogPath(f"{V10}.00000000000000000020.compacted.json", 10, "compaction", 20),
        ),
    ],
)
def test_a_name_gives_the_kind_of_file(name: str, expected: ParsedLogPath) -> None:
    assert parse(name) == expected


@pytest.mark.parametrize(
    "name",
    [
        "_delta_log/_last_checkpoint",
        f"_delta_log/_staged_commits/00000000000000000010.{UUID}.json",
        f"{V10}.{UUID}.json",
        f"{V10}.json.tmp",
        f"{V10}.checkpoint.0000000004.0000000003.parquet",
        f"{V10}.checkpoint.0000000000.0000000003.parquet",
        f"{V10}.00000000000000000010.compacted.json",
        "_delta_log/10.json",
        "_delta_log/99999999999999999999.json",
        "data/00000000000000000010.json",
        f"{V10}.json\n",
    ],
)
def test_other_names_say_nothing(name: str) -> None:
    assert parse(name) is None


def test_names_are_made_as_the_specification_has_them() -> None:
    assert (commit_name(10), checksum_name(10), checkpoint_name(10)) == (f"{V10}.json", f"{V10}.crc", f"{V10}.checkpoint.parquet")


@pytest.mark.parametrize(
    "path", [f"{UUID}.parquet", f"_delta_log/_sidecars/{UUID}.parquet", f"/t/_delta_log/_sidecars/{UUID}.parquet"]
)
def test_a_sidecar_lies_in_its_folder(path: str) -> None:
    assert sidecar_name(path, "file:///t") == f"_delta_log/_sidecars/{UUID}.parquet"


@pytest.mark.parametrize(
    "path", ["../x.parquet", "..%2Fx.parquet", "/etc/x.parquet", "data/x.parquet", "file:///t/x.parquet", "s3://b/x"]
)
def test_a_sidecar_elsewhere_is_refused(path: str) -> None:
    with pytest.raises(CorruptTable) as caught:
        sidecar_name(path, "file:///t")
    assert caught.value.code == "TAHOE_PATH_OUTSIDE_TABLE"


def test_the_checksum_of_json_is_that_of_the_specifications_example() -> None:
    text = (
        """{"k0":"'v 0'", "checksum": "adsaskfljadfkjadfkj", "k1":{"k2": 2, "k3": ["v3", [1, 2], """
        """{"k4": "v4", "k5": ["v5", "v6", "v7"]}]}}"""
    )
    value = json.loads(text)
    assert canonical_json(value) == (
        '"k0"="%27v%200%27","k1"+"k2"=2,"k1"+"k3"+0="v3","k1"+"k3"+1+0=1,"k1"+"k3"+1+1=2,"k1"+"k3"+2+"k4"="v4",'
        '"k1"+"k3"+2+"k5"+0="v5","k1"+"k3"+2+"k5"+1="v6","k1"+"k3"+2+"k5"+2="v7"'
    )
    assert checksum_of_json(value) == "6a92d155a59bf2eecbd4b4ec7fd1f875"


def test_a_hint_whose_checksum_is_wrong_is_not_used() -> None:
    value = {"version": 1, "size": 3}
    whole = json.dumps(value | {"checksum": checksum_of_json(value)}).encode()
    assert parse_last_checkpoint(whole).checksummed
    with pytest.raises(ValueError, match="checksum"):
        parse_last_checkpoint(whole.replace(b'"size": 3', b'"size": 4'))


@pytest.mark.parametrize("damage", sorted(set(DAMAGES) - {"without its last line"}))
def test_a_damaged_hint_is_no_hint(damage: str) -> None:
    store = memory_log().store
    damaged = DAMAGES[damage](b'{"version":1,"size":3,"size":4}')
    if damaged is not None:
        store.put(LAST_CHECKPOINT, damaged)
    assert read_last_checkpoint(store) is None


@pytest.mark.parametrize(
    "value", ["{}", '{"version":"1","size":1}', '{"version":-1,"size":1}', '{"version":true,"size":1}', "[]", "1"]
)
def test_a_hint_of_another_shape_is_no_hint(value: str) -> None:
    store = memory_log().store
    store.put(LAST_CHECKPOINT, value.encode())
    assert read_last_checkpoint(store) is None
