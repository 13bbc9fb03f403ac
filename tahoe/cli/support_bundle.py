"""`tahoe doctor --bundle FILE.zip`: facts for a bug report, without secrets and without data.

Everything is chosen, nothing is filtered out: of variables, settings, options, parameters of commits and unknown table properties only the
names are written; of a table neither rows nor statistics, predicates, partition values or users' texts.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from tahoe.base.exceptions import TahoeError
from tahoe.base.secrets import HIDDEN, without_secrets
from tahoe.base.version import __version__
from tahoe.cli.examination.spark_jars import spark_defaults
from tahoe.cli.shell.arguments import open_table, options_of

if TYPE_CHECKING:
    from tahoe.api.table import Table

_PACKAGES = (
    "pyspark",
    "pyarrow",
    "obstore",
    "pyroaring",
    "pyiceberg",
    "duckdb",
    "deltalake",
    "delta-spark",
    "pandas",
    "numpy",
    "typer",
)
_VARIABLES = ("SPARK_", "PYSPARK_", "JAVA_", "HADOOP_", "AWS_", "GOOGLE_", "AZURE_", "TAHOE_", "DATABRICKS_", "PYICEBERG_")
_MOST_COMMITS = 20


def write_bundle(file: Path, findings: Sequence[Mapping[str, object]], path: str | None, option: list[str]) -> None:
    """Write the bundle.

    Args:
        findings: those of `tahoe doctor`.
        path: a table; None for none.
        option: its storage options, as ``name=value``.
    """
    secrets = sorted({value for value in options_of(option).values() if value}, key=len, reverse=True)

    def redacted(text: str) -> str:
        for secret in secrets:
            text = text.replace(secret, HIDDEN)
        return without_secrets(text, sys.argv[1:], os.environ)

    lines = (f"{each['subject']}: {each['state']}. {each['sentence']} {each['remedy']}".rstrip() for each in findings)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as bundle:
        bundle.writestr("findings.txt", redacted("\n".join(lines) + "\n"))
        for name, content in _documents(findings, path, option):
            bundle.writestr(f"{name}.json", redacted(json.dumps(content, indent=2, default=str)))


def _documents(
    findings: Sequence[Mapping[str, object]], path: str | None, option: list[str]
) -> Iterator[tuple[str, Mapping[str, object]]]:
    yield "findings", {"findings": findings}
    yield (
        "versions",
        {
            "tahoe": __version__,
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
            "packages": {name: _installed(name) for name in _PACKAGES},
        },
    )
    yield (
        "environment",
        {
            "variables": {name: HIDDEN for name in sorted(os.environ) if name.startswith(_VARIABLES)},
            "sparkSettings": dict.fromkeys(_spark_settings(os.environ), HIDDEN),
            "storageOptions": dict.fromkeys(options_of(option), HIDDEN),
        },
    )
    if path is not None:
        yield "table", _table(path, option)


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _spark_settings(environment: Mapping[str, str]) -> list[str]:
    """Return the names of the settings in ``spark-defaults.conf``."""
    lines = map(str.strip, spark_defaults(environment))
    return [line.split("=")[0].split()[0] for line in lines if line.startswith("spark.")]


def _table(path: str, option: list[str]) -> Mapping[str, object]:
    """Return facts about a table; of a part that cannot be read, the code of the error."""
    try:
        table = open_table(path, option)
        facts: dict[str, object] = {"location": table.url, "log": _log(table)}
        snapshot = table.snapshot()
        facts |= {
            "version": snapshot.version,
            "protocol": snapshot.protocol.to_json_value(),
            "properties": {name: _property(name, value) for name, value in snapshot.metadata.configuration.items()},
            "commits": [_commit(commit) for commit in table.history(_MOST_COMMITS)],
            "check": [{"code": finding.code, "version": finding.version} for finding in table.check()],
        }
    except TahoeError as error:
        return {"error": error.code}
    return facts


def _log(table: Table) -> list[dict[str, object]]:
    return [
        {"name": entry.name, "size": entry.size, "modified": entry.modified_ms} for entry in table.store.list_from("_delta_log")
    ]


def _property(name: str, value: str) -> str:
    """Return a value that is a number or a switch of one of Delta's own properties; other values are texts of users."""
    plain = value.lower() in ("true", "false", "none", "name", "id", "iceberg", "supported", "classic", "v2") or value.isdecimal()
    return value if plain and name.lower().startswith("delta.") and len(value) <= _LONGEST else HIDDEN


def _commit(commit: Mapping[str, object]) -> dict[str, object]:
    parameters, metrics = commit["operationParameters"], commit["operationMetrics"]
    return {
        **{name: commit[name] for name in ("version", "timestamp", "operation", "isolationLevel", "isBlindAppend", "engineInfo")},
        "operationParameters": sorted(parameters) if isinstance(parameters, Mapping) else None,
        "operationMetrics": {k: v for k, v in metrics.items() if str(v).isdecimal()} if isinstance(metrics, Mapping) else None,
        "userMetadata": None if commit["userMetadata"] is None else HIDDEN,
    }


_LONGEST = 12
