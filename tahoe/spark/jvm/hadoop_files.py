"""Hadoop's file systems through the JVM of a Spark session, for `tahoe.store.hadoop_store`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import SparkSession

from tahoe.spark.jvm.bridge import Jvm
from tahoe.spark.jvm.compiled import compiled_object
from tahoe.store.hadoop_store import HadoopStatus

Answer = TypeVar("Answer")


class JvmFiles:
    """`tahoe.store.hadoop_store.HadoopFiles` with the configuration of a session.

    Args:
        spark: a classic session.
        settings: settings of Hadoop that override the session's, for a separate connection.
    """

    def __init__(self, spark: SparkSession, settings: Mapping[str, str]) -> None:
        configuration = spark._jsparkSession.sessionState().newHadoopConf()
        for name, value in settings.items():
            configuration.set(name, value)
        self._files = compiled_object(Jvm.of(spark), "HadoopFiles", configuration, bool(settings))

    def list(self, folder: str) -> list[tuple[str, HadoopStatus]]:
        """See `HadoopFiles.list`."""
        parts = _call(lambda: str(self._files.list(folder))).split("\0")[:-1]
        return [(parts[at + 3], _status(parts[at : at + 3])) for at in range(0, len(parts), 4)]

    def status(self, file: str) -> HadoopStatus | None:
        """See `HadoopFiles.status`."""
        text = _call(lambda: self._files.status(file))
        return None if text is None else _status(text.split("\0"))

    def read(self, file: str, start: int, length: int) -> bytes:
        """See `HadoopFiles.read`."""
        return _call(lambda: bytes(self._files.read(file, start, length)))

    def write(self, file: str, data: bytes) -> None:
        """See `HadoopFiles.write`."""
        _call(lambda: self._files.write(file, bytes(data)))

    def upload(self, local: str, file: str) -> None:
        """See `HadoopFiles.upload`."""
        _call(lambda: self._files.upload(local, file))

    def rename(self, source: str, target: str, *, overwrite: bool) -> bool:
        """See `HadoopFiles.rename`."""
        return _call(lambda: bool(self._files.rename(source, target, overwrite)))

    def delete(self, file: str) -> None:
        """See `HadoopFiles.delete`."""
        _call(lambda: self._files.delete(file))


def _status(parts: list[str]) -> HadoopStatus:
    kind, size, modified_ms = parts
    return HadoopStatus(kind == "folder", int(size), int(modified_ms))


def _call(call: Callable[[], Answer]) -> Answer:
    """Make a call; a Java exception becomes an `OSError` with its class and the first line of its message."""
    try:
        return call()
    except Py4JJavaError as error:
        name = str(error.java_exception.getClass().getName())
        message = str(error.java_exception.getMessage() or "").partition("\n")[0]
        if name in ("java.io.FileNotFoundException", "org.apache.hadoop.fs.ParentNotDirectoryException"):
            raise FileNotFoundError(message) from None
        kind = PermissionError if name.endswith("AccessControlException") else OSError
        raise kind(f"{name.rpartition('.')[2]}: {message}") from None
    except CapturedException as error:  # PySpark converts some
        raise OSError(str(error).partition("\n")[0]) from None
    except Py4JError as error:
        raise OSError(f"the JVM of the Spark session does not answer ({type(error).__name__})") from None
