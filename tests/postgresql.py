"""A PostgreSQL for tests: the one that ``TAHOE_TEST_POSTGRESQL`` names, or a server of this machine's own programs on a socket of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["postgresql_server"]

_USER = "tahoe"


@contextmanager
def postgresql_server() -> Iterator[str]:
    """The URL of an empty database, ``postgresql://user@…``; skips the test where there is none and none can be started."""
    if named := os.environ.get("TAHOE_TEST_POSTGRESQL"):
        yield named.replace("postgresql+psycopg://", "postgresql://")
        return
    programs = {name: _program(name) for name in ("initdb", "pg_ctl")}
    if not all(programs.values()):
        pytest.skip("TAHOE_TEST_POSTGRESQL names no database, and there is no initdb and pg_ctl to start one")
    with tempfile.TemporaryDirectory(prefix="pg") as folder:  # short: the socket is in it
        as_user = _other_user(folder)
        data = f"{folder}/data"

        def run(*command: str) -> None:
            environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
            done = subprocess.run([*as_user, *command], env=environment, cwd=folder, capture_output=True, text=True, timeout=600)
            if done.returncode:
                pytest.skip(f"PostgreSQL cannot be started here: {(done.stderr or done.stdout).strip()[-300:]}")

        run(str(programs["initdb"]), "-D", data, "-U", _USER, "--auth=trust", "--no-sync", "-E", "UTF8")
        settings = f"-k {folder} -c listen_addresses='' -c fsync=off"
        run(str(programs["pg_ctl"]), "-D", data, "-l", f"{folder}/log", "-w", "-o", settings, "start")
        try:
            yield f"postgresql://{_USER}@/postgres?host={folder}"
        finally:
            run(str(programs["pg_ctl"]), "-D", data, "-m", "immediate", "-w", "stop")


def _program(name: str) -> str | None:
    installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(installed[-1]) if installed else None)


def _other_user(folder: str) -> list[str]:
    """PostgreSQL does not run as root: then somebody else owns the folder, and runs it."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("PostgreSQL does not run as root, and there is no setpriv to be another user")
    shutil.chown(folder, "nobody")
    return ["setpriv", "--reuid=nobody", "--clear-groups"]
