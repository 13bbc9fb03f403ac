"""The names that programs may rely on."""

from __future__ import annotations

import subprocess
import sys

import tahoe
from tahoe import exceptions

NAMES = [
    "CommitStateUnknown",
    "ConcurrentAppendException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentDeleteReadException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
    "CorruptTable",
    "DeltaConcurrentModificationException",
    "DeltaTable",
    "ForeignWriter",
    "InvalidRequest",
    "InvariantViolation",
    "MetadataChangedException",
    "NotFound",
    "ProtocolChangedException",
    "SchemaMismatch",
    "SqlCoordinator",
    "StorageFailure",
    "Table",
    "TahoeError",
    "TahoeWarning",
    "Unsupported",
    "__version__",
    "cache",
    "configure_spark_with_delta_pip",
    "enable",
    "read_together",
    "transaction",
]


def test_the_public_names_are_these_and_no_others() -> None:
    assert sorted(tahoe.__all__) == NAMES


def test_every_error_is_public() -> None:
    assert set(exceptions.__all__) <= set(NAMES)
    assert all(getattr(tahoe, name) is getattr(exceptions, name) for name in exceptions.__all__)


def test_importing_the_package_loads_nothing_but_its_version() -> None:
    # The environment's start-up file (docs/design/038) imports `tahoe_startup` before.
    program = "import sys; before = set(sys.modules); import tahoe\n"
    program += "print(sorted(name for name in set(sys.modules) - before if name.startswith(('tahoe', 'pyarrow', 'pyspark'))))"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "['tahoe', 'tahoe.base', 'tahoe.base.version']"


def test_a_name_that_is_not_public_is_refused() -> None:
    assert not hasattr(tahoe, "Snapshot")
