"""Every statement on tables of every kind: answers, rows, schema, entries of the catalog and history are those of the reference.

`tests/statements` has the statements, delta-spark's outcomes, and Tahoe's differences, with reasons. Here half of the
lives of a table are run in one way of naming it; `make soak` runs all of them in every way, and those with a Hive metastore.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from tests.sampling import sampled
from tests.statements.compared import differences_of, kind_of
from tests.statements.lives import KINDS, LIVES
from tests.statements.observed import lives_of

OTHERS = [(name, kind) for name in LIVES for kind in KINDS if kind != kind_of(name)]


@pytest.mark.parametrize("name", sampled(LIVES, 2))
def test_a_table_lives_as_with_the_reference(spark: SparkSession, tmp_path: Path, name: str) -> None:
    check(spark, tmp_path, name, kind_of(name))


@pytest.mark.soak
@pytest.mark.parametrize(("name", "kind"), OTHERS)
def test_it_does_so_whatever_its_kind(spark: SparkSession, tmp_path: Path, name: str, kind: str) -> None:
    check(spark, tmp_path, name, kind)


def check(spark: SparkSession, folder: Path, name: str, kind: str) -> None:
    outcomes = lives_of(spark, kind, folder, [name])[name]
    assert differences_of(name, kind, outcomes, pyspark.__version__) == []


@pytest.mark.soak
def test_names_in_a_hive_metastore_live_as_well(tmp_path: Path) -> None:
    named = [kind for kind in KINDS if kind != "path"]
    lives = [f"{named[number % len(named)]}:{name}" for number, name in enumerate(LIVES)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYSPARK_PYTHON": sys.executable}
    program = [sys.executable, str(Path(__file__).with_name("hive_statements.py")), str(tmp_path / "told"), str(tmp_path), *lives]
    done = subprocess.run(program, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    reported = json.loads((tmp_path / "told").read_text(encoding="utf-8"))
    actual = [
        differences_of(life.partition(":")[2], life.partition(":")[0], reported[life], pyspark.__version__) for life in lives
    ]
    differences = [item for of_life in actual for item in of_life]
    kept = [item for item in differences if "CONVERT TO DELTA" in item and ("entry.schema" in item or "entry.partitions" in item)]
    assert [item for item in differences if item not in kept] == []
    # Spark's client of the metastore keeps the columns of an entry whose format changes, whoever changes it.
    assert len(kept) == 3
