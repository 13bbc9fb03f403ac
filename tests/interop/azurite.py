"""Azurite, Microsoft's server with Azure's Blob API, from npm, in a process of its own."""

from __future__ import annotations

import base64
import hashlib
import hmac
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path

import pytest

PACKAGE = "azurite@3.37.0"
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Azurite's only account, with the key that its documentation prints."""
_INSTALLED = Path(__file__).parents[2] / ".azurite"
_VERSION = "2024-11-04"


@dataclass(frozen=True)
class Azurite:
    """A running server; `options` are the storage options of its tables."""

    port: int

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}/{ACCOUNT}"

    @property
    def options(self) -> dict[str, str]:
        account = {"azure_storage_account_name": ACCOUNT, "azure_storage_account_key": KEY}
        return account | {"azure_storage_endpoint": self.endpoint, "allow_http": "true"}

    def create_container(self, name: str) -> None:
        """Create a container: a request signed with the account's key, as Azure documents it for "Shared Key"."""
        headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": _VERSION}
        canonical = "".join(f"{header}:{value}\n" for header, value in headers.items())
        text = "PUT" + "\n" * 12 + canonical + f"/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container"
        signature = base64.b64encode(hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()).decode()
        request = urllib.request.Request(f"{self.endpoint}/{name}?restype=container", method="PUT", headers=headers)
        request.add_header("Authorization", f"SharedKey {ACCOUNT}:{signature}")
        urllib.request.urlopen(request).close()


@contextmanager
def azurite(folder: Path) -> Iterator[Azurite]:
    """Run a server with its data in memory; skip the test without npm, or if npm cannot install the package."""
    program = _program()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        server = Azurite(free.getsockname()[1])
    command = [program, "--blobPort", str(server.port), "--inMemoryPersistence", "--silent", "--skipApiVersionCheck"]
    process = subprocess.Popen(list(map(str, command)), cwd=folder)
    try:
        for _ in range(300):
            assert process.poll() is None, f"{program} ended with {process.returncode}"
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", server.port)) == 0:
                    break
            time.sleep(0.1)
        yield server
    finally:
        process.kill()
        process.wait()


def _program() -> Path:
    program = _INSTALLED / "node_modules" / ".bin" / "azurite-blob"
    if not program.exists():
        if (npm := shutil.which("npm")) is None:
            pytest.skip(f"{PACKAGE} needs npm, which is not installed")
        install = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(_INSTALLED), PACKAGE]
        installed = subprocess.run(install, capture_output=True, text=True, check=False)
        if installed.returncode:
            pytest.skip(f"npm cannot install {PACKAGE}: {installed.stderr.strip()[-300:]}")
    return program
