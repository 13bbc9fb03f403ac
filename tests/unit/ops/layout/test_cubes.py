"""Which files of a clustered table OPTIMIZE takes, as the reference does."""

from __future__ import annotations

from dataclasses import replace

from tahoe.ops.layout.cubes import CubeRules, plan_cubes
from tahoe.protocol.actions import AddFile, DeletionVectorDescriptor
from tahoe.protocol.clustering import Cube, with_cube

RULES = CubeRules(("a", "b"), least=100, target=150)


def file(name: str, size: int = 10, cube: str | None = None, columns: tuple[str, ...] = ("a", "b"), dead: int = 0) -> AddFile:
    vector = DeletionVectorDescriptor("u", "x" * 20, 34, dead, 1) if dead else None
    add = AddFile(name, {}, size, 0, False, '{"numRecords":100}', deletion_vector=vector)
    return add if cube is None else with_cube([add], Cube(cube, columns))[0]


def bins(adds: list[AddFile], rules: CubeRules = RULES) -> list[set[str]]:
    return [{add.path for add in item.adds} for item in plan_cubes(adds, rules).bins]


def test_new_files_become_a_cube() -> None:
    assert bins([file("n"), file("m")]) == [{"n", "m"}]
    assert bins([file("n")]) == [{"n"}]


def test_one_small_cube_is_left_alone_until_something_new_comes() -> None:
    cube = [file("x", cube="1"), file("y", cube="1")]
    assert bins(cube) == []
    assert bins([*cube, file("n")]) == [{"x", "y", "n"}]


def test_small_cubes_are_joined_and_large_ones_stay() -> None:
    large = [file("l1", 60, "large"), file("l2", 40, "large")]
    assert bins([*large, file("x", cube="1"), file("y", cube="2")]) == [{"x", "y"}]
    assert bins([*large, file("n")]) == [{"n"}]
    # Of the rest, one small cube.
    assert bins([*large, file("x", cube="1")]) == []


def test_a_bin_is_as_large_as_a_cube_may_be() -> None:
    assert [len(item) for item in bins([file(f"n{i}", 50) for i in range(7)])] == [3, 3, 1]
    assert [len(item) for item in bins([file(f"n{i}", 50) for i in range(4)], replace(RULES, least=300))] == [4]


def test_files_clustered_otherwise_wait_for_full() -> None:
    other = file("o", cube="1", columns=("a",))
    foreign = replace(file("f"), clustering_provider="somebody")
    assert bins([other, foreign]) == []
    assert bins([other, foreign, file("n")]) == [{"n"}]
    full = replace(RULES, is_full=True)
    assert bins([other, foreign, file("n")], full) == [{"n", "o", "f"}]
    # Without such files, FULL gives the result of OPTIMIZE.
    assert bins([file("x", cube="1"), file("l", 100, "large")], full) == []


def test_dead_rows_count_neither_for_the_size_of_a_cube_nor_as_clustered() -> None:
    assert bins([file("x", 105, "1", dead=5), file("y", cube="2")]) == [{"x", "y"}]  # 99 living bytes
    large = [file("l1", 100, "large"), file("l2", 40, "large", dead=6)]
    assert bins(large) == [{"l2"}]
    assert bins([file("x", cube="1"), file("y", cube="1", dead=6)]) == [{"x", "y"}]


def test_a_plan_counts_files_by_cube() -> None:
    adds = [file("x", 10, "1"), file("y", 20, "2"), file("o", 5, "3", ("c",)), file("n", 7)]
    plan = plan_cubes(adds, RULES)
    assert (plan.cube_files, plan.other_files, plan.cubes) == ((2, 30), (2, 12), 2)
    full = plan_cubes(adds, replace(RULES, is_full=True))
    assert (full.cube_files, full.other_files, full.cubes) == ((3, 35), (1, 7), 3)
