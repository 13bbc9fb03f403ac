"""A program with a Hive metastore, started by `test_every_statement`: lives of tables by name, their outcomes to a file.

Arguments: the file, a folder, and the lives, each as ``kind:life``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.spark.hive_life import session
from tests.statements.observed import lives_of


def main(file: str, folder: str, lives: list[str]) -> None:
    """Run the lives one after the other."""
    spark = session(folder)
    actual = {}
    try:
        for number, life in enumerate(lives):
            kind, _, name = life.partition(":")
            actual[life] = lives_of(spark, kind, Path(folder) / str(number), [name])[name]
    finally:
        spark.stop()
    Path(file).write_text(json.dumps(actual), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
