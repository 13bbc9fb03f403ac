"""The bodies of requests that change tables, as values (open-api/rest-catalog-open-api.yaml). Pure.

An update that no Delta table can follow (a branch, a view, another partitioning) raises `Unsupported` and is named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from tahoe.base.exceptions import Unsupported
from tahoe.base.json_values import JsonMapping
from tahoe.uniform.commits.json_fields import Fields, invalid
from tahoe.uniform.commits.requirements import MAIN, Requirement, requirement
from tahoe.uniform.formats.client_snapshot import OPERATIONS, ClientSnapshot

LAST_ADDED = -1
"""The id that means the schema, partition spec or sort order added last."""

PartitionField = tuple[int, str]
"""The id of the source column, and the name of the partition field."""


@dataclass(frozen=True, slots=True)
class AddedSnapshot:
    """A snapshot that a client adds.

    Args:
        client: its id, operation and summary.
        parent_id: the snapshot that it changes; None for a table without.
        manifest_list: the location of its manifest list.
    """

    client: ClientSnapshot
    parent_id: int | None
    manifest_list: str


@dataclass(frozen=True, slots=True)
class TableChange:
    """The changes of one table that a commit requests.

    Args:
        requirements: checked before anything is changed.
        snapshots: the added snapshots, oldest first.
        main: the snapshot that the branch ``main`` becomes; None if it stays.
        schemas: added schemas.
        schema_id: the id of the schema that becomes current, perhaps `LAST_ADDED`; None if it stays.
        set_properties, removed_properties: Iceberg's properties.
        uuid: the table's id, which must be the existing one.
        location: the table's location, which must be the existing one.
        format_version: the requested version of the format.
        partition_by: the partition fields of an added spec, as in `NewTable`; None if the request adds none. An existing table keeps its.
        spec_id: the id of the partition spec that becomes the default, perhaps `LAST_ADDED`; None if it stays.
        replaces: whether the branch ``main`` begins again: all rows go, and columns and partitioning may be any (``REPLACE TABLE``).
        client: the client's name and version.
    """

    requirements: tuple[Requirement, ...] = ()
    snapshots: tuple[AddedSnapshot, ...] = ()
    main: int | None = None
    schemas: tuple[JsonMapping, ...] = ()
    schema_id: int | None = None
    set_properties: Mapping[str, str] = field(default_factory=dict)
    removed_properties: tuple[str, ...] = ()
    uuid: str | None = None
    location: str | None = None
    format_version: int | None = None
    partition_by: tuple[PartitionField, ...] | None = None
    spec_id: int | None = None
    replaces: bool = False
    client: str = ""

    @property
    def creates(self) -> bool:
        """Whether the table must not exist yet."""
        return any(each.kind == "assert-create" for each in self.requirements)


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table to be created.

    Args:
        schema: the Iceberg schema.
        partition_by: the partition fields, which are all of the transform ``identity``.
        is_staged: only the metadata is wanted; the client commits the table later.
        has_ids: whether files may have the ids of the columns already: the table was staged, and is committed.
        client: the client's name and version.
    """

    name: str
    schema: JsonMapping
    partition_by: tuple[PartitionField, ...] = ()
    is_staged: bool = False
    has_ids: bool = False
    location: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    client: str = ""


def new_table(body: JsonMapping, client: str = "") -> NewTable:
    """Read a CreateTableRequest.

    Raises:
        InvalidRequest: a field is missing or of another type.
        Unsupported: a partition transform or a sort order.
    """
    fields = Fields(body)
    order = fields.optional("write-order", dict)
    if order is not None:
        _refuse_order(Fields(order, "write-order"))
    spec = fields.optional("partition-spec", dict)
    return NewTable(
        fields.text("name"),
        fields.inner("schema").value,
        () if spec is None else _identity_columns(Fields(spec, "partition-spec")),
        is_staged=fields.optional("stage-create", bool) or False,
        location=fields.optional("location", str),
        properties=fields.properties("properties"),
        client=client,
    )


def table_change(body: JsonMapping, client: str) -> TableChange:
    """Read a CommitTableRequest.

    Args:
        client: the client's name and version.

    Raises:
        InvalidRequest: a field is missing or of another type.
        Unsupported: an update or a requirement that a Delta table cannot follow.
    """
    fields = Fields(body)
    change = TableChange(tuple(requirement(each) for each in fields.each("requirements")))
    for update in fields.each("updates"):
        action = update.text("action")
        if action not in _UPDATES:
            raise _unsupported(f"the update '{action}'", _REASONS.get(action, "which this server does not know"))
        change = _UPDATES[action](change, update)
    snapshots = tuple(replace(each, client=replace(each.client, client=client)) for each in change.snapshots)
    return replace(change, snapshots=snapshots, client=client)


def _with_snapshot(change: TableChange, update: Fields) -> TableChange:
    fields = update.inner("snapshot")
    summary = fields.properties("summary")
    operation = summary.pop("operation", "append")
    if operation not in OPERATIONS:
        raise invalid(f"The snapshot's operation '{operation}' is none of {', '.join(OPERATIONS)}.")
    number = fields.number("snapshot-id")
    if number <= 0:
        raise invalid(f"The snapshot id {number} is not above 0.")
    for name in ("sequence-number", "timestamp-ms", "schema-id", "first-row-id", "added-rows"):
        if (stated := fields.optional(name, int)) is not None and stated < 0:  # the conversion gives the snapshot its own
            raise invalid(f"The {name} {stated} of the snapshot {number} in the request is negative.")
    if fields.optional("key-id", str) is not None:
        raise _unsupported("an encrypted manifest list", "since Delta tables are not encrypted")
    added = AddedSnapshot(
        ClientSnapshot(number, operation, summary), fields.optional("parent-snapshot-id", int), fields.text("manifest-list")
    )
    return replace(change, snapshots=(*change.snapshots, added))


