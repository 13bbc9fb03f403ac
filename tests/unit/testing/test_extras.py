"""The error for a missing library names its extra."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tahoe.base.exceptions import Unsupported
from tahoe.testing.extras import extra_missing

WITHOUT = """
import importlib, sys
for library in {libraries}:
    sys.modules[library] = None
for module in {modules}:
    try:
        importlib.import_module("tahoe.testing." + module)
    except Exception as error:
        print(error)
    else:
        print(module, "works")
"""


def imported(libraries: list[str], modules: list[str]) -> list[str]:
    """Return the outcome of importing each module in a process that has none of the libraries."""
    program = WITHOUT.format(libraries=libraries, modules=modules)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.splitlines()


# Slow (over a second): a fresh process imports most of Tahoe.
def test_modules_without_their_library_name_the_extra_and_the_others_work() -> None:
    needing = ["row_strategies", "table_machine", "store_suite", "iceberg_verifier"]
    free = [
        "table_laws",
        "row_model",
        "random_history",
        "log_builder",
        "uniform_log",
        "raced_rows",
        "faulty_store",
        "interleaving",
    ]
    said = imported(["pytest", "hypothesis", "fastavro"], [*needing, *free])
    libraries = ["hypothesis", "hypothesis", "pytest", "fastavro"]
    assert said == [
        *(
            f"[TAHOE_LIBRARY_MISSING] tahoe.testing.{'row_strategies' if module == 'table_machine' else module} needs {library}, "
            "which is not installed: pip install 'tahoe-delta[testing]'."
            for module, library in zip(needing, libraries, strict=True)
        ),
        *(f"{module} works" for module in free),
    ]


@pytest.mark.parametrize(("library", "extra"), [("pyiceberg.table", "iceberg"), ("hypothesis", "testing")])
def test_the_extra_installs_the_library(library: str, extra: str) -> None:
    error = extra_missing(ImportError(f"No module named '{library}'", name=library), "tahoe.testing.some")
    assert isinstance(error, Unsupported) and f"tahoe-delta[{extra}]" in str(error)
