"""A process that appends to a table, and prints the acknowledged commits: ``python -m tests.race.writer``.

The first line of its input is JSON: ``path``, ``options``, ``writer`` (a number), ``appends``, ``rows`` (in each). It writes
``ready``, waits for a second line, and then writes ``<version> <first id>`` for each acknowledged append; the ids of an append
are consecutive.
"""

from __future__ import annotations

import json
import sys

import pyarrow as pa

from tahoe.api.table import Table

ID_SPACE = 1_000_000
"""Writer n uses the ids from n times this on."""


def main() -> None:
    task = json.loads(sys.stdin.readline())
    table = Table(task["path"], storage_options=task["options"])
    say("ready")
    sys.stdin.readline()
    for number in range(task["appends"]):
        first = task["writer"] * ID_SPACE + number * task["rows"]
        version = table.append(pa.table({"id": pa.array(range(first, first + task["rows"]), pa.int64())}))
        say(f"{version} {first}")


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
