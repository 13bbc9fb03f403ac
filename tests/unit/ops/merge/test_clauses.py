"""The rules among the clauses of a MERGE, and the builder."""

from __future__ import annotations

import pytest

from tahoe.base.exceptions import InvalidRequest
from tahoe.ops.merge.clauses import Action, Clause, Kind, check_clauses, may_match_often, of_kind, only_inserts

DELETE = Clause(Kind.MATCHED, Action.DELETE)
INSERT = Clause(Kind.NOT_MATCHED, Action.INSERT, None, None)
SOME = Clause(Kind.MATCHED, Action.UPDATE, "target.a = 1", None)


def test_a_clause_without_values_is_a_star_unless_it_deletes() -> None:
    assert SOME.is_star and INSERT.is_star and not DELETE.is_star
    assert not Clause(Kind.MATCHED, Action.UPDATE, None, (("a", "1"),)).is_star


def test_clauses_are_found_by_kind_in_their_order() -> None:
    assert of_kind([SOME, INSERT, DELETE], Kind.MATCHED) == [SOME, DELETE]
    assert Kind.NOT_MATCHED_BY_SOURCE.words == "NOT MATCHED BY SOURCE"


def test_only_a_merge_of_inserts_leaves_the_targets_rows_alone() -> None:
    assert only_inserts([INSERT]) and not only_inserts([INSERT, DELETE])


def test_many_matches_do_not_matter_where_all_that_is_matched_goes() -> None:
    assert may_match_often([DELETE, INSERT])
    assert not may_match_often([SOME, DELETE])


def test_no_clause_at_all_and_a_clause_behind_one_without_condition_are_refused() -> None:
    check_clauses([SOME, DELETE, INSERT])
    with pytest.raises(InvalidRequest) as caught:
        check_clauses([])
    assert caught.value.code == "DELTA_MERGE_MISSING_WHEN"
    with pytest.raises(InvalidRequest) as caught:
        check_clauses([DELETE, SOME])
    assert caught.value.code == "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION"
