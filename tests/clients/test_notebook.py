"""A notebook that nbconvert executes: rows, a `DeltaTable` and its history are shown as HTML."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.clients.child import ENABLED, HERE, command, needs

pytestmark = pytest.mark.clients


def test_rows_a_table_and_its_history_are_shown_as_html(tmp_path: Path) -> None:
    needs("nbconvert", "ipykernel", "pyspark")
    shutil.copy(HERE / "programs/orders.ipynb", tmp_path)
    command(["jupyter", "nbconvert", "--to", "notebook", "--execute", "--inplace", "orders.ipynb"], tmp_path, variables=ENABLED)
    cells = {cell["id"]: cell["outputs"] for cell in json.loads((tmp_path / "orders.ipynb").read_text())["cells"]}
    html = {name: "".join(output["data"]["text/html"]) for name in ("rows", "table", "history") for output in cells[name]}
    assert "&lt;script&gt;" in html["rows"] and "<script>" not in html["rows"]
    assert "spark-warehouse/orders" in html["table"] and "<table" in html["table"]
    assert "<td>1</td><td>WRITE</td>" in html["history"]
