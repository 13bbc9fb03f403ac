"""The rules of a table that only Spark can evaluate: CHECK constraints and generated columns with an `EngineText`. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from tahoe.expr.tree.expression import engine_text_in
from tahoe.protocol.config import TableConfig
from tahoe.protocol.constraints import constraints_of
from tahoe.protocol.properties import CONSTRAINT_PREFIX
from tahoe.schema.types import GENERATION_EXPRESSION, StructType


@dataclass(frozen=True, slots=True)
class EngineRules:
    """The rules by their names, with the texts that define them.

    Args:
        constraints: by the key of the table's property; for an invariant of a column, which is no property, by its name.
        generated: by the name of the column.
    """

    constraints: Mapping[str, str] = field(default_factory=dict)
    generated: Mapping[str, str] = field(default_factory=dict)


def engine_rules_of(config: TableConfig) -> EngineRules:
    """Return the rules of a table that only Spark can evaluate; raises as `tahoe.protocol.constraints.constraints_of`."""
    constraints = constraints_of(config)
    return EngineRules(
        {f"{CONSTRAINT_PREFIX}{rule.name}": rule.text for rule in constraints.checks if engine_text_in(rule.condition)},
        {rule.column.name: rule.text for rule in constraints.generated if engine_text_in(rule.value)},
    )


def without_rules(config: TableConfig, constraints: Collection[str], generated: Collection[str]) -> TableConfig:
    """Return the configuration without some rules.

    Args:
        constraints: keys of CHECK constraints.
        generated: names of generated columns, which become plain columns.
    """
    fields = [
        replace(column, metadata={key: value for key, value in column.metadata.items() if key != GENERATION_EXPRESSION})
        if column.name in generated
        else column
        for column in config.schema
    ]
    configuration = {key: text for key, text in config.metadata.configuration.items() if key not in constraints}
    schema_string = StructType(tuple(fields)).to_json() if generated else config.metadata.schema_string
    return replace(config, metadata=replace(config.metadata, configuration=configuration, schema_string=schema_string))
