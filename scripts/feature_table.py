"""Print docs/features.md: the table features with their support. `make docs` runs it; a test compares the page."""

from __future__ import annotations

from tahoe.protocol.features import FEATURES, ICEBERG_COMPAT, TableFeature, Use

HEAD = """# Table features

Tahoe's support for each feature of the Delta protocol, printed from `tahoe/protocol/features.py` by `make docs`. A table with a
feature marked "no", or with an unknown feature, is refused by name; a writer feature never prevents reading.
`tests/unit/ops/features/test_feature_rows.py` tests each column row by row, and reads the Iceberg side with PyIceberg;
`tests/spark/test_feature_rows.py` does so with Spark, with the Python data source and, for every row in `make soak` and for a few in each run
(`tests/spark/test_portable.py`), on a Spark Connect server. In `tests/jvm/test_every_feature.py` delta-spark 4.0 and Tahoe alternately read
and change each other's tables, for each feature that both support, with equal rows, changes, row ids and identity values; it lists the
features for which it tests less. A table that requires a coordinator (docs/design/030) is refused by name if none is configured
(`tests/spark/test_coordinator.py`).

"""
_COLUMNS = (
    "feature", "kind", "implied by versions", "enabled by", "requires", "forbids", "read", "write", "change data feed",
    "added to an existing table", "dropped by DROP FEATURE", "Spark", "without Spark", "Spark Connect", "Iceberg",
)  # fmt: skip


def row(feature: TableFeature) -> str:
    """Return one row of the table."""
    versions = "–" if feature.legacy is None else f"reader {feature.legacy[0]}, writer {feature.legacy[1]}"
    enabled_by = [f"`{feature.enabled_by_property}`".replace(".`", ".…`")] if feature.enabled_by_property else []
    enabled_by += ["the schema"] if feature.depends_on_schema else []
    enabled_by += [feature.statement] if feature.statement else []
    cells = [
        f"`{feature.name}`",
        "reader and writer" if feature.reader else "writer",
        versions,
        " or ".join(enabled_by) or f"`delta.feature.{feature.name}`",
        ", ".join(feature.requires) or "–",
        ", ".join(feature.forbids) or "–",
        "yes" if feature.supports(Use.READ) else "no",
        "yes" if feature.supports(Use.WRITE) else "no",
        "yes" if feature.supports(Use.FEED) else "no",
        "yes" if feature.supports(Use.UPGRADE) else "refused",
        _dropped(feature),
        _support(feature, Use.SPARK),
        _support(feature, None),
        _support(feature, Use.CONNECT),
        _iceberg(feature),
    ]
    return "| " + " | ".join(cells) + " |"


def _dropped(feature: TableFeature) -> str:
    if feature.removal is None:
        return "never"
    return feature.removal if feature.supports(Use.DROP) else "refused by this version"


def _support(feature: TableFeature, use: Use | None) -> str:
    """Return the support with Spark, with Spark Connect, or without Spark (None)."""
    if use in feature.limits:
        return feature.limits[use].support
    if not feature.supports(Use.WRITE):
        return "reads" if feature.supports(Use.READ) else "no"
    verbs = "reads, appends" if use is Use.CONNECT else "reads, writes"
    return f"{verbs}, with its coordinator" if feature.is_coordinated else verbs


def _iceberg(feature: TableFeature) -> str:
    if not feature.supports(Use.ICEBERG):
        return "–"
    if Use.ICEBERG in feature.limits:
        return feature.limits[Use.ICEBERG].support
    versions = [str(version) for version, compat in ICEBERG_COMPAT.items() if feature.name in FEATURES[compat].forbids]
    return f"shown if it is not active with V{' or V'.join(versions)}" if versions else "shown"


def page() -> str:
    """Return the content of docs/features.md."""
    return "\n".join([HEAD, f"| {' | '.join(_COLUMNS)} |", "|---" * len(_COLUMNS) + "|", *map(row, FEATURES.values())]) + "\n"


if __name__ == "__main__":
    print(page(), end="")
