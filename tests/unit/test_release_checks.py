"""The checks before a release: version, changelog, working tree, list of components, and the workflow that publishes."""

from __future__ import annotations

import re

import pytest
import yaml

from scripts import engine_table
from scripts.release_check import tree_problems, version_problems
from scripts.sbom import locked, required
from tests.pages import ROOT

CHANGELOG = "# Changelog\n\n## Unreleased\n\n## 1.2.3 - 2026-01-31\n\n### Added\n- A thing.\n\n## 1.2.2 - 2026-01-01\n"


def test_a_release_that_agrees_has_no_problem() -> None:
    assert version_problems("v1.2.3", "1.2.3", "1.2.3", CHANGELOG) == []
    assert version_problems("v1.2.3", "1.2.3", "1.2.3", CHANGELOG.replace("## Unreleased\n\n", "")) == []
    assert tree_problems("") == []


@pytest.mark.parametrize(
    ("tag", "code", "project", "changelog", "problem"),
    [
        ("1.2.3", "1.2.3", "1.2.3", CHANGELOG, "the tag '1.2.3' is not v and three numbers"),
        ("v1.2", "1.2", "1.2", CHANGELOG, "the tag 'v1.2' is not v and three numbers"),
        ("v1.2.3", "1.2.4", "1.2.3", CHANGELOG, "version.py says 1.2.4, the tag 1.2.3"),
        ("v1.2.3", "1.2.3", "1.2.2", CHANGELOG, "pyproject.toml says 1.2.2, the tag 1.2.3"),
        ("v1.2.4", "1.2.4", "1.2.4", CHANGELOG, "CHANGELOG.md has no section '## 1.2.4 - YYYY-MM-DD'"),
        ("v1.2.2", "1.2.2", "1.2.2", CHANGELOG, "the first section of CHANGELOG.md is '1.2.3 - 2026-01-31'"),
        (
            "v1.2.3",
            "1.2.3",
            "1.2.3",
            CHANGELOG.replace("Unreleased\n", "Unreleased\n- More.\n"),
            "has entries below 'Unreleased'",
        ),
    ],
)
def test_a_release_that_does_not_agree_is_refused(tag: str, code: str, project: str, changelog: str, problem: str) -> None:
    if tag == "v1.2.2":
        changelog = changelog.replace("## Unreleased\n\n", "")
    (actual,) = version_problems(tag, code, project, changelog)
    assert problem in actual


def test_uncommitted_files_are_named() -> None:
    assert tree_problems(" M README.md\n?? tahoe/notes.py\n") == ["not committed: README.md, tahoe/notes.py"]


def test_the_components_are_those_that_an_installation_can_get() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    plain, full = required("tahoe-delta", frozenset()), required("tahoe-delta", frozenset({"spark", "glue"}))
    assert {"pyarrow", "obstore", "typer"} <= plain
    assert "pyspark" not in plain
    assert {"pyspark", "py4j", "boto3"} <= full
    assert "moto" not in full
    assert len(re.findall(r"^pyspark==", locked(lock, full), re.MULTILINE)) == 1
    with pytest.raises(LookupError, match=r"requirements\.lock lacks nothing-of-this-name"):
        locked(lock, {"nothing-of-this-name"})


def test_the_workflow_publishes_only_after_the_checks_and_without_a_token() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))
    build, publish = workflow["jobs"]["build"], workflow["jobs"]["publish"]
    assert any("make release-check" in step.get("run", "") for step in build["steps"])
    assert publish["needs"] == "build"
    assert publish["permissions"] == {"id-token": "write"}
    assert workflow["permissions"] == {"contents": "read"}
    assert all("password" not in step.get("with", {}) for step in publish["steps"])


def test_every_engine_has_a_row_and_every_test_exists() -> None:
    page = engine_table.page()
    assert f"{page}\n" == (ROOT / "docs/engines.md").read_text(encoding="utf-8"), "run `make docs`"
    for *_, tests in engine_table.TESTED:
        assert all((ROOT / test).is_file() for test in tests.split(", "))
    with pytest.raises(LookupError, match="has no version of nothing"):
        engine_table.version_of("requirements.lock", "nothing")
