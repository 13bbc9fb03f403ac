"""A table that went through a type change which nobody can undo when reading is refused as a whole."""

from __future__ import annotations

import json

import pytest

from tahoe.exceptions import Unsupported
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
