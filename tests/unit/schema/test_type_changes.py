"""A table that went through a type change which nobody can undo when reading is refused as a whole."""

from __future__ import annotations

import json

import pytest

from tahoe.exceptions import CorruptTable, Unsupported
from tahoe.protocol.actions import Metadata, Protocol
from tahoe.protocol.config import TableConfig

FEATURES = frozenset({"typeWidening"})


def config_with(old, new):
    metadata = {"delta.typeChanges": [{"fromType": old, "toType": new}]}
    schema = {"type": "struct", "fields": [{"name": "c", "type": new, "nullable": True, "metadata": metadata}]}
    return TableConfig(Protocol(3, 7, FEATURES, FEATURES), Metadata("id", json.dumps(schema)), "memory://t")


def test_a_widening_of_the_specification_is_readable():
    config_with("integer", "long").ensure_readable()


def test_another_type_change_is_refused_by_the_name_of_column_and_feature():
    with pytest.raises(Unsupported, match=r"'c' was changed from string to long \(feature typeWidening\)"):
        config_with("string", "long").ensure_readable()


@pytest.mark.parametrize(
    ("old", "new"), [("byte", "decimal(4,1)"), ("byte", "decimal(3,0)"), ("short", "decimal(6,1)"), ("integer", "decimal(11,1)")]
)
def test_an_integer_that_became_a_decimal_which_holds_it_is_readable_as_the_preview_of_the_feature_allowed(old, new):
    config_with(old, new).ensure_readable()


@pytest.mark.parametrize(("old", "new"), [("byte", "decimal(3,1)"), ("short", "decimal(4,0)"), ("long", "decimal(18,0)")])
def test_an_integer_that_became_a_decimal_which_does_not_hold_it_is_refused(old, new):
    with pytest.raises(Unsupported, match=f"from {old} to decimal"):
        config_with(old, new).ensure_readable()


@pytest.mark.parametrize("changes", [[{"fromType": "byte"}], ["byte"], {"toType": "long"}, 5])
def test_a_type_change_that_is_not_told_whole_is_damage(changes):
    schema = {
        "type": "struct",
        "fields": [{"name": "c", "type": "long", "nullable": True, "metadata": {"delta.typeChanges": changes}}],
    }
    config = TableConfig(Protocol(3, 7, FEATURES, FEATURES), Metadata("id", json.dumps(schema)), "memory://t")
    with pytest.raises(CorruptTable, match="'c' has a type change"):
        config.ensure_readable()
