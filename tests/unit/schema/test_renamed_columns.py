"""Column mapping over the life of a table, without Spark: dropped columns do not come back, and renamed columns keep their values."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tests.renamed_columns import EXPECTED, RENAMED, STARTS, renamed_table

each_start = pytest.mark.parametrize("mode", STARTS.values(), ids=STARTS)


@each_start
def test_rows_of_all_files_are_shown_by_the_names_of_today(tmp_path, mode):
    table = renamed_table(str(tmp_path / "t"), mode)
    assert table.to_arrow().sort_by("id").to_pylist() == EXPECTED
    # The statistics of older files are those of columns that went: no row may be found, or missed, by them.
    assert table.to_arrow(filter=f"a = 10 OR `{RENAMED}` = 10 OR s.y = 'v'").num_rows == 0
    assert table.to_arrow(filter=f"a IS NULL AND `{RENAMED}` IS NULL AND s.y IS NULL").num_rows == 3
    assert table.to_arrow(filter="s.`X,1` = 2 AND `P art=1` = 'p0'").column("id").to_pylist() == [2]
    assert len(table.files(filter="`P art=1` = 'p1'")) == 1
    assert table.to_arrow(version=1).sort_by("id").column("a").to_pylist() == [0, 10, 20, 30]


@each_start
def test_rows_are_changed_and_laid_out_again(tmp_path, mode):
    table = renamed_table(str(tmp_path / "t"), mode)
    table.update({"a": "7", f"`{RENAMED}`": "id + 1", "s.y": "'new'"}, "`P art=1` = 'p1'")
    table.append(pa.table({"id": [9], RENAMED: [90], "P art=1": ["p0"]}))
    source = pa.table({"id": [2, 10], "a": [22, 100]})
    table.merge(source, "source.id = target.id").when_matched_update({"a": "source.a"}).when_not_matched_insert(
        {"id": "source.id", "a": "source.a"}
    ).execute()
    table.optimize()
    table.purge()
    shown = {row["id"]: (row["a"], row[RENAMED]) for row in table.to_arrow().to_pylist()}
    assert shown == {0: (None, None), 1: (7, 2), 2: (22, None), 9: (None, 90), 10: (100, None)}
    assert not table.check(deep=True)


@each_start
def test_the_feed_is_shown_on_either_side_of_a_change_of_names_and_refused_across(tmp_path, mode):
    table = renamed_table(str(tmp_path / "t"), mode)
    renamed = table.version()
    assert table.changes(1, 1).num_rows == 4
    with pytest.raises(Unsupported) as error:
        table.changes(1)
    assert error.value.code == "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE"
    table.update({"a": "7"}, "id = 1")
    assert [row["a"] for row in table.changes(renamed + 1).sort_by("_change_type").to_pylist()] == [7, None]


@pytest.mark.parametrize(("mode", "other"), [("name", "id"), ("id", "name"), (None, "id")])
def test_other_changes_of_the_mode_are_refused_by_name(tmp_path, mode, other):
    table = renamed_table(str(tmp_path / "t"), mode or "name")
    if mode is None:
        table = table.create(str(tmp_path / "u"), pa.schema([("a", pa.int64())]))
    with pytest.raises(InvalidRequest) as error:
        table.set_properties({"delta.columnMapping.mode": other})
    assert error.value.code == "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"
