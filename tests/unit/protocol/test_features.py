"""The rows of features: they name features that exist, their names are spelled once, and docs/features.md prints them."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tahoe.protocol.features import FEATURES, TableFeature
from tahoe.protocol.properties import FEATURE_PREFIX, is_table_property


def test_the_page_of_features_equals_the_output_of_the_code() -> None:
    root = Path(__file__).parents[3]
    printed = subprocess.run(
        [sys.executable, "scripts/feature_table.py"], cwd=root, env={"PYTHONPATH": str(root)}, capture_output=True, text=True
    )
    assert printed.stdout == (root / "docs/features.md").read_text(), "run `make docs`"


def test_rows_name_features_that_have_a_row() -> None:
    assert {name for row in FEATURES.values() for name in (*row.names, *row.requires, *row.forbids)} <= FEATURES.keys()


def missing_property_rows(rows: Iterable[TableFeature]) -> list[str]:
    """A sentence for each property that enables a feature and that `tahoe.protocol.properties` does not define."""
    return [
        f"feature {row.name} is enabled by the property {key}, which needs a row in _ROWS of tahoe/protocol/properties.py"
        for row in rows
        if (key := row.enabled_by_property) is not None and not key.endswith(".") and not is_table_property(key)
    ]


def test_every_property_that_enables_a_feature_has_a_row() -> None:
    (sentence,) = missing_property_rows([TableFeature("mine", enabled_by_property="delta.enableMine")])
    assert "feature mine" in sentence and "delta.enableMine" in sentence and "tahoe/protocol/properties.py" in sentence
    assert missing_property_rows(FEATURES.values()) == []


# Literals that are equal to a feature's name and mean something else, or data of other projects.
_OTHER_MEANINGS = {
    "domainMetadata": (
        "the name of an action in commits, checkpoints and checksums",
        "protocol/actions protocol/action_members log/checksum log/checkpoints/checkpoint_reader log/checkpoints/checkpoint_rows "
        "log/files/commits log/files/json_columns ops/check/ testing/log_builder",
    ),
    "inCommitTimestamp": ("a member of commitInfo", "protocol/actions txn/prepare ops/check/"),
    "v2Checkpoint": ("a member of _last_checkpoint", "log/files/last_checkpoint"),
    "appendOnly": ("the property delta.appendOnly without its prefix", "settings/property_settings"),
}
_LISTS_OF_OTHER_ENGINES = "ops/features/engines"  # copied from the code of these engines; test_compat.py checks the names


def test_names_of_features_are_spelled_in_one_module() -> None:
    root = Path(__file__).parents[3] / "tahoe"
    literals = [
        f"{module}: {text}"
        for path in sorted(root.rglob("*.py"))
        if (module := path.relative_to(root).with_suffix("").as_posix()) not in ("protocol/features", _LISTS_OF_OTHER_ENGINES)
        for text in names_in(path)
        if not module.startswith(tuple(_OTHER_MEANINGS.get(text, ("", "-"))[1].split()))
    ]
    assert literals == [], "use tahoe.protocol.features.Feature"


def names_in(path: Path) -> Iterator[str]:
    """The string literals of a module that consist of names of features."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            words = node.value.removeprefix(FEATURE_PREFIX).split()
            if words and FEATURES.keys() >= set(words):
                yield node.value
