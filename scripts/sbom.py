"""Write the list of components of a release, in CycloneDX's format, from `requirements.lock`. Run by `make sbom`.

The lock file also pins what the tests need. The list contains only the packages that an installation with all extras can get. Their
requirements are read from the installed packages, so it runs in the development environment.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
_ENTRY = re.compile(r"^([A-Za-z0-9][\w.-]*)==.*(?:\n[ \t]+.*)*", re.MULTILINE)


def required(name: str, extras: frozenset[str]) -> set[str]:
    """Return the names of the packages that a package with these extras needs, with their own requirements."""
    actual: set[str] = set()
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [(canonicalize_name(name), extras)]
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        for text in _requirements(current[0]):
            requirement = Requirement(text)
            if requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in {"", *current[1]}):
                actual.add(canonicalize_name(requirement.name))
                waiting.append((canonicalize_name(requirement.name), frozenset(requirement.extras)))
    return actual


def _requirements(name: str) -> list[str]:
    try:
        return distribution(name).requires or []
    except PackageNotFoundError as missing:
        raise LookupError(f"{name} is not installed, so its requirements are unknown: run `make setup`.") from missing


def locked(lock: str, names: set[str]) -> str:
    """Return the entries of a lock file for these packages.

    Raises:
        LookupError: the file has no entry for one of them.
    """
    entries = {canonicalize_name(entry[1]): entry[0] for entry in _ENTRY.finditer(lock)}
    if missing := sorted(names - entries.keys()):
        raise LookupError(f"requirements.lock lacks {', '.join(missing)}: run `make lock`.")
    return "\n".join(entries[name] for name in sorted(names)) + "\n"


def main(cyclonedx: str, output: Path) -> None:
    """Write the list to a file with the program ``cyclonedx-py``."""
    extras = frozenset(distribution("tahoe-delta").metadata.get_all("Provides-Extra") or ())
    entries = locked((ROOT / "requirements.lock").read_text(encoding="utf-8"), required("tahoe-delta", extras))
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as requirements:
        requirements.write(entries)
        requirements.flush()
        command = [
            cyclonedx,
            "requirements",
            requirements.name,
            "--pyproject",
            str(ROOT / "pyproject.toml"),
            "--mc-type",
            "library",
        ]
        subprocess.run([*command, "--output-reproducible", "--output-file", str(output)], check=True)
    print(f"{output}: {len(_ENTRY.findall(entries))} components")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
