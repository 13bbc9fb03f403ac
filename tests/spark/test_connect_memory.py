"""The memory of a server of Spark Connect in which streams of Delta tables were started."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.spark.connect_server import connected, remote, server_process

JMAP = Path(os.environ.get("JAVA_HOME", ""), "bin", "jmap")
STREAMS = 10
MOST_BYTES = 17 * 2**20
"""For each query that has ended: Spark keeps it for an hour, with Tahoe's code in its source and its sink. Measured: 13 to 15 MB."""


@pytest.mark.soak
def test_an_ended_stream_keeps_a_bounded_part_of_the_servers_memory(tmp_path: Path, java_options: str) -> None:
    if not JMAP.exists():
        pytest.skip(f"the Java of JAVA_HOME has no jmap, which a JDK has: {JMAP}")
    with server_process(tmp_path, java_options) as (url, process), remote():
        session = connected(url)
        session.sql(f"CREATE TABLE delta.`{tmp_path}/t` (id BIGINT) USING delta")
        session.sql(f"INSERT INTO delta.`{tmp_path}/t` VALUES (1)")
        run(session, tmp_path, "first")
        before = live_bytes(process.pid)
        for number in range(STREAMS):
            run(session, tmp_path, str(number))
        growth = live_bytes(process.pid) - before
        session.stop()
    assert growth / STREAMS < MOST_BYTES, f"{growth / STREAMS / 2**20:.1f} MB for each query"


def run(session: Any, folder: Path, name: str) -> None:
    writer = session.readStream.format("delta").load(f"{folder}/t").writeStream.format("delta").trigger(availableNow=True)
    query = writer.option("checkpointLocation", f"{folder}/checkpoint-{name}").start(f"{folder}/copy-{name}")
    query.awaitTermination()
    query.stop()


def live_bytes(process: int) -> int:
    """The bytes of the reachable objects of a JVM."""
    shown = subprocess.run([JMAP, "-histo:live", str(process)], capture_output=True, text=True, check=True)
    return int(shown.stdout.split()[-1])
