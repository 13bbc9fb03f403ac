"""The README's programs run as they are written, in their order."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def test_every_program_of_the_readme_runs_in_order(spark, tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 4
    known: dict[str, object] = {}
    spark.sql(f"CREATE DATABASE readme LOCATION '{tmp_path / 'warehouse'}'")
    spark.sql("USE readme")
    try:
        for block in blocks:
            exec(compile(block.replace("/tmp/", f"{tmp_path}/"), "README.md", "exec"), known)
    finally:
        spark.sql("USE default")
        spark.sql("DROP DATABASE readme CASCADE")
