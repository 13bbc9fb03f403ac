"""Install the wheel as users do, and use it. Run by `make packages`; needs a package index and Java.

Builds wheel and sdist into `dist/` and checks their contents and metadata. Then, for each extra, creates a virtual environment outside
the clone, installs the wheel with that extra, and runs the program of `scripts/extras`, which uses the extra's feature. The environment
of `spark` also runs the README: the time from an empty folder to the first table. Further steps install the sdist, and follow the tutorials.

Arguments are the names of the steps to run; without arguments all run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts.distributions import ROOT, Distributions, build, differences, problems
from tests.interop.catalogs import glue_catalog
from tests.interop.hive import hive_metastore
from tests.spark.own_spark import connect_port

PROGRAMS = ROOT / "scripts/extras"
OF_CATALOGS = PROGRAMS / "published.py"
BESIDE: Mapping[str, tuple[str, ...]] = {
    "dbt": ("dbt-core~=1.11.0", "dbt-spark[session]~=1.11.0"),
    "opentelemetry": ("opentelemetry-sdk>=1.25",),
}
"""The packages that the pages of a step install beside the wheel."""
PAGES: Mapping[str, tuple[str, ...]] = {
    "spark": ("README.md", "docs/guide/spark.md", "docs/guide/streams.md", "docs/guide/medallion.md"),
    "iceberg": ("docs/guide/iceberg.md",),
    "base": ("docs/guide/operations.md",),
    "sql": ("docs/guide/command-line.md",),
    "opentelemetry": ("docs/guide/observing.md",),
    "dbt": ("docs/guide/dbt.md",),
}
"""The pages that the environment of an extra follows."""


@dataclass(frozen=True, slots=True)
class Step:
    """The outcome of one step: the seconds to install and to run, and the size of the environment in bytes."""

    name: str
    installation: float
    use: float
    size: int
    error: str = ""


def main(chosen: list[str]) -> int:
    """Run the steps, print a table, and return 1 if one failed."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    names = ["base", *extras, "sdist", "dbt"]
    if unknown := set(chosen) - set(names):
        print(f"no step is named {', '.join(sorted(unknown))}; the steps are {', '.join(names)}")
        return 1
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    built = build(ROOT / "dist")
    actual = problems(built) + _rebuilt(built)
    print("\n".join(actual) or "contents and metadata: no problem; the sdist builds the same wheel")
    for path in (built.wheel, built.sdist):
        print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB")
    steps = []
    for name in chosen or names:
        with tempfile.TemporaryDirectory(prefix=f"tahoe-{name}-") as folder:
            steps.append(_step(name, Path(folder), built))
        print(_line(steps[-1]), flush=True)
    return 1 if actual or any(step.error for step in steps) else 0


def _rebuilt(built: Distributions) -> list[str]:
    """Return a sentence for each file in which the wheel built from the sdist differs from the wheel built from the clone."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--no-build-isolation",
            "-w",
            folder,
            str(built.sdist),
        ]
        subprocess.run(command, check=True)
        (wheel,) = Path(folder).glob("*.whl")
        return [f"the wheel from the sdist has another {name}" for name in differences(built.wheel, wheel)]


def _step(name: str, folder: Path, built: Distributions) -> Step:
    """Create an environment in an empty folder outside the clone, install, and run the programs and pages of the step."""
    started = time.perf_counter()
    venv = folder / "venv"
    size = 0
    installed = None
    try:
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        _run(venv, folder, "python", "-m", "pip", "install", "--quiet", *_requirements(name, built))
        _run(venv, folder, "python", "-m", "pip", "check")
        installed = time.perf_counter()
        size = sum(path.lstat().st_size for path in (venv / "lib").rglob("*"))
        _use(name, venv, folder)
    except subprocess.CalledProcessError as failure:
        ended = time.perf_counter()
        return Step(name, (installed or ended) - started, ended - (installed or ended), size, f"{failure}\n{failure.stdout}")
    return Step(name, installed - started, time.perf_counter() - installed, size)


def _requirements(name: str, built: Distributions) -> tuple[str, ...]:
    wheels = {"sdist": str(built.sdist), "base": str(built.wheel), "dbt": f"{built.wheel}[spark]"}
    return (wheels.get(name, f"{built.wheel}[{name}]"), *BESIDE.get(name, ()))


def _use(name: str, venv: Path, folder: Path) -> None:
    with _service(name, folder) as variables:
        program = PROGRAMS / f"{ {'sdist': 'base', 'dbt': 'spark'}.get(name, name) }.py"
        _run(venv, folder, "python", "-P", str(program if program.exists() else OF_CATALOGS), **variables)
    for page in PAGES.get(name, ()):
        started = time.perf_counter()
        _follow(page, venv, folder)
        print(f"    {page}: {time.perf_counter() - started:.1f} s", flush=True)


def _follow(page: str, venv: Path, folder: Path) -> None:
    """Follow a page in a folder of its own."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        _run(venv, Path(own), "python", "-P", str(ROOT / "scripts/follow_page.py"), str(ROOT / page), own)


@contextmanager
def _service(name: str, folder: Path) -> Iterator[Mapping[str, str]]:
    """Provide the catalog or the port that an extra's program needs, and yield PyIceberg's configuration as variables."""
    if name == "hive":
        (folder / "metastore").mkdir()
        with hive_metastore(folder / "metastore") as uri:
            yield _configuration({"type": "hive", "uri": uri, "hive.hive2-compatible": "true"})
    elif name == "glue":
        with glue_catalog() as properties:
            yield _configuration(properties)
    elif name == "connect":
        with connect_port():
            yield {}
    else:
        yield {}


def _configuration(properties: Mapping[str, str]) -> dict[str, str]:
    variables = {name.upper().replace("-", "_").replace(".", "__"): value for name, value in properties.items()}
    return {f"PYICEBERG_CATALOG__LOCAL__{name}": value for name, value in variables.items()}


def _run(venv: Path, folder: Path, program: str, *arguments: str, **variables: str) -> None:
    """Run a program of an environment as after `source bin/activate`, and raise an error with its output if it fails."""
    remaining = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK", "TAHOE"))}
    path = f"{venv}/bin{os.pathsep}{remaining['PATH']}"
    environment = {**remaining, "PATH": path, "VIRTUAL_ENV": str(venv), "PYTHONNOUSERSITE": "1", **variables}
    command = [str(venv / "bin" / program), *arguments]
    subprocess.run(command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True)


def _line(step: Step) -> str:
    outcome = f"FAILED\n{step.error}" if step.error else "ok"
    return f"{step.name:12} install {step.installation:6.1f} s   use {step.use:6.1f} s   {step.size / 1e6:7.1f} MB   {outcome}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
