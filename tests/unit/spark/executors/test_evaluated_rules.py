"""The option that tells a stream's writer which rules the server evaluates."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tahoe.base.exceptions import MetadataChangedException
from tahoe.protocol.actions import Metadata, Protocol
from tahoe.protocol.config import TableConfig
from tahoe.protocol.engine_rules import EngineRules, engine_rules_of
from tahoe.spark.executors.data_source_tasks import RowCheck
from tahoe.spark.executors.evaluated_rules import EvaluatedRules
from tahoe.spark.portable.data_source_options import EVALUATED_RULES, option_of, without_own

SCHEMA = json.dumps({"type": "struct", "fields": [{"name": "w", "type": "string", "nullable": True, "metadata": {}}]})
METADATA = Metadata("id", SCHEMA, configuration={"delta.constraints.a": "soundex(w) <> ''"})
CONFIG = TableConfig(Protocol(1, 3), METADATA, "memory://t")
EVALUATED = EvaluatedRules(engine_rules_of(CONFIG), (RowCheck("__tahoe_check_0", "a", "soundex(w) <> ''", ("w",)),))


def test_the_option_has_the_rules_and_is_no_option_of_the_sink() -> None:
    options = {EVALUATED_RULES.upper(): EVALUATED.to_option(), "mergeSchema": "true"}
    assert EvaluatedRules.of_option(option_of(options, EVALUATED_RULES, "")) == EVALUATED
    assert EvaluatedRules.of_option("") == EvaluatedRules()
    assert without_own(options) == {"mergeSchema": "true"}


def test_the_tasks_do_not_evaluate_them() -> None:
    assert engine_rules_of(EVALUATED.left_by(CONFIG)) == EngineRules()
    assert EvaluatedRules().left_by(CONFIG) == CONFIG


@pytest.mark.parametrize(
    "configuration", [{}, {"delta.constraints.a": "soundex(w) <> 'A'"}, {"delta.constraints.b": "soundex(w) <> ''"}]
)
def test_other_rules_of_the_table_are_an_error(configuration: dict[str, str]) -> None:
    config = replace(CONFIG, metadata=replace(METADATA, configuration=configuration))
    with pytest.raises(MetadataChangedException, match="Start it again"):
        EVALUATED.left_by(config)
