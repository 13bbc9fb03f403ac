"""The tests of each maintenance operation: in the state machine, in enumerated crashes, in lost answers, and with UniForm after it.

An empty cell gives its reason. A new operation needs a row here before this test passes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

import pytest

from tahoe.ops import copying, maintenance
from tahoe.testing import table_machine

ROOT = Path(__file__).parents[2]
MACHINE = "tahoe/testing/table_machine.py"
CRASHES = "tests/race/test_crashes.py"
OF_UPKEEP = "tests/race/test_crashes_of_upkeep.py"
ANSWERS = "tests/race/test_lost_answers.py"
OF_ANSWERS = "tests/race/test_lost_answers_of_upkeep.py"
UNIFORM = "tests/interop/test_uniform_after_upkeep.py"


@dataclass(frozen=True, slots=True)
class Held:
    """The test of each: a file, ``::`` and a text in it; or, beginning with ``-``, the reason for none.

    Args:
        crash: who dies before any call to the store, and after any that writes.
        answer: the answer of storage to a write is lost.
    """

    machine: str
    crash: str
    answer: str
    uniform: str


HELD: dict[str, Held] = {
    "checkpoint": Held(
        f"{MACHINE}::def checkpoint",
        f"{CRASHES}::def test_a_crash_while_making_a_v2_checkpoint",
        f"{OF_ANSWERS}::def broken_log",
        f'{UNIFORM}::"V2 checkpoint"',
    ),
    "optimize": Held(
        f"{MACHINE}::def optimize",
        f'{OF_UPKEEP}::"optimize of a clustered table"',
        f'{OF_ANSWERS}::"optimize of a clustered table"',
        f'{UNIFORM}::"OPTIMIZE ZORDER BY"',
    ),
    "auto compaction": Held(
        f"{MACHINE}::def auto_compaction",
        f"{CRASHES}::def test_a_crash_in_the_compaction_after_a_write_leaves_the_write",
        f'{OF_ANSWERS}::"auto compaction of a clustered table"',
        f'{UNIFORM}::"auto compaction"',
    ),
    "cluster_by": Held(
        f"{MACHINE}::def cluster_by", f'{OF_UPKEEP}::"cluster"', f'{OF_ANSWERS}::"cluster"', f'{UNIFORM}::"CLUSTER BY"'
    ),
    "purge": Held(
        f"{MACHINE}::def purge", f'{OF_UPKEEP}::"purge"', f'{OF_ANSWERS}::"purge"', f'{UNIFORM}::"REORG APPLY (PURGE)"'
    ),
    "vacuum": Held(
        f"{MACHINE}::def vacuum",
        "tests/unit/ops/upkeep/test_vacuum.py::def test_whoever_dies_in_it_leaves_a_whole_table",
        f'{OF_ANSWERS}::"vacuum"',
        f'{UNIFORM}::"VACUUM"',
    ),
    "restore": Held(
        f"{MACHINE}::def restore",
        'tests/race/operations.py::"restore"',
        'tests/race/operations.py::"restore"',
        f'{UNIFORM}::"RESTORE"',
    ),
    "fsck": Held(
        "- files that storage has lost are no step of a table's life; a table that is whole has nothing to repair",
        "tests/unit/ops/repair/test_fsck.py::def test_who_dies_leaves_the_table_as_it_was_or_repaired",
        f'{OF_ANSWERS}::"fsck"',
        f'{UNIFORM}::"FSCK REPAIR TABLE"',
    ),
    "compute_statistics": Held(
        f"{MACHINE}::def compute_statistics", f'{OF_UPKEEP}::"statistics"', f'{OF_ANSWERS}::"statistics"', f'{UNIFORM}::"ANALYZE"'
    ),
    "repair_log": Held(
        f"{MACHINE}::def repair_log",
        f"{OF_UPKEEP}::def test_a_crash_in_the_repair_of_a_log",
        f'{OF_ANSWERS}::"repair_log"',
        f'{UNIFORM}::"repair of the log"',
    ),
    "convert_to_delta": Held(
        f"{MACHINE}::def convert",
        f"{OF_ANSWERS}::def test_a_crash_at_any_store_call_of_a_conversion",
        f"{OF_ANSWERS}::def test_one_fault_makes_no_difference_to_a_conversion",
        "tests/interop/test_uniform_after_conversion.py::def test_an_iceberg_table_whose_partitions_are_made_of_a_column",
    ),
    "clone": Held(
        f"{MACHINE}::def clone",
        "tests/unit/ops/copies/test_clone.py::def test_a_clone_that_dies_anywhere",
        f"{OF_ANSWERS}::def test_one_fault_makes_no_difference_to_a_clone",
        f"{UNIFORM}::def test_iceberg_shows_a_clone",
    ),
    "generate": Held(
        "- the lists of files exclude deletion vectors, which the machine's tables have",
        "tests/unit/ops/copies/test_symlink_manifests.py::def test_who_dies_leaves_whole_manifests",
        f'{OF_ANSWERS}::"generate"',
        "- it makes no commit, so there is nothing to convert",
    ),
}
NO_UPKEEP = {
    "MaintainedTable",  # the type of the table
    "layout", "compat",  # they only look
    "set_properties", "unset_properties", "drop_feature",  # docs/design/028
    "allow_shallow_clone",  # one file that nothing else names
}  # fmt: skip


def test_every_operation_stands_here() -> None:
    names = {
        name
        for module in (copying, maintenance)
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    }
    assert names - NO_UPKEEP == set(HELD) - {"auto compaction", "cluster_by"}


@pytest.mark.parametrize("operation", HELD)
def test_the_documented_facts_about_locks_hold(operation: str) -> None:
    for kind in fields(Held):
        said = getattr(HELD[operation], kind.name)
        if said.startswith("- "):
            assert len(said) > 10
            continue
        file, _, text = said.partition("::")
        assert text in (ROOT / file).read_text(encoding="utf-8"), (kind.name, said)


def test_each_rule_of_the_machine_that_is_named_is_one() -> None:
    for content in HELD.values():
        name = content.machine.rpartition("::def ")[2]
        assert content.machine.startswith("- ") or hasattr(table_machine.TableMachine, name), name
