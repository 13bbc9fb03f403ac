"""Table URLs, and paths in a log: spelled as Spark spells them, and never outside of the table."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tahoe.base.exceptions import CorruptTable, InvalidRequest, Unsupported
from tahoe.store.location import absolute_url, decode_path, encode_path, local_path, split_url, table_url

GOLDEN = Path(__file__).parents[4] / "shared" / "golden" / "golden-tables"
LOCAL = "file:///data/tenant-a/table"
BUCKET = "s3://bucket/tenant-a/table"


# -- table_url -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_path", "url"),
    [
        ("/data/t", "file:///data/t"),
        ("/data//t/", "file:///data/t"),
        ("/data/x/../t/.", "file:///data/t"),
        ("file:/data/t", "file:///data/t"),
        ("file:///data/t/", "file:///data/t"),
        ("FILE:///data/t", "file:///data/t"),
        ("/data/with space/100%/#1?", "file:///data/with space/100%/#1?"),
        ("file:///data/a%20b", "file:///data/a%20b"),
        (Path("/data/t"), "file:///data/t"),
        ("s3://bucket/k/t/", "s3://bucket/k/t"),
        ("s3a://bucket/k//t", "s3://bucket/k/t"),
        ("S3N://bucket", "s3://bucket"),
        ("s3://bucket/", "s3://bucket"),
        ("gcs://bucket/t", "gs://bucket/t"),
        ("abfss://container@account.dfs.core.windows.net/t", "abfss://container@account.dfs.core.windows.net/t"),
        ("memory://name/t", "memory://name/t"),
    ],
)
def test_every_spelling_of_a_table_has_the_same_url(given_path: str | Path, url: str) -> None:
    assert table_url(given_path) == url
    assert table_url(url) == url


def test_a_relative_folder_is_taken_from_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert table_url("some/table") == f"file://{os.getcwd()}/some/table"
    assert table_url(".") == f"file://{os.getcwd()}"


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "a\0b",
        "file:relative",
        "file://host/data",
        "s3:/bucket/k",
        "s3:bucket",
        "s3:///k",
        "s3://",
        "s3://bucket/../other",
    ],
)
def test_an_invalid_table_location_is_refused(path: str) -> None:
    with pytest.raises(InvalidRequest):
        table_url(path)


@pytest.mark.parametrize(
    "path",
    [
        "s3://AKIA:CANARY@bucket/t",
        "s3://CANARY@bucket/t",
        "abfss://container:CANARY@account/t",
        "s3://bucket/t?X-Amz-Signature=CANARY",
        "az://container/t?sig=CANARY",
        "https://user:CANARY@host/t?sig=CANARY",
        "hdfs://user:CANARY@host/t",
    ],
)
def test_credentials_in_a_url_are_refused_and_not_repeated(path: str) -> None:
    with pytest.raises((InvalidRequest, Unsupported)) as caught:
        table_url(path)
    assert "CANARY" not in str(caught.value) + repr(caught.value) + repr(caught.value.facts)


def test_a_scheme_without_a_store_is_named() -> None:
    with pytest.raises(Unsupported, match="'ftp'"):
        table_url("ftp://host/t")


def test_the_parts_of_a_url() -> None:
    assert split_url("s3://bucket/k/t") == ("s3", "bucket", "k/t")
    assert split_url("s3://bucket") == ("s3", "bucket", "")
    assert split_url("file:///data/t") == ("file", "", "data/t")
    assert local_path("file:///data/with space") == "/data/with space"
    assert local_path("s3://bucket/t") is None


# -- spelling ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("part-0.snappy.parquet", "part-0.snappy.parquet"),
        ("special p@#h", "special%20p@%23h"),  # golden table log-replay-special-characters
        ("_2=bar+%2521/part-0.parquet", "_2=bar+%252521/part-0.parquet"),  # golden table data-reader-escaped-chars
        ("ts=2021-01-01 00%3A00%3A00/p", "ts=2021-01-01%2000%253A00%253A00/p"),
        ("a=1/b=__HIVE_DEFAULT_PARTITION__/p", "a=1/b=__HIVE_DEFAULT_PARTITION__/p"),
        ("über/✓", "über/✓"),
        ("no\u00a0break\u2003em\u0085next", "no%C2%A0break%E2%80%83em%C2%85next"),
        ("a:b/c:d", "a%3Ab/c:d"),  # the first would be a scheme
        ("1:b", "1:b"),
        ("~!$&'()*+,;=:@-._", "~!$&'()*+,;=:@-._"),
        ('"#<>?[]^`{|}', "%22%23%3C%3E%3F%5B%5D%5E%60%7B%7C%7D"),
        ("tab\tnewline\n", "tab%09newline%0A"),
    ],
)
def test_names_are_encoded_as_spark_encodes_them_and_decoded_back(name: str, path: str) -> None:
    assert encode_path(name) == path
    assert decode_path(path, LOCAL) == name
    assert decode_path(path, BUCKET) == name


_PART = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="/\\\0"), min_size=1, max_size=30).filter(
    lambda part: part not in (".", "..") and ("=" in part or "%" not in part)
)


@given(st.lists(_PART, min_size=1, max_size=4).map("/".join))
def test_any_name_survives_encoding_and_decoding(name: str) -> None:
    path = encode_path(name)
    if not (":" in name.partition("/")[0] and name.partition(":")[2].startswith("/")):
        assert decode_path(path, LOCAL) == name
        assert decode_path(f"{LOCAL}/{path}", LOCAL) == name
        assert decode_path(absolute_url(BUCKET, name), BUCKET) == name


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("bar%2Dbar.snappy.parquet", "bar-bar.snappy.parquet"),  # unnecessary escapes
        ("a%2fb", "a/b"),
        ("a//b/./c", "a/b/c"),
        ("with space", "with space"),  # other writers do not encode it
        ("with#hash", "with#hash"),
        ("p=..%252F..%252Fx/part", "p=..%2F..%2Fx/part"),  # a partition value may be any text
        ("/data/tenant-a/table/part", "part"),
        ("file:/data/tenant-a/table/part%20x", "part x"),
        ("file:///data/tenant-a//table/a/part", "a/part"),
        ("FILE:///data/tenant-a/table/part", "part"),
    ],
)
def test_log_paths_below_the_root_are_decoded_in_every_spelling(path: str, name: str) -> None:
    assert decode_path(path, LOCAL) == name


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n", "S3A"])
def test_all_s3_schemes_are_equivalent(scheme: str) -> None:
    assert decode_path(f"{scheme}://bucket/tenant-a/table/a%20b", BUCKET) == "a b"
    assert decode_path("/tenant-a/table/part", BUCKET) == "part"
    assert decode_path(f"{scheme}://bucket/part", "s3://bucket") == "part"


def test_absolute_urls_match_hadoop_s() -> None:
    assert absolute_url("file:///data/my table", "p=1/a%b") == "file:///data/my%20table/p=1/a%25b"
    assert absolute_url("s3://bucket/t", "a b") == "s3a://bucket/t/a%20b"
    assert absolute_url("s3://bucket", "a") == "s3a://bucket/a"
    assert absolute_url("gs://bucket/t", "a") == "gs://bucket/t/a"


# -- containment -----------------------------------------------------------------------------------------------------------------

HOSTILE = [
    "../secret",
    "..",
    "a/../../secret",
    "a/../b",
    "./../secret",
    "..//Users/someone/secret",
    "%2e%2e/secret",
    "%2E%2e/secret",
    ".%2e/secret",
    "%2e%2e%2fsecret",
    "..%2Fsecret",
    "a/%2e%2e/%2e%2e/secret",
    "%252e%252e/secret",
    "%252e%252e%252fsecret",
    "%25252e%25252e/secret",
    "..%5Csecret",
    "..\\secret",
    "a\\b",
    "\\\\server\\share\\secret",
    "//server/share/secret",
    "%2F%2Fserver/share",
    "/etc/passwd",
    "%2Fetc%2Fpasswd",
    "file:/etc/passwd",
    "file:///etc/passwd",
    "file://localhost/etc/passwd",
    "file://etc/passwd",
    "file:secret",
    "file%3A///etc/passwd",
    "FILE:///etc/passwd",
    "/data/tenant-a/table-evil/part",
    "/data/tenant-a/table/../table-evil/part",
    "/data/tenant-a/tablesecret",
    "/data/tenant-a",
    "s3://other/tenant-a/table/part",
    "s3://bucket.evil/tenant-a/table/part",
    "s3://user@bucket/tenant-a/table/part",
    "s3:///tenant-a/table/part",
    "s3:bucket/tenant-a/table/part",
    "gs://bucket/tenant-b/table/part",
    "https://host/part",
    "jar:file:/data/tenant-a/table/x.jar!/part",
    "hdfs://namenode/part",
    "part\0.parquet",
    "part%00.parquet",
    "",
    "/",
    "./",
    "folder/",
    "broken%",
    "broken%2",
    "broken%zz",
    "%ff%fe",
    "%C0%AE%C0%AE/secret",
    "\ud800",
    "a/" * 3000 + "b",
    "a" * 5000,
]


ABSOLUTE_IN_A_BUCKET = {path for path in HOSTILE if path.startswith("/") and not path.startswith("//")} | {"%2Fetc%2Fpasswd"}
"""The root of a bucket contains every absolute path of that bucket."""


@pytest.mark.parametrize(
    ("root_url", "path"),
    [
        *((root_url, path) for root_url in (LOCAL, BUCKET, "memory://name/t") for path in HOSTILE),
        *(("s3://bucket", path) for path in HOSTILE if path not in ABSOLUTE_IN_A_BUCKET),
    ],
)
def test_a_hostile_path_is_refused_and_named(root_url: str, path: str) -> None:
    with pytest.raises(CorruptTable) as caught:
        decode_path(path, root_url)
    assert caught.value.code in ("TAHOE_PATH_OUTSIDE_TABLE", "DELTA_CANNOT_RECONSTRUCT_PATH_FROM_URI")
    assert caught.value.facts == {"table": root_url, "path": path}
    assert repr(path)[1:20] in caught.value.message
    assert len(caught.value.message) < 800


@given(st.text(st.sampled_from("./%2eE5Ffc:\\as3=~")))
def test_no_text_decodes_to_a_parent_reference(path: str) -> None:
    try:
        name = decode_path(path, LOCAL)
    except CorruptTable:
        return
    assert not name.startswith("/")
    assert ".." not in name.split("/")
    assert os.path.normpath(f"/data/tenant-a/table/{name}").startswith("/data/tenant-a/table/")


# -- tables of other writers -----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not GOLDEN.is_dir(), reason=f"the golden tables are not at {GOLDEN}")
def test_the_paths_in_golden_tables_lead_to_their_files_and_are_encoded_as_by_spark() -> None:
    checked = 0
    for log_file in sorted(GOLDEN.glob("*/delta/_delta_log/*.json")):
        root = log_file.parents[1]
        for line in log_file.read_text().splitlines():
            add = json.loads(line).get("add")
            if add is None or add["path"].startswith(("/", "..")):
                continue
            name = decode_path(add["path"], table_url(root))
            if (root / name).is_file():
                checked += 1
                assert encode_path(name) == add["path"]
    assert checked > 300
