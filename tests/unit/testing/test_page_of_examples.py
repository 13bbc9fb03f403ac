"""The examples of docs/testing.md, word for word, run by pytest."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
_PROGRAMS = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
# tests/spark/test_pytest_plugin.py runs those with Spark.
EXAMPLES = [text for text in _PROGRAMS if "delta_spark" not in text]


# Slow (over a second): one example runs a history of the state machine.
def test_every_example_of_the_page_runs_unchanged(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert (len(EXAMPLES), len(_PROGRAMS)) == (7, 8)
    for number, text in enumerate(EXAMPLES):
        (tmp_path / f"test_example_{number}.py").write_text(text, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    # Run in this process, which has already imported most modules.
    plugins = ("-p", "tahoe.testing.pytest_plugin", "-p", "no:cacheprovider", "-p", "no:faulthandler")
    outcome = pytest.main(["-q", *plugins, "--import-mode=importlib", str(tmp_path)])
    said = capfd.readouterr().out
    assert outcome == 0, said
    assert re.search(r"\b(\d+) passed", said) and "skipped" not in said, said


def test_the_page_names_every_module_of_the_package() -> None:
    modules = {path.stem for path in (ROOT / "tahoe" / "testing").glob("*.py")} - {"__init__", "extras"}
    assert {name for name in modules if f"{name}`" not in PAGE} == set()
