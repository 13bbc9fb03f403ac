"""The operations have the same outcome in other sessions and on other stores as in a classic session on a local disk.

`make soak` runs them all; `make test` runs some of them on Spark Connect (`tests/spark/test_connect.py`). Azure needs npm, and is skipped
without it. A Hadoop file system is reached through the JVM, which a client of Spark Connect does not have. On S3 and Azure, rows pass through
Python workers: JARs of Hadoop for them are not installed here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pyspark
import pytest

from tests.interop.azurite import ACCOUNT, KEY, azurite
from tests.java_options import JAVA_OPTIONS
from tests.operations.operations import LEFT_ON_S3, OPERATIONS
from tests.spark.connect_server import server
from tests.spark.own_spark import ROOT
from tests.spark.standalone import cluster

pytestmark = [pytest.mark.soak, pytest.mark.own_jvm, pytest.mark.timeout(7200)]
COMBINATIONS = [
    *(("classic", store) for store in ("local", "S3", "Azure", "Hadoop")),
    *((session, store) for session in ("local-cluster", "standalone") for store in ("local", "S3")),
    *((session, store) for session in ("Connect", "Connect, storage by server") for store in ("local", "S3", "Azure")),
]
LEFT_BEFORE = {
    "4.1": ("COMMENT ON TABLE",),  # Spark 4.0 does not parse the text 'it''s', and Tahoe's client does
    "4.2": ("stream of small batches",),  # its limits need Spark 4.2
}
"""The operations that differ over Spark Connect before a version of PySpark."""
NAMES = [operation.name for operation in OPERATIONS if os.environ.get("TAHOE_OPERATIONS", "") in operation.name]


@dataclass(frozen=True)
class Store:
    """The place of the tables.

    Args:
        environment: variables with which every process finds it.
        settings: of a session.
    """

    root: str
    environment: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    match request.param:
        case "local":
            (tmp_path / "tables").mkdir()
            yield Store(f"file://{tmp_path}/tables")
        case "S3":
            options = request.getfixturevalue("s3_options")
            environment = {name.upper(): value for name, value in options.items()} | {"AWS_ALLOW_HTTP": "true"}
            yield Store(request.getfixturevalue("s3_url"), environment)
        case "Azure":
            with azurite(tmp_path) as service:
                service.create_container("tables")
                environment = {
                    "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
                    "AZURE_STORAGE_ACCOUNT_KEY": KEY,
                    "AZURE_ALLOW_HTTP": "true",
                }
                yield Store(f"az://tables/{uuid.uuid4()}", environment | {"AZURE_STORAGE_ENDPOINT": service.endpoint})
        case "Hadoop":
            (tmp_path / "tables").mkdir()
            link = {"spark.hadoop.fs.viewfs.mounttable.operations.link./tables": f"file://{tmp_path}/tables"}
            yield Store("viewfs://operations/tables", settings=link)


@contextmanager
def connection(session: str, folder: Path, store: Store) -> Iterator[dict[str, object]]:
    """Start what a session of this kind needs; the value tells `tests/operations/run.py` how to connect."""
    java = {"spark.driver.extraJavaOptions": JAVA_OPTIONS, "spark.executor.extraJavaOptions": JAVA_OPTIONS}
    match session:
        case "classic":
            yield {"master": "local[2]", "settings": java}
        case "local-cluster":
            yield {"master": "local-cluster[2,1,768]", "settings": {**java, "spark.executor.memory": "768m"}}
        case "standalone":
            with cluster(folder, JAVA_OPTIONS) as running:
                settings = {**java, "spark.executor.memory": "512m", "spark.pyspark.python": running.python}
                yield {"master": running.master, "settings": settings, "python": running.python}
        case "Connect":
            with server(folder, JAVA_OPTIONS) as url:
                yield {"remote": url, "settings": {}}
        case "Connect, storage by server":
            with server(folder, JAVA_OPTIONS, variables=store.environment) as url:
                # Only for the tables that the operations begin with, and for the checks of what they leave.
                options = {name.lower(): value for name, value in store.environment.items()}
                yield {"remote": url, "settings": {}, "storage": "server", "options": options}


def outcomes(session: str, store: Store, folder: Path) -> dict[str, str]:
    """Run the operations and return their outcomes by name."""
    with pytest.MonkeyPatch.context() as patch, ExitStack() as started:
        if session != "Connect, storage by server":
            for name, value in store.environment.items():
                patch.setenv(name, value)
        task = {"options": {}, **started.enter_context(connection(session, folder, store))}
        python = str(task.pop("python", sys.executable))
        task = {**task, "root": store.root, "names": NAMES}
        task["settings"] = {**task["settings"], **store.settings}  # type: ignore[dict-item]
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYTHONWARNINGS": "ignore",
            "PYSPARK_PYTHON": python,
        }
        command = [sys.executable, str(ROOT / "tests/operations/run.py"), json.dumps(task)]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=3000)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"{done.stdout[-1000:]} {done.stderr[-3000:]}"
    return dict(json.loads(line) for line in lines[lines.index("started") + 1 :])


@cache
def reference() -> dict[str, str]:
    """The outcomes of a classic session on a local disk."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "tables").mkdir()
        return outcomes("classic", Store(f"file://{folder}/tables"), Path(folder))


@pytest.mark.parametrize(("session", "store"), COMBINATIONS, indirect=["store"])
def test_operations_have_the_outcome_of_a_classic_session_on_a_local_disk(session: str, store: Store, tmp_path: Path) -> None:
    assert len(OPERATIONS) >= 150
    expected = reference()
    assert list(expected) == NAMES
    actual = outcomes(session, store, tmp_path)
    different = {name: (actual.get(name), outcome) for name, outcome in expected.items() if actual.get(name) != outcome}
    left = {*LEFT_ON_S3} if store.root.startswith("s3:") else set()
    if session.startswith("Connect"):
        left |= {name for version, names in LEFT_BEFORE.items() if pyspark.__version__ < version for name in names}
    assert different.keys() == left & set(NAMES), "\n".join(
        f"{name}:\n  {here}\n  {there}" for name, (here, there) in different.items()
    )
