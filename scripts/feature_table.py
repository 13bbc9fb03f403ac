"""Print docs/features.md: the table features with their support. `make docs` runs it; a test compares the page."""

from __future__ import annotations

from tahoe.ops.features.removals import REMOVALS
from tahoe.protocol.enforced import ENFORCED
from tahoe.protocol.features import COORDINATED, FEATURES, TableFeature

# Features that writers must enforce (`TableConfig.demands`). Those that Tahoe does not enforce are refused if a column uses them.
DEMANDED = ("checkConstraints", "generatedColumns", "identityColumns", "invariants", "allowColumnDefaults")
HEAD = """# Table features

Tahoe's support for each feature of the Delta protocol, printed from `tahoe/protocol/features.py` and `tahoe/ops/features/removals.py` by
`make docs`. A table with a feature marked "no", or with an unknown feature, is refused by name; a writer feature never prevents reading.
`tests/unit/ops/features/test_feature_rows.py` tests each column row by row, and reads the Iceberg side with PyIceberg;
`tests/spark/test_feature_rows.py` does so with Spark, with the Python data source and, for every row in `make soak` and for a few in each run
(`tests/spark/test_portable.py`), on a Spark Connect server. In `tests/jvm/test_every_feature.py` delta-spark 4.0 and Tahoe alternately read
and change each other's tables, for each feature that both support, with equal rows, changes, row ids and identity values; it lists the
features for which it tests less. A table that requires a coordinator (docs/design/030) is refused by name if none is configured
(`tests/spark/test_coordinator.py`).

"""
_COLUMNS = (
    "feature", "kind", "implied by versions", "enabled by", "requires", "forbids", "read", "write", "added to an existing table",
    "dropped by DROP FEATURE", "Spark", "without Spark", "Spark Connect", "Iceberg",
)  # fmt: skip


_STATEMENTS = {"clustering": "CLUSTER BY"}
"""Features that are enabled by a statement instead of a property."""


def row(feature: TableFeature) -> str:
    """Return one row of the table."""
    versions = "–" if feature.legacy is None else f"reader {feature.legacy[0]}, writer {feature.legacy[1]}"
    enabled_by = [f"`{feature.wanted_by_property}`".replace(".`", ".…`")] if feature.wanted_by_property else []
    enabled_by += ["the schema"] if feature.wanted_by_field else []
    cells = [
        f"`{feature.name}`",
        "reader and writer" if feature.reader else "writer",
        versions,
        " or ".join(enabled_by) or _STATEMENTS.get(feature.name, f"`delta.feature.{feature.name}`"),
        ", ".join(feature.requires) or "–",
        ", ".join(feature.forbids) or "–",
        "yes" if feature.readable else "no",
        _writes(feature),
        "yes" if feature.writable else "refused",
        _dropped(feature),
        *_support(feature),
        _iceberg(feature),
    ]
    return "| " + " | ".join(cells) + " |"


def _writes(feature: TableFeature) -> str:
    if not feature.writable:
        return "no"
    return "if no column uses it" if feature.name in DEMANDED and feature.name not in ENFORCED else "yes"


def _dropped(feature: TableFeature) -> str:
    if feature.name in REMOVALS:
        return feature.removal or ""
    return "refused by this version" if feature.removal else "never"


def _support(feature: TableFeature) -> list[str]:
    """Return the support with Spark, without Spark, and with Spark Connect."""
    if feature.name in COORDINATED:
        return ["reads, writes, with its coordinator"] * 2 + ["reads, appends, with its coordinator"]
    support = "reads, writes" if feature.writable else "reads" if feature.readable else "no"
    if feature.name.startswith("geospatial"):
        return ["reads, writes, from PySpark 4.2", support, "refused if a column is a geometry"]
    return [support, support, "reads, appends" if feature.writable else support]


def _iceberg(feature: TableFeature) -> str:
    if not feature.writable:
        return "–"
    if feature.name.startswith("variant"):
        return "shown if no column is a variant"
    if feature.name.startswith("geospatial"):
        return "shown if no column is a geometry"
    versions = [compat.name[-1] for compat in map(FEATURES.__getitem__, _COMPATS) if feature.name in compat.forbids]
    return f"shown if it is not active with V{' or V'.join(versions)}" if versions else "shown"


_COMPATS = ("icebergCompatV1", "icebergCompatV2", "icebergCompatV3")


def page() -> str:
    """Return the content of docs/features.md."""
    return "\n".join([HEAD, f"| {' | '.join(_COLUMNS)} |", "|---" * len(_COLUMNS) + "|", *map(row, FEATURES.values())]) + "\n"


if __name__ == "__main__":
    print(page(), end="")
