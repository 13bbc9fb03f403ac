"""The rules of a table that the server evaluates for the rows of a stream, as an option of the stream's writer.

client: rows with columns of flags, and this option ─► plan ─► server ─► writer: the same rules as the table's? ─► tasks test the flags
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from tahoe.base.exceptions import MetadataChangedException
from tahoe.protocol.config import TableConfig
from tahoe.protocol.engine_rules import EngineRules, engine_rules_of, without_rules
from tahoe.spark.executors.data_source_tasks import RowCheck


@dataclass(frozen=True, slots=True)
class EvaluatedRules:
    """The rules that the server evaluates.

    Args:
        rules: all of the table that only Spark can evaluate.
        checks: of the columns of flags.
    """

    rules: EngineRules = field(default_factory=EngineRules)
    checks: tuple[RowCheck, ...] = ()

    @classmethod
    def of_option(cls, text: str) -> EvaluatedRules:
        """Return the rules in the value of the option; none if it is not set."""
        if not text:
            return cls()
        stated = json.loads(text)
        checks = (RowCheck(column, name, rule, tuple(reads)) for column, name, rule, reads in stated["checks"])
        return cls(EngineRules(stated["constraints"], stated["generated"]), tuple(checks))

    def to_option(self) -> str:
        """Return the value of the option."""
        checks = [[check.column, check.name, check.text, check.reads] for check in self.checks]
        return json.dumps({"constraints": self.rules.constraints, "generated": self.rules.generated, "checks": checks})

    def left_by(self, config: TableConfig) -> TableConfig:
        """Return the configuration without the evaluated rules. Raises `MetadataChangedException` if the table has other ones now."""
        if not (self.rules.constraints or self.rules.generated):
            return config
        if engine_rules_of(config) != self.rules:
            raise MetadataChangedException(
                f"A constraint or generated column of table {config.table} was changed while the query started. Start it again.",
                table=config.table,
            )
        return without_rules(config, self.rules.constraints, self.rules.generated)
