"""Build the wheel and the sdist, and check their files and metadata. `make packages` and `make release-check` use this module."""

from __future__ import annotations

import ast
import tarfile
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder
from packaging.metadata import InvalidMetadata, Metadata
from trove_classifiers import classifiers

__all__ = ["ROOT", "Distributions", "build", "differences", "problems", "sdist_problems", "source_version", "wheel_problems"]

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("tahoe", "pyspark_delta")
STARTUP = ("tahoe_startup.py", "tahoe_startup.pth")
SHIPPED = (".py", ".java", ".toml", ".typed")
"""The suffixes of the files of a package. A file with another suffix is not meant to be there."""
NEEDED_IN_SDIST = ("PKG-INFO", "LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "requirements.lock", "tests/conftest.py")
LOCAL = ("dist", "build", "site", "demo-output", "spark-warehouse", "metastore_db")
"""Folders of the clone with output. No distribution contains them, nor a folder with a hidden name."""


@dataclass(frozen=True, slots=True)
class Distributions:
    """The two files to publish."""

    wheel: Path
    sdist: Path


def build(folder: Path) -> Distributions:
    """Build both files into `folder`, without a network: hatchling is part of the development environment."""
    wheel = next(WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"]))
    sdist = next(SdistBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"]))
    return Distributions(Path(wheel), Path(sdist))


def source_version() -> str:
    """Return the version in `tahoe/base/version.py`, without importing the package."""
    tree = ast.parse((ROOT / "tahoe/base/version.py").read_text(encoding="utf-8"))
    (version,) = (
        node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__version__"
    )
    return str(ast.literal_eval(version))


def problems(built: Distributions) -> list[str]:
    """Return a sentence for each error in the files and the metadata of both distributions."""
    with zipfile.ZipFile(built.wheel) as wheel:
        names = [name for name in wheel.namelist() if not name.endswith("/")]
        (metadata,) = (wheel.read(name) for name in names if name.endswith(".dist-info/METADATA"))
    with tarfile.open(built.sdist) as sdist:
        members = [member.name for member in sdist.getmembers() if member.isfile()]
        (of_sdist,) = (sdist.extractfile(name) for name in members if name.count("/") == 1 and name.endswith("/PKG-INFO"))
        of_sdist = of_sdist.read() if of_sdist else b""
    return [
        *wheel_problems(names, source_files()),
        *sdist_problems(members),
        *metadata_problems(metadata),
        *(["the metadata of wheel and sdist differ"] if metadata != of_sdist else []),
    ]


def source_files() -> set[str]:
    """Return the files of the clone that belong into the wheel, as names in the wheel."""
    files = (path for package in PACKAGES for path in (ROOT / package).rglob("*") if path.suffix in SHIPPED)
    return {path.relative_to(ROOT).as_posix() for path in files} | set(STARTUP)


def wheel_problems(names: Iterable[str], expected: set[str]) -> list[str]:
    """Return a sentence for each file that is missing from the wheel, or does not belong there."""
    names = set(names)
    information = {name for name in names if PurePosixPath(name).parts[0].endswith(".dist-info")}
    about = {name.partition("/")[2] for name in information}
    return [
        *(f"the wheel lacks {name}" for name in sorted(expected - names)),
        *(f"the wheel lacks {package}/py.typed" for package in PACKAGES if f"{package}/py.typed" not in names),
        *(f"{name} does not belong into the wheel" for name in sorted(names - information - expected)),
        *(f"the wheel has a test: {name}" for name in sorted(names) if _is_test(PurePosixPath(name))),
        *(f"the wheel lacks {name} in .dist-info" for name in ("licenses/LICENSE", "entry_points.txt") if name not in about),
    ]


def _is_test(path: PurePosixPath) -> bool:
    return path.name.startswith("test_") or path.name == "conftest.py" or "tests" in path.parts


def sdist_problems(names: Iterable[str]) -> list[str]:
    """Return a sentence for each file that is missing from the sdist, or does not belong there."""
    inside = {name.partition("/")[2] for name in names}
    needed = {*NEEDED_IN_SDIST, *source_files()}
    return [
        *(f"the sdist lacks {name}" for name in sorted(needed - inside)),
        *(f"{name} does not belong into the sdist" for name in sorted(inside) if _is_local(PurePosixPath(name))),
    ]


def _is_local(path: PurePosixPath) -> bool:
    folders = path.parts[:-1]
    hidden = any(part.startswith(".") and part not in (".ci", ".github") for part in folders)
    return hidden or path.suffix in (".pyc", ".whl", ".crc") or bool(folders and folders[0] in LOCAL) or "__pycache__" in folders


def metadata_problems(content: bytes) -> list[str]:
    """Return a sentence for each rule of the package index that the metadata violates."""
    try:
        metadata = Metadata.from_email(content, validate=True)
    except ExceptionGroup as invalid:
        return [f"metadata: {error}" for error in invalid.exceptions if isinstance(error, InvalidMetadata)] or [str(invalid)]
    declared = metadata.classifiers or []
    return [
        *(f"metadata: unknown classifier {name!r}" for name in declared if name not in classifiers),
        *(
            ["metadata: a license expression excludes license classifiers"]
            if any("License ::" in name for name in declared)
            else []
        ),
        *(["metadata: no description in Markdown"] if metadata.description_content_type != "text/markdown" else []),
        *(["metadata: the description is empty"] if not (metadata.description or "").strip() else []),
        *(
            [f"metadata: version {metadata.version}, but the code says {source_version()}"]
            if str(metadata.version) != source_version()
            else []
        ),
        *(["metadata: no license file"] if not metadata.license_files else []),
    ]


def differences(one: Path, other: Path) -> list[str]:
    """Return the names of files that two wheels do not both contain with the same bytes."""
    with zipfile.ZipFile(one) as left, zipfile.ZipFile(other) as right:
        names = {*left.namelist(), *right.namelist()}
        both = set(left.namelist()) & set(right.namelist())
        return sorted(name for name in names if name not in both or left.read(name) != right.read(name))