def _with_ref(change: TableChange, update: Fields) -> TableChange:
    name, kind = update.text("ref-name"), update.text("type")
    if (name, kind) != (MAIN, "branch"):
        raise _unsupported(f"the {kind} '{name}'", "since a Delta table has one line of versions, the branch main")
    for key in ("max-ref-age-ms", "max-snapshot-age-ms", "min-snapshots-to-keep"):
        if update.optional(key, int) is not None:
            raise _unsupported(f"'{key}' of the branch main", "since the retention of a Delta table is set by its properties")
    return replace(change, main=update.number("snapshot-id"))


def _without_ref(change: TableChange, update: Fields) -> TableChange:
    name = update.text("ref-name")
    if name != MAIN:
        raise _unsupported(
            f"the removal of the branch or tag '{name}'", "since a Delta table has one line of versions, the branch main"
        )
    return replace(change, replaces=True, main=None)


def _with_spec(change: TableChange, update: Fields) -> TableChange:
    return replace(change, partition_by=_identity_columns(update.inner("spec")))


def _with_order(change: TableChange, update: Fields) -> TableChange:
    _refuse_order(update.inner("sort-order"))
    return change


def _with_default_order(change: TableChange, update: Fields) -> TableChange:
    if (number := update.number("sort-order-id")) not in (0, LAST_ADDED):
        raise _unsupported(f"the sort order {number}", "since it does not exist")
    return change


_UPDATES: Mapping[str, Callable[[TableChange, Fields], TableChange]] = {
    "assign-uuid": lambda change, update: replace(change, uuid=update.text("uuid").lower()),
    "upgrade-format-version": lambda change, update: replace(change, format_version=update.number("format-version")),
    "add-schema": lambda change, update: replace(change, schemas=(*change.schemas, update.inner("schema").value)),
    "set-current-schema": lambda change, update: replace(change, schema_id=update.number("schema-id")),
    "add-spec": _with_spec,
    "set-default-spec": lambda change, update: replace(change, spec_id=update.number("spec-id")),
    "add-sort-order": _with_order,
    "set-default-sort-order": _with_default_order,
    "add-snapshot": _with_snapshot,
    "set-snapshot-ref": _with_ref,
    "remove-snapshot-ref": _without_ref,
    "set-location": lambda change, update: replace(change, location=update.text("location")),
    "set-properties": lambda change, update: replace(
        change, set_properties={**change.set_properties, **update.properties("updates")}
    ),
    "remove-properties": lambda change, update: replace(
        change, removed_properties=(*change.removed_properties, *update.texts("removals"))
    ),
}
_REASONS = {
    "remove-partition-specs": "since the partitioning of a Delta table stays",
    "remove-snapshots": "since the retention of a Delta table is set by its properties, and VACUUM deletes its files",
    **dict.fromkeys(
        (
            *("set-statistics", "remove-statistics", "set-partition-statistics", "remove-partition-statistics"),
            *("remove-schemas", "enable-row-lineage"),
        ),
        "since the Iceberg side follows from the Delta table",
    ),
    "add-encryption-key": "since Delta tables are not encrypted",
    "remove-encryption-key": "since Delta tables are not encrypted",
}


def partition_fields_of(document: JsonMapping, change: TableChange) -> tuple[PartitionField, ...]:
    """Return the partition fields that the table has after a change which may give it others.

    Args:
        document: the table's Iceberg metadata.

    Raises:
        InvalidRequest: the request makes a partition spec the default that does not exist.
        Unsupported: a partition transform.
    """
    if change.partition_by is not None and change.spec_id in (None, LAST_ADDED):
        return change.partition_by
    number = document["default-spec-id"] if change.spec_id is None else change.spec_id
    spec = next((each for each in document["partition-specs"] if each["spec-id"] == number), None)
    if spec is None:
        raise invalid(f"There is no partition spec {number}, which the request makes the default.")
    return _identity_columns(Fields(spec, "partition-specs"))


def check_partitioning(document: JsonMapping, change: TableChange) -> None:
    """Raise `Unsupported` if a change of an existing table asks for another partitioning than the table has.

    Args:
        document: the table's Iceberg metadata.
    """
    spec = next(each for each in document["partition-specs"] if each["spec-id"] == document["default-spec-id"])
    reason = "since the partitioning of a Delta table stays"
    if change.partition_by not in (None, tuple((field["source-id"], field["name"]) for field in spec["fields"])):
        raise _unsupported("another partitioning (add-spec)", reason)
    is_added = change.spec_id == LAST_ADDED and change.partition_by is not None
    if not is_added and change.spec_id not in (None, spec["spec-id"]):
        raise _unsupported(f"another partitioning (set-default-spec {change.spec_id})", reason)


def _identity_columns(spec: Fields) -> tuple[PartitionField, ...]:
    columns = []
    for each in spec.each("fields"):
        transform = each.text("transform")
        if transform != "identity":
            raise _unsupported(
                f"the partition transform '{transform}' of '{each.text('name')}'",
                "since Delta partitions by values of columns (identity): partition by a column that contains the result",
            )
        columns.append((each.number("source-id"), each.text("name")))
    return tuple(columns)


def _refuse_order(order: Fields) -> None:
    if order.each("fields"):
        raise _unsupported("a sort order", "since Delta tables have none: cluster the table through Delta (Table.cluster_by)")


def _unsupported(subject: str, reason: str) -> Unsupported:
    return Unsupported(f"The request contains {subject}, {reason}.", code="TAHOE_ICEBERG_UPDATE")
