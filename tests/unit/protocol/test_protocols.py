"""Protocols: the features that they imply, their upgrades, and the features that are refused by name."""

from __future__ import annotations

import pytest

from tahoe.base.exceptions import CorruptTable, InvalidRequest, Unsupported
from tahoe.protocol.actions import Protocol
from tahoe.protocol.protocols import check_readable, check_writable, features_of, upgraded

BASE = Protocol(1, 2)


def test_version_numbers_imply_the_legacy_features():
    assert features_of(BASE) == {"appendOnly", "invariants"}
    assert features_of(Protocol(1, 4)) == {"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"}
    assert "columnMapping" in features_of(Protocol(2, 5))
    assert "columnMapping" not in features_of(Protocol(1, 5))


def test_a_protocol_that_supports_the_feature_is_unchanged():
    protocol = Protocol(3, 7, frozenset({"deletionVectors"}), frozenset({"deletionVectors", "appendOnly"}))
    assert upgraded(protocol, ["deletionVectors"]) is protocol


def test_a_reader_feature_raises_both_versions_and_keeps_the_legacy_features_listed():
    raised = upgraded(BASE, ["deletionVectors"])
    assert (raised.min_reader_version, raised.min_writer_version) == (3, 7)
    assert raised.reader_features == {"deletionVectors"}
    assert raised.writer_features == {"deletionVectors", "appendOnly", "invariants"}


def test_a_writer_feature_leaves_the_reader_version_alone():
    raised = upgraded(BASE, ["inCommitTimestamp"])
    assert (raised.min_reader_version, raised.min_writer_version) == (1, 7)
    assert raised.reader_features is None


def test_required_features_come_with_a_feature():
    raised = upgraded(BASE, ["icebergCompatV2"])
    assert {"icebergCompatV2", "columnMapping"} <= features_of(raised)
    assert (raised.min_reader_version, raised.min_writer_version) == (2, 7)


def test_legacy_features_of_one_version_are_written_as_version_numbers():
    every = ["checkConstraints", "changeDataFeed", "generatedColumns"]
    assert upgraded(BASE, every) == Protocol(1, 4)


def test_upgrading_never_loses_a_feature():
    protocol = BASE
    for name in ("columnMapping", "deletionVectors", "icebergCompatV2", "timestampNtz"):
        before = features_of(protocol)
        protocol = upgraded(protocol, [name])
        assert before | {name} <= features_of(protocol)
        check_readable(protocol, "t")


def test_an_unknown_feature_cannot_be_asked_for():
    with pytest.raises(InvalidRequest, match="no table feature 'timeTurner'"):
        upgraded(BASE, ["timeTurner"])


@pytest.mark.parametrize("name", ["timeTurner", "timestampNanos", "adaptiveMetadata-preview"])
def test_a_reader_feature_that_we_lack_is_refused_by_name(name):
    protocol = Protocol(3, 7, frozenset({name}), frozenset({name}))
    with pytest.raises(Unsupported, match=name) as caught:
        check_readable(protocol, "file:///t")
    assert caught.value.code == "DELTA_UNSUPPORTED_FEATURES_FOR_READ"


@pytest.mark.parametrize("name", ["timeTurner", "icebergWriterCompatV3"])
def test_a_writer_feature_that_we_lack_can_be_read_and_is_refused_for_writes(name):
    protocol = Protocol(1, 7, None, frozenset({name}))
    check_readable(protocol, "t")
    with pytest.raises(Unsupported, match=name) as caught:
        check_writable(protocol, "t")
    assert caught.value.code == "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"


@pytest.mark.parametrize("versions", [(4, 7), (99, 7), (0, 2), (1, 8), (1, 0), (-1, 2)])
def test_version_numbers_outside_the_specification_are_not_written(versions):
    with pytest.raises(Unsupported) as caught:
        check_writable(Protocol(*versions), "t")
    assert caught.value.code == "DELTA_INVALID_PROTOCOL_VERSION"


@pytest.mark.parametrize(
    "protocol",
    [
        Protocol(3, 7, None, frozenset()),
        Protocol(3, 7, frozenset(), None),
        Protocol(2, 7, frozenset({"columnMapping"}), frozenset({"columnMapping"})),
        Protocol(3, 7, frozenset({"deletionVectors"}), frozenset()),
    ],
)
def test_a_protocol_that_contradicts_itself_is_corrupt(protocol):
    with pytest.raises(CorruptTable):
        check_readable(protocol, "t")


@pytest.mark.parametrize("name", ["variantType", "variantType-preview", "variantShredding", "variantShredding-preview"])
def test_a_table_with_variants_is_read_and_written(name):
    protocol = Protocol(3, 7, frozenset({name}), frozenset({name}))
    check_readable(protocol, "file:///t")
    check_writable(protocol, "file:///t")
