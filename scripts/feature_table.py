"""feature_table.py: prints docs/features.md, the table of features as code has it. `make docs` writes it; a test holds it."""

from __future__ import annotations

from tahoe.protocol.enforced import ENFORCED
from tahoe.protocol.features import FEATURES, TableFeature

# What `TableConfig.demands` asks of writers; those that Tahoe does not enforce are refused where a column uses them.
DEMANDED = ("checkConstraints", "generatedColumns", "identityColumns", "invariants", "allowColumnDefaults")
HEAD = """# Table features

What Tahoe knows of each feature of the Delta protocol, printed from `tahoe/protocol/features.py` by `make docs`.
A table that needs a feature with "no" below is refused by name, and so is a feature that has no row.

| feature | kind | versions that imply it | asked for by | requires | forbids | Tahoe reads | Tahoe writes | before it can be dropped |
|---|---|---|---|---|---|---|---|---|"""


_ASKED = {"clustering": "CLUSTER BY"}
"""Features that a statement brings, and no property."""


def row(feature: TableFeature) -> str:
    """One line of the table."""
    versions = "–" if feature.legacy is None else f"reader {feature.legacy[0]}, writer {feature.legacy[1]}"
    asked = [f"`{feature.wanted_by_property}`".replace(".`", ".…`")] if feature.wanted_by_property else []
    asked += ["the schema"] if feature.wanted_by_field else []
    cells = [
        f"`{feature.name}`",
        "reader and writer" if feature.reader else "writer",
        versions,
        " or ".join(asked) or _ASKED.get(feature.name, f"`delta.feature.{feature.name}`"),
        ", ".join(feature.requires) or "–",
        ", ".join(feature.forbids) or "–",
        "yes" if feature.readable else "no",
        _writes(feature),
        feature.removal or "never dropped",
    ]
    return "| " + " | ".join(cells) + " |"


def _writes(feature: TableFeature) -> str:
    if not feature.writable:
        return "no"
    return "where no column uses it" if feature.name in DEMANDED and feature.name not in ENFORCED else "yes"


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *map(row, FEATURES.values())]) + "\n"


if __name__ == "__main__":
    print(page(), end="")
