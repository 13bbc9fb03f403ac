"""The rules that only Spark can evaluate are found by name, and taken out of a configuration."""

from __future__ import annotations

import json

from tahoe.protocol.actions import Metadata, Protocol
from tahoe.protocol.config import TableConfig
from tahoe.protocol.constraints import constraints_of
from tahoe.protocol.engine_rules import EngineRules, engine_rules_of, without_rules

SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": "w", "type": "string", "nullable": True, "metadata": {}},
        {"name": "h", "type": "string", "nullable": True, "metadata": {"delta.generationExpression": "hex(w)", "comment": "c"}},
        {"name": "u", "type": "string", "nullable": True, "metadata": {"delta.generationExpression": "upper(w)"}},
    ],
}
CONFIG = TableConfig(
    Protocol(1, 7, None, ("checkConstraints", "generatedColumns")),
    Metadata(
        "id",
        json.dumps(SCHEMA),
        configuration={"delta.constraints.a": "soundex(w) <> ''", "delta.constraints.b": "length(w) > 0"},
    ),
    "memory://t",
)


def test_rules_are_listed_by_name_with_their_texts() -> None:
    assert engine_rules_of(CONFIG) == EngineRules({"delta.constraints.a": "soundex(w) <> ''"}, {"h": "hex(w)"})


def test_rules_are_taken_out() -> None:
    rules = engine_rules_of(CONFIG)
    left = without_rules(CONFIG, rules.constraints, rules.generated)
    assert engine_rules_of(left) == EngineRules()
    assert [check.name for check in constraints_of(left).checks] == ["b"]
    assert [rule.column.name for rule in constraints_of(left).generated] == ["u"]
    assert left.schema.field("h").metadata == {"comment": "c"}
    assert without_rules(CONFIG, (), ()) == CONFIG
