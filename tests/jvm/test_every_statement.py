"""delta-spark gives the outcomes that `tests/statements` records for each statement; tests/spark compares Tahoe with them.

Each life of a table is run in one way of naming it. Where ``TAHOE_RECORD_REFERENCE`` is set, all are, and the record is rewritten.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.statements.compared import FILE, kind_of, recorded, reference
from tests.statements.lives import KINDS, LIVES
from tests.statements.observed import lives_of

pytestmark = pytest.mark.jvm
RECORDS = "TAHOE_RECORD_REFERENCE" in os.environ


@pytest.mark.skipif(RECORDS, reason="the record is rewritten")
@pytest.mark.parametrize("name", LIVES)
def test_the_reference_has_its_recorded_outcomes(jvm: SparkSession, tmp_path: Path, name: str) -> None:
    assert lives_of(jvm, kind_of(name), tmp_path, [name])[name] == reference(name, kind_of(name))


@pytest.mark.skipif(not RECORDS, reason="set TAHOE_RECORD_REFERENCE to write tests/statements/reference.json anew")
@pytest.mark.timeout(3600)
def test_the_record_is_written_again(jvm: SparkSession, tmp_path: Path) -> None:
    FILE.write_text(recorded({kind: lives_of(jvm, kind, tmp_path / kind) for kind in KINDS}), encoding="utf-8")
