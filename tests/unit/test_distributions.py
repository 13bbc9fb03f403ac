"""The wheel and the sdist contain the right files and valid metadata. `make packages` installs them too."""

from __future__ import annotations

import ast
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from scripts import distributions
from scripts.distributions import (
    ROOT,
    Distributions,
    build,
    metadata_problems,
    problems,
    sdist_problems,
    source_files,
    wheel_problems,
)

METADATA = (
    "Metadata-Version: 2.4\nName: tahoe-delta\nVersion: {}\nLicense-Expression: Apache-2.0\nLicense-File: LICENSE\n{}"
    "Description-Content-Type: {}\n\nText."
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    return build(tmp_path_factory.mktemp("dist"))


def test_contents_and_metadata_have_no_problem(built: Distributions) -> None:
    assert problems(built) == []


def test_the_wheel_contains_every_kind_of_file(built: Distributions) -> None:
    names = zipfile.ZipFile(built.wheel).namelist()
    information = f"tahoe_delta-{distributions.source_version()}.dist-info"
    needed = {"tahoe_startup.py", "tahoe_startup.pth", "tahoe/py.typed", "pyspark_delta/py.typed", "tahoe/testing/table_laws.py"}
    assert needed | {"tahoe/spark/java/FromLog.java", f"{information}/licenses/LICENSE"} <= set(names)
    assert {name.split("/")[0] for name in names} == {
        "tahoe",
        "pyspark_delta",
        "tahoe_startup.py",
        "tahoe_startup.pth",
        information,
    }


def test_the_sdist_has_the_tests(built: Distributions) -> None:
    with tarfile.open(built.sdist) as sdist:
        assert f"tahoe_delta-{distributions.source_version()}/tests/unit/test_distributions.py" in sdist.getnames()


INFORMATION = {"x.dist-info/licenses/LICENSE", "x.dist-info/entry_points.txt", "x.dist-info/METADATA"}


@pytest.mark.parametrize(
    ("added", "removed", "problem"),
    [
        ("tahoe/notes.txt", "", "tahoe/notes.txt does not belong into the wheel"),
        ("tests/unit/test_x.py", "", "the wheel has a test: tests/unit/test_x.py"),
        ("", "tahoe_startup.pth", "the wheel lacks tahoe_startup.pth"),
        ("", "tahoe/spark/java/FromLog.java", "the wheel lacks tahoe/spark/java/FromLog.java"),
        ("", "tahoe/py.typed", "the wheel lacks tahoe/py.typed"),
        ("", "x.dist-info/licenses/LICENSE", "the wheel lacks licenses/LICENSE in .dist-info"),
    ],
)
def test_a_wrong_file_in_the_wheel_is_reported(added: str, removed: str, problem: str) -> None:
    expected = source_files()
    names = (expected | INFORMATION | {added}) - {"", removed}
    assert wheel_problems(expected | INFORMATION, expected) == []
    assert problem in wheel_problems(names, expected)


@pytest.mark.parametrize(
    "name", [".venv/bin/python", "dist/old.whl", "tests/__pycache__/x.pyc", "site/index.html", "t/_delta_log/0.crc"]
)
def test_output_in_the_sdist_is_reported(name: str) -> None:
    complete = {f"x/{name}" for name in (*distributions.NEEDED_IN_SDIST, *source_files())}
    assert sdist_problems(complete) == []
    assert sdist_problems({*complete, f"x/{name}"}) == [f"{name} does not belong into the sdist"]
    assert sdist_problems(complete - {"x/LICENSE"}) == ["the sdist lacks LICENSE"]


def test_wrong_metadata_is_reported() -> None:
    version = distributions.source_version()
    assert metadata_problems(METADATA.format(version, "", "text/markdown").encode()) == []
    (unknown,) = metadata_problems(METADATA.format(version, "Classifier: Topic :: Lakes\n", "text/markdown").encode())
    assert "unknown classifier 'Topic :: Lakes'" in unknown
    assert metadata_problems(METADATA.format(version, "", "text/plain").encode()) == ["metadata: no description in Markdown"]
    assert "but the code says" in metadata_problems(METADATA.format("9.9", "", "text/markdown").encode())[0]
    assert metadata_problems(METADATA.format(version, "Requires-Dist: >>no\n", "text/markdown").encode())[0].startswith(
        "metadata: "
    )


def test_the_version_is_written_twice_and_is_the_same() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == distributions.source_version()


def test_every_extra_has_a_program_that_uses_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    programs = {path.stem for path in (ROOT / "scripts/extras").glob("*.py")}
    assert programs == {"base", "published", *project["optional-dependencies"]} - {"hive", "glue"}
    for path in (ROOT / "scripts/extras").glob("*.py"):
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path


def test_two_wheels_are_compared_by_their_files(tmp_path: Path) -> None:
    for name, content in (("one.whl", {"a": "1", "b": "2"}), ("two.whl", {"a": "1", "b": "3", "c": ""})):
        with zipfile.ZipFile(tmp_path / name, "w") as wheel:
            for member, text in content.items():
                wheel.writestr(member, text)
    assert distributions.differences(tmp_path / "one.whl", tmp_path / "two.whl") == ["b", "c"]
