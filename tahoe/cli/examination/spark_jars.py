"""Examines the JARs of Spark: those that conflict with each other or with Tahoe; and the private members of Spark and PySpark."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from zipfile import BadZipFile

from tahoe.cli.examination.findings import Finding, State
from tahoe.spark.versions.private_attributes import USED, missing_attributes
from tahoe.spark.versions.private_members import REQUIRED, missing_members

_DELTA = re.compile(r"delta-(spark|core|storage|contribs|connect)[\w.-]*", re.IGNORECASE)
_JAR = re.compile(r"(?P<name>.+?)(_(?P<scala>2\.1\d))?-(?P<version>\d[\w.-]*)\.jar")
_SINGLE = re.compile(r"(spark|delta|scala-library|scala-reflect|hadoop-client|py4j).*")
_SETTINGS = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")


def of_jars(jars: Iterable[str], settings: str = "") -> Finding:
    """Judge the JARs that Spark loads.

    Args:
        jars: the names of the files in the folders of JARs.
        settings: the values of the settings that add JARs.
    """
    names = sorted(set(jars))
    if twice := _in_several_versions(names):
        sentence = f"Spark loads several versions of {', '.join(twice)}; which one answers depends on their order."
        return Finding(
            "JARs", State.PROBLEM, sentence, "Keep one version, that of PySpark, and unset SPARK_HOME if it is another Spark."
        )
    delta = [name for name in names if _DELTA.match(name)] + sorted({match[0] for match in _DELTA.finditer(settings)})
    if delta:
        sentence = f"Spark loads {', '.join(delta)}: without Tahoe, delta-spark answers for format('delta')."
        return Finding("JARs", State.NOTE, sentence, "Remove them unless sessions without Tahoe use delta-spark.")
    return Finding("JARs", State.OK, "Spark's folders and settings of JARs have none of delta-spark, and no JAR of Spark twice.")


def of_private_members(folder: Path | None) -> Finding:
    """Judge whether Spark's classes have the private members that Tahoe uses."""
    subject = "private members"
    if folder is None or not folder.is_dir():
        return Finding(
            subject, State.NOT_EXAMINED, "PySpark has no folder of JARs here.", "Use the package pyspark, not pyspark-client."
        )
    try:
        missing = missing_members(folder)
    except (ValueError, BadZipFile, OSError) as error:
        sentence = f"A JAR of Spark in {folder} cannot be read ({type(error).__name__})."
        return Finding(subject, State.PROBLEM, sentence, "Install PySpark again.")
    if missing:
        uses = ", ".join(sorted({member.use for member in missing}))
        sentence = f"This Spark lacks {', '.join(map(str, missing))}, without which Tahoe cannot {uses}."
        return Finding(subject, State.PROBLEM, sentence, "Use PySpark 4.0 to 4.3.")
    sentence = f"Spark's JARs have all {len(REQUIRED)} that Tahoe uses."
    return Finding(subject, State.OK, sentence)


def of_private_attributes(package: Path | None) -> Finding:
    """Judge whether PySpark's Python classes have the private attributes that Tahoe uses, such as ``_jdf``.

    Args:
        package: the folder of the package `pyspark`; None if it is not in a folder.
    """
    subject = "private attributes"
    if package is None or not (package / "sql").is_dir():
        return Finding(subject, State.NOT_EXAMINED, "PySpark is not in a folder here.", "Install it with pip.")
    try:
        missing = missing_attributes(package)
    except (SyntaxError, ValueError, OSError) as error:
        sentence = f"PySpark in {package} cannot be read ({type(error).__name__})."
        return Finding(subject, State.PROBLEM, sentence, "Install PySpark again.")
    if missing:
        sentence = f"This PySpark lacks {', '.join(map(str, missing))}, which Tahoe uses."
        return Finding(subject, State.PROBLEM, sentence, "Use PySpark 4.0 to 4.3.")
    return Finding(subject, State.OK, f"PySpark's classes have all {len(USED)} that Tahoe uses.")


def jar_folders(environment: Mapping[str, str]) -> list[Path]:
    """Return the folders whose JARs a session loads: PySpark's own, and that of SPARK_HOME, if it is another one."""
    package, home = pyspark_folder(), environment.get("SPARK_HOME")
    roots = [*([package] if package else []), *([Path(home)] if home else [])]
    folders = dict.fromkeys(path.joinpath("jars").resolve() for path in roots)
    return [folder for folder in folders if folder.is_dir()]


def pyspark_folder() -> Path | None:
    """Return the folder of the package `pyspark`, or None if there is none."""
    spec = find_spec("pyspark")
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def jars_in(folders: Iterable[Path]) -> list[str]:
    """Return the names of the JARs in the folders."""
    return [path.name for folder in folders for path in folder.glob("*.jar")]


def jar_settings(environment: Mapping[str, str]) -> str:
    """Return the texts that add JARs to sessions: in ``spark-defaults.conf`` and in ``PYSPARK_SUBMIT_ARGS``."""
    chosen = [line for line in spark_defaults(environment) if re.split(r"[\s=]", line.strip(), maxsplit=1)[0] in _SETTINGS]
    return "\n".join([*chosen, environment.get("PYSPARK_SUBMIT_ARGS", "")])


def spark_defaults(environment: Mapping[str, str]) -> list[str]:
    """Return the lines of Spark's ``spark-defaults.conf``; none if there is no such file."""
    home = environment.get("SPARK_HOME")
    folder = environment.get("SPARK_CONF_DIR") or (home and os.path.join(home, "conf"))
    file = Path(folder, "spark-defaults.conf") if folder else None
    return file.read_text(encoding="utf-8", errors="replace").splitlines() if file is not None and file.is_file() else []


def _in_several_versions(names: Iterable[str]) -> list[str]:
    """Return the artifacts of Spark, Scala and Delta that occur in several versions, for one Scala or several."""
    versions = defaultdict[str, set[str]](set)
    for name in names:
        match = _JAR.fullmatch(name)
        if match is not None and _SINGLE.match(name):
            versions[match["name"]].add(f"{match['scala'] or ''} {match['version']}")
    return sorted(name for name, found_versions in versions.items() if len(found_versions) > 1)
