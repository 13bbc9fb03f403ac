"""For authors of cases: record the expectations on delta-spark, and list the differences on Tahoe.

``python -m tests.conformance.record FILE...`` (PySpark 4.1) runs the cases that have neither rows nor an error on delta-spark, and writes
their outcome behind them; ``schema = "?"`` becomes the schema of the query, ``error = "?"`` beside rows the error. With ``--check`` it
validates the complete cases, and changes nothing.

``python -m tests.conformance.record --tahoe FILE...`` runs the cases on Tahoe and prints the differences from the expectations. These cases
become the pending ones of these files in differences.toml.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyspark
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

import tahoe
from tests.conformance.cases import CASES, DIFFERENCES, Case, load_differences, parse_cases
from tests.conformance.engines import DELTA_SPARK, PYSPARK, failure_of, runs_on_this_pyspark
from tests.conformance.outcome import Outcome, outcome_of

LINES_OF_A_MESSAGE = 8
_SETTINGS = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.session.timeZone": "UTC",
}


def main() -> int:
    """Carry out the command line; the number of cases that differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="files of cases; all where none is given")
    parser.add_argument("--tahoe", action="store_true", help="run on Tahoe and update the pending cases")
    parser.add_argument("--check", action="store_true", help="validate all expectations on delta-spark")
    parser.add_argument(
        "-k", default="", metavar="TEXT", help="only the cases with this text in their names; changes no file of pending cases"
    )
    arguments = parser.parse_args()
    files = arguments.files or sorted(CASES.glob("*.toml"))
    cases = {file: [case for case in parse_cases(file) if arguments.k in case.name] for file in files}
    with tempfile.TemporaryDirectory() as folder:
        if arguments.tahoe:
            return _compare_tahoe(cases, Path(folder), updates=not arguments.k)
        return _record(cases, Path(folder), checks=arguments.check)


def _session(folder: Path, settings: Mapping[str, str]) -> SparkSession:
    builder = SparkSession.builder.master("local[2]").config("spark.sql.warehouse.dir", f"{folder}/default")
    # PySpark logs each error with its traceback; the outcome is enough.
    PySparkLogger.getLogger("SQLQueryContextLogger").addFilter(lambda _: False)
    for key, value in (_SETTINGS | dict(settings)).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _record(cases: Mapping[Path, list[Case]], folder: Path, *, checks: bool) -> int:
    if not pyspark.__version__.startswith(PYSPARK):
        sys.exit(f"delta-spark 4.4.0 needs PySpark {PYSPARK}x, this is {pyspark.__version__}")
    ivy = os.environ.get("TAHOE_IVY", str(Path(__file__).parents[2] / ".ivy"))
    spark, failures = _session(folder, DELTA_SPARK | {"spark.jars.ivy": ivy}), 0
    for file, of_file in cases.items():
        for case in of_file:
            if checks:
                if _is_complete(case) and (failure := failure_of(spark, case, case.expected, folder / "case")):
                    failures += 1
                    _report(case, failure)
            elif not _is_complete(case):
                failures += not _fill_in(spark, file, case, folder / "case")
    return failures


def _is_complete(case: Case) -> bool:
    expected = case.expected
    return (expected.rows is not None or expected.error is not None) and "?" not in (expected.schema, expected.error)


def _fill_in(spark: SparkSession, file: Path, case: Case, folder: Path) -> bool:
    """Write the outcome of one case into its file; False where a step before the step under test failed."""
    try:
        outcome = outcome_of(spark, case, folder)
    except Exception as error:  # noqa: BLE001 - the author sees which case to repair
        _report(case, f"a step before the step under test failed: {type(error).__name__}: {error}")
        return False
    if outcome.error_of_query:
        _report(case, f"the query after the step under test raised {outcome.error_of_query.text}")
        return False
    file.write_text(filled_in(file.read_text(encoding="utf-8"), case.name, outcome), encoding="utf-8")
    _report(case, outcome.error.text if outcome.error else "\n".join(outcome.rows or ()))
    return True


def filled_in(text: str, name: str, outcome: Outcome) -> str:
    """The text of a file in which the case of a name has this outcome."""
    blocks = re.split(r"(?m)^(?=\[\[case\]\]$)", text)
    for index, block in enumerate(blocks):
        if f"\nname = {json.dumps(name, ensure_ascii=False)}" in block:
            body = block.rstrip("\n")
            blocks[index] = _with_outcome(body, outcome) + block[len(body) :]
            return "".join(blocks)
    raise ValueError(f"no case is named {name!r}: write the name between double quotes, right after [[case]]")


def _with_outcome(block: str, outcome: Outcome) -> str:
    if 'schema = "?"' in block and outcome.schema is not None:
        block = block.replace('schema = "?"', f"schema = {json.dumps(outcome.schema, ensure_ascii=False)}")
    if 'error = "?"' in block and outcome.error:
        block = block.replace('error = "?"', f'error = "{outcome.error.name}"')
    if "\nrows = " not in block and "\nerror = " not in block:
        if outcome.error:
            return f'{block}\nerror = "{outcome.error.name}"'
        rows = "".join(f"{row}\n" for row in outcome.rows or ()).replace("\\", "\\\\").replace('"""', '""\\"')
        return f'{block}\nrows = """\n{rows}"""'
    return block


def _compare_tahoe(cases: Mapping[Path, list[Case]], folder: Path, *, updates: bool) -> int:
    spark, failures = tahoe.enable(_session(folder, {})), 0
    for file, of_file in cases.items():
        failing = [case for case in of_file if _differs(spark, case, folder / "case")]
        failures += len(failing)
        if updates:
            others = [entry for entry in load_differences().values() if entry.pending and entry.file != file.stem]
            _write_pending(sorted((entry.file, entry.name) for entry in (*others, *failing)))
    return failures


def _differs(spark: SparkSession, case: Case, folder: Path) -> bool:
    """Whether Tahoe's outcome is neither the expected nor a documented one; reports how."""
    if not runs_on_this_pyspark(case) or not _is_complete(case):
        return False
    documented = load_differences().get(case.id)
    expected = documented.expected if documented and not documented.pending else case.expected
    failure = failure_of(spark, case, expected, folder)
    if failure:
        _report(case, failure)
    return failure is not None and expected is case.expected


def _write_pending(pending: list[tuple[str, str]]) -> None:
    """Replace the pending entries of differences.toml; the others stay as they are, before them."""
    blocks = re.split(r"(?m)^(?=\[\[difference\]\]$)", DIFFERENCES.read_text(encoding="utf-8"))
    entries = (
        f'[[difference]]\nfile = "{file}"\nname = {json.dumps(name, ensure_ascii=False)}\npending = true\n\n'
        for file, name in pending
    )
    text = "".join([*(block for block in blocks if "\npending = true" not in block), *entries])
    DIFFERENCES.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


def _report(case: Case, text: str) -> None:
    print(f"{case.id}\n" + "\n".join(f"    {line}" for line in _first_lines(text)), flush=True)  # noqa: T201 - a command line's output


def _first_lines(text: str) -> Iterator[str]:
    yield from (line for line in text.splitlines()[:LINES_OF_A_MESSAGE] if "\tat " not in line)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
