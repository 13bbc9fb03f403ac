"""A real Hive metastore, from the JARs inside the pyspark package: Derby, Thrift, no download."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JError, Py4JNetworkError

__all__ = ["hive_metastore"]

_JARS = Path(pyspark.__path__[0]) / "jars"
_PACKAGES = ("lang", "lang.invoke", "lang.reflect", "io", "net", "nio", "util", "util.concurrent", "util.concurrent.atomic")


@contextmanager
def hive_metastore(folder: Path) -> Iterator[str]:
    """A metastore that keeps its database below `folder`; gives its ``thrift://`` URI. Needs a Java runtime."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (folder / "hive-site.xml").write_text(_configuration(folder))
    options = [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in _PACKAGES]
    (jar,) = _JARS.glob("py4j-*.jar")
    with (folder / "metastore.log").open("w") as log:
        gateway_port, token, process = launch_gateway(
            jarpath=str(jar),
            classpath=f"{folder}:{_JARS}/*",
            javaopts=[*options, f"-Dderby.stream.error.file={folder}/derby.log", "-XX:TieredStopAtLevel=1"],
            die_on_exit=True,
            redirect_stdout=log,
            redirect_stderr=log,
            enable_auth=True,
            return_proc=True,
        )
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=gateway_port, auth_token=token))
        try:
            # The tables of locks are the only ones that are not made by themselves.
            gateway.jvm.org.apache.hadoop.hive.metastore.txn.TxnDbUtil.prepDb(gateway.jvm.org.apache.hadoop.hive.conf.HiveConf())
            threading.Thread(target=_serve, args=(gateway, port), daemon=True).start()
            _wait_for(port, folder)
            yield f"thrift://127.0.0.1:{port}"
        finally:
            gateway.shutdown()
            process.stdin.close()
            process.kill()
            process.wait()


def _serve(gateway: JavaGateway, port: int) -> None:
    arguments = gateway.new_array(gateway.jvm.String, 2)
    arguments[0], arguments[1] = "-p", str(port)
    try:
        gateway.jvm.org.apache.hadoop.hive.metastore.HiveMetaStore.main(arguments)
    except (Py4JNetworkError, Py4JError, OSError):  # it serves until the process ends
        return


def _wait_for(port: int, folder: Path) -> None:
    for _ in range(6_000):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(f"the metastore does not answer; see {folder}/metastore.log")


def _configuration(folder: Path) -> str:
    settings = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/metastore_db;create=true",
        "javax.jdo.option.ConnectionDriverName": "org.apache.derby.iapi.jdbc.AutoloadedDriver",
        "datanucleus.schema.autoCreateAll": "true",
        "datanucleus.connectionPoolingType": "HikariCP",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": f"file://{folder}/warehouse",
        "hive.metastore.uris": "",
        "hive.metastore.event.db.notification.api.auth": "false",
        "hive.async.log.enabled": "false",
    }
    properties = "".join(f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items())
    return f'<?xml version="1.0"?><configuration>{properties}</configuration>'
