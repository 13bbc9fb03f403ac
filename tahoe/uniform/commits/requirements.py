"""The requirements of a commit, checked against the table's current metadata (open-api/rest-catalog-open-api.yaml, "TableRequirement").

Pure. A requirement that is not met means that another writer was faster: the client reads the table again and retries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tahoe.base.exceptions import Unsupported
from tahoe.base.json_values import JsonMapping
from tahoe.uniform.commits.json_fields import Fields

MAIN = "main"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement.

    Args:
        kind: the specification's name, such as ``assert-table-uuid``.
        expected: the required value; None for a branch that must not exist, or no table.
        ref: the branch or tag of ``assert-ref-snapshot-id``.
    """

    kind: str
    expected: str | int | None = None
    ref: str | None = None

    @property
    def is_about_main(self) -> bool:
        """Whether it names the snapshot of the branch ``main``."""
        return self.kind == "assert-ref-snapshot-id" and self.ref == MAIN


_NUMBERS = {
    "assert-last-assigned-field-id": ("last-assigned-field-id", "last-column-id"),
    "assert-current-schema-id": ("current-schema-id", "current-schema-id"),
    "assert-last-assigned-partition-id": ("last-assigned-partition-id", "last-partition-id"),
    "assert-default-spec-id": ("default-spec-id", "default-spec-id"),
    "assert-default-sort-order-id": ("default-sort-order-id", "default-sort-order-id"),
}
"""By requirement: the field of the request, and the field of the metadata."""


def requirement(fields: Fields) -> Requirement:
    """Read one requirement. Raises `Unsupported` for one that the specification does not have."""
    kind = fields.text("type")
    if kind == "assert-create":
        return Requirement(kind)
    if kind == "assert-table-uuid":
        return Requirement(kind, fields.text("uuid").lower())
    if kind == "assert-ref-snapshot-id":
        return Requirement(kind, fields.optional("snapshot-id", int), fields.text("ref"))
    if kind in _NUMBERS:
        return Requirement(kind, fields.number(_NUMBERS[kind][0]))
    raise Unsupported(
        f"The commit has the requirement '{kind}', which this server does not know.", code="TAHOE_ICEBERG_REQUIREMENT"
    )


def unmet(requirement: Requirement, document: JsonMapping) -> str | None:
    """Return a sentence about the difference between the table and a requirement; None if the requirement is met.

    Args:
        document: the metadata of the existing table.
    """
    if requirement.kind == "assert-create":
        return "The table exists already."
    actual = _ACTUAL_VALUES[requirement.kind](requirement, document)
    if actual == requirement.expected:
        return None
    name = f" of '{requirement.ref}'" if requirement.ref is not None else ""
    return f"Requirement {requirement.kind}{name} is not met: expected {requirement.expected}, found {actual}."


def _ref(requirement: Requirement, document: JsonMapping) -> str | int | None:
    refs: Mapping[str, Mapping[str, int]] = document.get("refs", {})
    return refs.get(requirement.ref or "", {}).get("snapshot-id")


def _number(requirement: Requirement, document: JsonMapping) -> str | int | None:
    value: int | None = document.get(_NUMBERS[requirement.kind][1])
    return value


_ACTUAL_VALUES: Mapping[str, Callable[[Requirement, JsonMapping], str | int | None]] = {
    "assert-table-uuid": lambda _, document: str(document["table-uuid"]).lower(),
    "assert-ref-snapshot-id": _ref,
    **dict.fromkeys(_NUMBERS, _number),
}
