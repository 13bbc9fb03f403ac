"""feature_table.py: prints docs/features.md, the table of features as code has it. `make docs` writes it; a test holds it."""

from __future__ import annotations

from tahoe.ops.features.removals import REMOVALS
from tahoe.protocol.enforced import ENFORCED
from tahoe.protocol.features import COORDINATED, FEATURES, TableFeature

# What `TableConfig.demands` asks of writers; those that Tahoe does not enforce are refused where a column uses them.
DEMANDED = ("checkConstraints", "generatedColumns", "identityColumns", "invariants", "allowColumnDefaults")
HEAD = """# Table features

What Tahoe knows of each feature of the Delta protocol, printed from `tahoe/protocol/features.py` and `tahoe/ops/features/removals.py` by
`make docs`. A table that needs a feature with "no" below is refused by name, and so is a feature that has no row; a feature of writers alone
keeps nobody from reading. `tests/unit/ops/features/test_feature_rows.py` does, row by row, what the columns say, and reads the Iceberg side
with PyIceberg; `tests/spark/test_feature_rows.py` does it with Spark, with the portable data source and, for every row by `make soak` and for
a few in each run (`tests/spark/test_portable.py`), on a server of Spark Connect. In `tests/jvm/test_every_feature.py` delta-spark 4.0 and
Tahoe read and change each other's tables by turns, for each feature that both know, with equal rows, changes, row ids and identity values;
it says of which features it shows less. Where a coordinator is needed (docs/design/030) and none is named, the table is refused by name
(`tests/spark/test_coordinator.py`).

"""
_COLUMNS = (
    "feature", "kind", "versions that imply it", "asked for by", "requires", "forbids", "read", "write", "added to a table that is there",
    "goes with DROP FEATURE when", "Spark", "no Spark", "Spark Connect", "Iceberg side",
)  # fmt: skip


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
        "yes" if feature.writable else "refused",
        _goes(feature),
        *_doors(feature),
        _iceberg(feature),
    ]
    return "| " + " | ".join(cells) + " |"


def _writes(feature: TableFeature) -> str:
    if not feature.writable:
        return "no"
    return "where no column uses it" if feature.name in DEMANDED and feature.name not in ENFORCED else "yes"


def _goes(feature: TableFeature) -> str:
    if feature.name in REMOVALS:
        return feature.removal or ""
    return "refused: not by this version" if feature.removal else "never: refused"


def _doors(feature: TableFeature) -> list[str]:
    """Through Spark, without it, and through Spark Connect."""
    if feature.name in COORDINATED:
        return ["reads, writes, with its coordinator"] * 2 + ["no"]
    does = "reads, writes" if feature.writable else "reads" if feature.readable else "no"
    if feature.name.startswith("geospatial"):
        return ["reads, writes, from PySpark 4.2", does, "refused, where a column is a geometry"]
    return [does, does, "reads, appends" if feature.writable else does]


def _iceberg(feature: TableFeature) -> str:
    if not feature.writable:
        return "–"
    if feature.name.startswith("variant"):
        return "shown, where no column is a variant"
    if feature.name.startswith("geospatial"):
        return "shown, where no column is a geometry"
    versions = [compat.name[-1] for compat in map(FEATURES.__getitem__, _COMPATS) if feature.name in compat.forbids]
    return f"shown, where it is not active with V{' or V'.join(versions)}" if versions else "shown"


_COMPATS = ("icebergCompatV1", "icebergCompatV2", "icebergCompatV3")


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, f"| {' | '.join(_COLUMNS)} |", "|---" * len(_COLUMNS) + "|", *map(row, FEATURES.values())]) + "\n"


if __name__ == "__main__":
    print(page(), end="")
