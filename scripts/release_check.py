"""Check that the working tree can be released, and build what would be published. Run by `make release-check` and by the release workflow.

The argument is the tag, `v` and the version. Without it the tag of the version in the code is assumed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts.distributions import ROOT, build, problems, source_version

_SECTION = r"^## {} - \d{{4}}-\d{{2}}-\d{{2}}$"
_RELEASE = r"\d+\.\d+\.\d+"


def version_problems(tag: str, code: str, project: str, changelog: str) -> list[str]:
    """Return a sentence for each place that does not agree with the tag.

    Args:
        code: the version in `tahoe/base/version.py`.
        project: the version in `pyproject.toml`.
        changelog: the text of `CHANGELOG.md`.
    """
    version = tag.removeprefix("v")
    if not tag.startswith("v") or not re.fullmatch(_RELEASE, version):
        return [f"the tag {tag!r} is not v and three numbers, such as v1.2.3"]
    return [
        *([f"tahoe/base/version.py says {code}, the tag {version}"] if code != version else []),
        *([f"pyproject.toml says {project}, the tag {version}"] if project != version else []),
        *(_changelog_problems(version, changelog)),
    ]


def _changelog_problems(version: str, changelog: str) -> list[str]:
    if not re.search(_SECTION.format(re.escape(version)), changelog, re.MULTILINE):
        return [f"CHANGELOG.md has no section '## {version} - YYYY-MM-DD': give the section 'Unreleased' that title"]
    first = re.search(r"^## (.+)$", changelog, re.MULTILINE)
    unreleased = re.search(r"^## Unreleased\n(.*?)(?=^## )", changelog, re.MULTILINE | re.DOTALL)
    if unreleased and unreleased[1].strip():
        return ["CHANGELOG.md has entries below 'Unreleased': move them into the section of the release"]
    if first and not first[1].startswith(("Unreleased", version)):
        return [f"the first section of CHANGELOG.md is {first[1]!r}, not that of {version}"]
    return []


def tree_problems(status: str) -> list[str]:
    """Return a sentence if `git status --porcelain` lists a file: a wheel also contains files that are not committed."""
    changed = [line[3:] for line in status.splitlines()]
    return [f"not committed: {', '.join(changed[:5])}"] if changed else []


def main(tag: str) -> int:
    """Print the problems and return 1 if there is one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    tag = tag or f"v{source_version()}"
    status = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    built = build(ROOT / "dist")
    actual = [*version_problems(tag, source_version(), project, changelog), *tree_problems(status), *problems(built)]
    print("\n".join(actual) or f"{tag} can be released: {built.wheel.name} and {built.sdist.name} in dist/")
    return 1 if actual else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2] or [""]))
