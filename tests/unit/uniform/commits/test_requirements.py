"""Every requirement of the specification, met and not met."""

from __future__ import annotations

import pytest

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.uniform.commits.json_fields import Fields
from tahoe.uniform.commits.requirements import requirement, unmet

DOCUMENT = {
    "table-uuid": "0C0FFEE0-0000-0000-0000-000000000000",
    "refs": {"main": {"snapshot-id": 5, "type": "branch"}},
    "last-column-id": 7,
    "current-schema-id": 1,
    "last-partition-id": 1000,
    "default-spec-id": 0,
    "default-sort-order-id": 0,
}


@pytest.mark.parametrize(
    ("met", "not_met"),
    [
        (
            {"type": "assert-table-uuid", "uuid": "0c0ffee0-0000-0000-0000-000000000000"},
            {"type": "assert-table-uuid", "uuid": "1c0ffee0-0000-0000-0000-000000000000"},
        ),
        (
            {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 5},
            {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None},
        ),
        (
            {"type": "assert-ref-snapshot-id", "ref": "other", "snapshot-id": None},
            {"type": "assert-ref-snapshot-id", "ref": "other", "snapshot-id": 5},
        ),
        (
            {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 7},
            {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 8},
        ),
        (
            {"type": "assert-current-schema-id", "current-schema-id": 1},
            {"type": "assert-current-schema-id", "current-schema-id": 0},
        ),
        (
            {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 1000},
            {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 999},
        ),
        ({"type": "assert-default-spec-id", "default-spec-id": 0}, {"type": "assert-default-spec-id", "default-spec-id": 1}),
        (
            {"type": "assert-default-sort-order-id", "default-sort-order-id": 0},
            {"type": "assert-default-sort-order-id", "default-sort-order-id": 1},
        ),
    ],
)
def test_a_requirement_is_compared_with_the_metadata(met: dict[str, object], not_met: dict[str, object]) -> None:
    assert unmet(requirement(Fields(met)), DOCUMENT) is None
    problem = unmet(requirement(Fields(not_met)), DOCUMENT)
    assert problem is not None and str(not_met["type"]) in problem


def test_an_existing_table_cannot_be_created() -> None:
    assert unmet(requirement(Fields({"type": "assert-create"})), DOCUMENT) == "The table exists already."


def test_only_the_snapshot_of_main_can_be_rebased() -> None:
    main, other = (
        requirement(Fields({"type": "assert-ref-snapshot-id", "ref": name, "snapshot-id": 5})) for name in ("main", "other")
    )
    assert main.is_about_main and not other.is_about_main


def test_an_unknown_or_malformed_requirement_is_refused() -> None:
    with pytest.raises(Unsupported, match="assert-luck"):
        requirement(Fields({"type": "assert-luck"}))
    with pytest.raises(InvalidRequest, match="'uuid' is missing"):
        requirement(Fields({"type": "assert-table-uuid"}))
