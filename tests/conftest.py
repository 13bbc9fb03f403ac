"""Shared by all tests: Hypothesis profiles, the mark of the tests that start Spark, and folders for tables."""

from __future__ import annotations

import os
import shutil
import urllib.request
import uuid
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.java_options import JAVA_OPTIONS
from tests.moto_server import moto_server
from tests.sampling import left_out

pytest.register_assert_rewrite("tahoe.testing")

pytest_plugins = ["tests.written_tables"]

HERE = Path(__file__).parent
MEMORY_DISK = Path("/dev/shm")
"""Linux keeps files here in memory: a folder like any other, on which a sync costs nothing."""
_LEAST_FREE_BYTES = 4 << 30
S3_BUCKET = "tables"
MARKS_OF_CASES = pytest.StashKey[dict[str, frozenset[str]]]()
"""Of each case that was collected, whether it runs or not."""

# No deadlines, and no limit of the time that examples take to be drawn: other processes may have the machine.
_PATIENT: Any = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
# The same examples in each run, so that a change and not chance makes a test fail; `explore` and `nightly` look for new ones.
settings.register_profile("default", max_examples=20, derandomize=True, **_PATIENT)
settings.register_profile("explore", **_PATIENT)
settings.register_profile("nightly", max_examples=2_000, **_PATIENT)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_configure() -> None:
    """Put the tests' folders into memory if the machine has plenty: no test depends on a sync to a disk."""
    os.environ.setdefault("TAHOE_TRACEBACK", "1")  # whole tracebacks of failures
    os.environ.setdefault("SPARK_SUBMIT_OPTS", JAVA_OPTIONS)  # of the Spark that programs started by tests start
    has_room = os.access(MEMORY_DISK, os.W_OK) and shutil.disk_usage(MEMORY_DISK).free >= _LEAST_FREE_BYTES
    if has_room and "PYTEST_DEBUG_TEMPROOT" not in os.environ:
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(MEMORY_DISK)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--share`, which runs a fixed share of the tests."""
    parser.addoption("--share", metavar="K/N", help="run only the tests whose name hashes to K modulo N")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests below tests/spark and the cases beyond the sample, and select the share that `--share` requests."""
    for item in items:
        if item.path.is_relative_to(HERE / "spark"):
            item.add_marker("spark")
        elif item.get_closest_marker("spark") and item.path.is_relative_to(HERE / "unit"):
            raise pytest.UsageError(
                f"{item.nodeid} starts Spark: move it to tests/spark; scripts/run_tests.sh runs none in tests/unit"
            )
    for item in left_out(items):
        item.add_marker("soak")
    config.stash[MARKS_OF_CASES] = {item.nodeid: frozenset(mark.name for mark in item.iter_markers()) for item in items}
    if share := config.getoption("--share"):
        part, parts = map(int, share.split("/"))
        items[:] = [item for item in items if zlib.crc32(item.nodeid.encode()) % parts == part]


@pytest.fixture(scope="session")
def s3_options() -> Iterator[dict[str, str]]:
    """Storage options for an S3 on the loopback that lives as long as the test session; its one bucket is `S3_BUCKET`."""
    with moto_server("s3") as endpoint:
        urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{S3_BUCKET}", method="PUT")).close()
        yield {
            "aws_endpoint": endpoint,
            "aws_access_key_id": "an-access-key",
            "aws_secret_access_key": "a-secret-key",
            "aws_region": "us-east-1",
        }


@pytest.fixture
def s3a_settings(s3_options: dict[str, str]) -> dict[str, str]:
    """The settings of Hadoop's S3A for the same S3."""
    return {
        "fs.s3a.endpoint": s3_options["aws_endpoint"],
        "fs.s3a.endpoint.region": s3_options["aws_region"],
        "fs.s3a.access.key": s3_options["aws_access_key_id"],
        "fs.s3a.secret.key": s3_options["aws_secret_access_key"],
        "fs.s3a.path.style.access": "true",
    }


@pytest.fixture
def s3_url(s3_options: dict[str, str]) -> str:
    """A place for one table in the session's S3."""
    return f"s3://{S3_BUCKET}/{uuid.uuid4()}"


@pytest.fixture
def memory_url() -> str:
    """A place for one table in this process."""
    return f"memory://{uuid.uuid4()}/table"
