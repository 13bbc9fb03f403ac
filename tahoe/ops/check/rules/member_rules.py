"""Rules of each action by itself: the members that the tables of "Actions" require, and their types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tahoe.ops.check.subjects.replayed_log import Step
from tahoe.ops.check.subjects.rule import Breaches, Broken, RuleList

RULES: RuleList[Step] = RuleList()

_TEXTS = "a map of texts"
_Kinds = Mapping[str, type | str]

_REQUIRED: Mapping[str, _Kinds] = {
    "add": {"path": str, "partitionValues": _TEXTS, "size": int, "modificationTime": int, "dataChange": bool},
    "remove": {"path": str, "dataChange": bool},
    "cdc": {"path": str, "partitionValues": _TEXTS, "size": int, "dataChange": bool},
    "metaData": {"id": str, "format": dict, "schemaString": str, "partitionColumns": list, "configuration": _TEXTS},
    "protocol": {"minReaderVersion": int, "minWriterVersion": int},
    "txn": {"appId": str, "version": int},
    "domainMetadata": {"domain": str, "configuration": str, "removed": bool},
    "deletionVector": {"storageType": str, "pathOrInlineDv": str, "sizeInBytes": int, "cardinality": int},
}
_OPTIONAL: Mapping[str, _Kinds] = {
    "add": {
        "stats": str,
        "tags": _TEXTS,
        "deletionVector": dict,
        "baseRowId": int,
        "defaultRowCommitVersion": int,
        "clusteringProvider": str,
    },
    "remove": {
        "deletionTimestamp": int,
        "extendedFileMetadata": bool,
        "partitionValues": _TEXTS,
        "size": int,
        "stats": str,
        "tags": _TEXTS,
        "deletionVector": dict,
        "baseRowId": int,
        "defaultRowCommitVersion": int,
    },
    "cdc": {"tags": _TEXTS},
    "metaData": {"name": str, "description": str, "createdTime": int},
    "protocol": {"readerFeatures": list, "writerFeatures": list},
    "txn": {"lastUpdated": int},
    "domainMetadata": {},
    "deletionVector": {"offset": int},
}


def wrong_members(kind: str, value: Mapping[str, object]) -> Iterator[str]:
    """Yield one sentence for each invalid or missing member of an action. Unknown members are ignored."""
    for name, expected in _REQUIRED[kind].items():
        if value.get(name) is None:
            yield f"the {kind} action has no '{name}'"
        elif not _fits(value[name], expected):
            yield f"'{name}' of the {kind} action is {value[name]!r:.60}, expected {_shown(expected)}"
    for name, expected in _OPTIONAL[kind].items():
        if value.get(name) is not None and not _fits(value[name], expected):
            yield f"'{name}' of the {kind} action is {value[name]!r:.60}, expected {_shown(expected)}"


def _fits(value: object, expected: type | str) -> bool:
    if isinstance(expected, str):
        return isinstance(value, dict) and all(text is None or isinstance(text, str) for text in value.values())
    if expected is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, expected)


def _shown(expected: type | str) -> str:
    return (
        expected
        if isinstance(expected, str)
        else {str: "a text", int: "a whole number", bool: "true or false"}.get(expected, expected.__name__)
    )


def _members(step: Step, kind: str) -> Breaches:
    for value in step.commit.of(kind):
        for wrong in wrong_members(kind, value):
            yield Broken(wrong, str(value["path"])) if "path" in value else wrong


@RULES.rule("Add File and Remove File")
def add_has_its_members(step: Step) -> Breaches:
    """Members of `add`."""
    return _members(step, "add")


@RULES.rule("Add File and Remove File")
def remove_has_its_members(step: Step) -> Breaches:
    """Members of `remove`; with ``extendedFileMetadata`` two more are there."""
    yield from _members(step, "remove")
    for value in step.commit.of("remove"):
        for name in ("partitionValues", "size") if value.get("extendedFileMetadata") else ():
            if value.get(name) is None:
                yield Broken(f"the remove action says extendedFileMetadata and has no '{name}'", str(value.get("path")))


@RULES.rule("Add CDC File")
def cdc_has_its_members(step: Step) -> Breaches:
    """Members of `cdc`."""
    return _members(step, "cdc")


@RULES.rule("Change Metadata")
def meta_data_has_its_members(step: Step) -> Breaches:
    """Members of `metaData`."""
    return _members(step, "metaData")


@RULES.rule("Protocol Evolution")
def protocol_has_its_members(step: Step) -> Breaches:
    """Members of `protocol`."""
    return _members(step, "protocol")


@RULES.rule("Transaction Identifiers")
def txn_has_its_members(step: Step) -> Breaches:
    """Members of `txn`."""
    return _members(step, "txn")


@RULES.rule("Domain Metadata")
def domain_metadata_has_its_members(step: Step) -> Breaches:
    """Members of `domainMetadata`."""
    return _members(step, "domainMetadata")


@RULES.rule("Deletion Vector Descriptor Schema")
def deletion_vector_has_its_members(step: Step) -> Breaches:
    """Members of a descriptor."""
    for kind in ("add", "remove"):
        for value in step.commit.of(kind):
            vector = value.get("deletionVector")
            for wrong in wrong_members("deletionVector", vector) if isinstance(vector, dict) else ():
                yield Broken(wrong, str(value.get("path")))


@RULES.rule("Actions")
def actions_are_objects(step: Step) -> Breaches:
    """An action's value is an object."""
    for name, value in step.commit.actions:
        if name in _REQUIRED and not isinstance(value, dict):
            yield f"the {name} action is {value!r:.60}, expected an object"
