"""Drawn conditions evaluate as their text says, and drawn MERGEs are valid SQL."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tahoe.expr.compute.evaluate import evaluate
from tahoe.expr.row_condition import row_condition
from tahoe.schema.arrow import from_arrow_schema
from tahoe.testing.row_model import NOTHING, SCHEMA, Condition, Merge, Rows, arrow
from tahoe.testing.row_strategies import conditions, merges, rows_of_keys, some_rows, with_keys

FEW = settings(max_examples=25)


def answers(condition: Condition, rows: Rows) -> list[bool | None]:
    return [condition.holds(row, NOTHING) for row in rows]


@FEW
@given(conditions(), some_rows(1))
def test_the_text_and_the_function_of_a_condition_agree(condition: Condition, rows: Rows) -> None:
    tree = row_condition(condition.text, from_arrow_schema(SCHEMA)).predicate
    said = evaluate(tree, arrow(rows)).to_pylist()
    # A condition that the tree cannot represent is widened: it may be true where the condition is not, and never the other way round.
    assert all(
        parsed_value is True for parsed_value, expected in zip(said, answers(condition, rows), strict=True) if expected is True
    )


@FEW
@given(
    st.lists(st.integers(100, 110), min_size=1, unique=True).flatmap(
        lambda keys: st.tuples(st.just(keys), rows_of_keys(st.sampled_from(keys)))
    )
)
def test_rows_of_keys_have_at_least_one_key_and_no_duplicates(drawn: tuple[list[int], Rows]) -> None:
    keys, rows = drawn
    named = [row[0] for row in rows if row[0] is not None and row[0] >= 100]
    assert named and set(named) <= set(keys) and len(set(named)) == len(named)


@FEW
@given(with_keys(st.just(100)))
def test_a_condition_with_keys_is_never_true_for_others(condition: Condition) -> None:
    assert condition.holds((99, "a", 1), NOTHING) is not True


@FEW
@given(merges())
def test_only_the_last_clause_of_a_kind_lacks_a_condition(merge: Merge) -> None:
    assert merge.clauses
    for kind in ("matched", "not matched", "by source"):
        of_kind = [clause for clause in merge.clauses if clause.kind == kind]
        assert all(clause.condition is not None for clause in of_kind[:-1])
