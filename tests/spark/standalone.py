"""A standalone cluster: a master and two workers in processes of their own, whose Python has no Tahoe."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.spark.connect_server import python_without_tahoe

__all__ = ["CONNECTED", "Cluster", "cluster"]

_HOSTS = ("127.0.0.1", "127.0.0.2")
"""Of the workers: Spark runs no second attempt of a task on the host of the first."""
_DEPLOY = "org.apache.spark.deploy"

CONNECTED = """
import glob, os, sys
master, python, folder, java_options = sys.argv[1:5]
os.environ["PYSPARK_PYTHON"] = python
os.chdir(folder)
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
import tahoe
from tahoe import DeltaTable, Table
builder = SparkSession.builder.master(master).config("spark.log.level", "OFF").config("spark.ui.enabled", "false")
builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.driver.extraJavaOptions", java_options)
builder = builder.config("spark.executor.memory", "512m").config("spark.executor.extraJavaOptions", java_options)
# A Python process for each task, so that a task can end the executor that started it.
builder = builder.config("spark.python.use.daemon", "false").config("spark.ui.showConsoleProgress", "false")
builder = builder.config("spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version", "2")


def kill(signal=9):
    # Sends a signal to every executor of this application.
    killed = 0
    for process in glob.glob("/proc/[0-9]*"):
        try:
            with open(process + "/cmdline", "rb") as file:
                words = file.read().decode().split("\\0")
        except OSError:
            continue
        if any(word.endswith("CoarseGrainedExecutorBackend") for word in words) and spark.sparkContext.applicationId in words:
            os.kill(int(process.rpartition("/")[2]), signal)
            killed += 1
    return killed


def die_at_the_next_python_task():
    open(f"{folder}/die", "w").close()


def died():
    found = glob.glob(f"{folder}/died-*")
    for file in found:
        os.unlink(file)
    return len(found)
"""
"""The beginning of a program whose arguments are those of `Cluster.arguments`: its session is ``tahoe.enable(builder.getOrCreate())``."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster.

    Args:
        python: the command that starts Python on its executors. If there is a file ``die`` in the folder, it renames the file to
            ``died-…`` and kills the executor that starts it.
    """

    master: str
    python: str
    folder: Path
    java_options: str

    @property
    def arguments(self) -> tuple[str, ...]:
        """The settings with which a program connects."""
        return self.master, self.python, str(self.folder), self.java_options


@contextmanager
def cluster(folder: Path, java_options: str) -> Iterator[Cluster]:
    """Start a master and two workers with one core each.

    Args:
        folder: receives logs and the folders of the executors.
    """
    import pyspark

    home = Path(pyspark.__file__).parent
    python = python_without_tahoe(folder, f'mv "{folder}/die" "{folder}/died-$$" 2>/dev/null && kill -9 $PPID')
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYSPARK", "SPARK"))}
    environment |= {"SPARK_HOME": str(home), "SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": java_options}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    master = f"spark://127.0.0.1:{port}"
    with ExitStack() as processes:

        def start(name: str, host: str, *arguments: str) -> None:
            command = [str(home / "bin" / "spark-class"), *arguments, "--host", host, "--webui-port", "0"]
            command += [] if name == "master" else [master]
            log = processes.enter_context((folder / f"{name}.log").open("w"))
            local = {**environment, "SPARK_LOCAL_IP": host}
            process = subprocess.Popen(command, env=local, cwd=folder, stdout=log, stderr=log)
            processes.callback(process.wait)
            processes.callback(process.terminate)

        start("master", "127.0.0.1", f"{_DEPLOY}.master.Master", "--port", port)
        _wait_for(int(port), folder / "master.log")
        for host in _HOSTS:
            work = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / host))
            start(host, host, f"{_DEPLOY}.worker.Worker", *work)
        yield Cluster(master, str(python), folder, java_options)


def _wait_for(port: int, log: Path) -> None:
    for _ in range(1200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.25)
    raise AssertionError(f"the master does not listen: {log.read_text()[-4000:]}")
