"""The layout of a table: true statements about the present, right predictions, and a page that no text of the table can break."""

from __future__ import annotations

import json
import random
from html.parser import HTMLParser

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.exceptions import InvalidRequest
from tahoe.ops.layout.boxes import ColumnLayout
from tahoe.ops.layout.table_layout import TableLayout
from tahoe.store.object_store import open_store

EVIL = "</title><script>alert('x')</script>&\""


def table_of(files: int = 24, count: int = 500, **properties: str) -> Table:
    """Files in order of time, each with every user."""
    url = f"memory://{SYSTEM_CLOCK.uuid()}/t"
    schema = pa.schema(
        {"time": pa.int64(), "user": pa.string(), EVIL: pa.float64(), "none": pa.int64(), "list": pa.list_(pa.int64())}
    )
    properties = {"delta.columnMapping.mode": "name", **properties}
    table = Table.create(url, schema, properties=properties, store=open_store(url))
    chance = random.Random(5)
    for number in range(files):
        columns = {
            "time": pa.array([number * 1000 + chance.randrange(1000) for _ in range(count)], pa.int64()),
            "user": [f"<b>&{chance.randrange(1000):04}" for _ in range(count)],
            EVIL: [chance.random() for _ in range(count)],
            "none": pa.nulls(count, pa.int64()),
            "list": pa.array([[]] * count, pa.list_(pa.int64())),
        }
        table.append(pa.table(columns, schema))
    return table


def column(layout: TableLayout, name: str) -> ColumnLayout:
    return next(item for item in layout.columns if item.name == name)


def test_it_shows_how_well_each_column_is_clustered() -> None:
    table = table_of()
    layout = table.layout()
    assert [item.name for item in layout.columns] == ["time", "user", f"`{EVIL}`", "none"]
    time, user = column(layout, "time"), column(layout, "user")
    assert time.now is not None
    assert user.now is not None
    assert 1 <= time.now.point_files < 1.2
    assert 2 <= time.now.range_files < 5
    assert user.now.point_files > 20
    assert user.now.point_bytes <= layout.size
    assert column(layout, "none").now is None
    assert "nothing" not in str(layout)
    # Packed to one file, everything is in it.
    assert time.then is not None
    assert time.then.point_files == 1
    assert len(layout.after) == 1


def test_predicted_results_come_about() -> None:
    table = table_of(files=32)
    keys, target = ["time", "user"], sum(table.files()["size"].to_pylist()) // 32
    before = table.layout(keys, target_file_size=target)
    table.optimize(zorder_by=keys, target_file_size=target)
    after = table.layout(keys, target_file_size=target)
    assert abs(len(before.after) - len(after.before)) <= 3
    for name in keys:
        said, came = column(before, name).then, column(after, name).now
        assert said is not None
        assert came is not None
        assert said.point_files == pytest.approx(came.point_files, rel=0.5)
        assert said.range_files == pytest.approx(came.range_files, rel=0.5)
    assert column(before, "user").is_key


def test_a_clustered_table_is_asked_for_its_own_columns() -> None:
    table = table_of()
    table.cluster_by(["user"])
    layout = table.layout()
    assert [item.name for item in layout.columns if item.is_key] == ["user"]
    table.optimize()
    assert table.layout().gain() == "OPTIMIZE would leave all as it is."


class Page(HTMLParser):
    """The elements of a page, and their references."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.titles: list[str] = []
        self.references: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.references += [str(value) for name, value in attrs if name in ("src", "href", "xlink:href", "onload")]

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] == "title":
            self.titles.append(data)


def test_the_page_is_self_contained_and_escapes_texts_of_the_table() -> None:
    page = Page()
    table = table_of()
    page.feed(table.layout(["time", "user"], axes=["user", f"`{EVIL}`"]).to_html())
    assert page.references == []
    assert "script" not in page.tags
    assert page.tags.count("svg") == 2
    assert page.tags.count("rect") >= 2 + 24 + 1
    assert any(EVIL in title for title in page.titles)
    html = table.layout()._repr_html_()
    assert "<script" not in html
    assert "http" not in html


def test_the_json_has_every_column() -> None:
    value = json.loads(json.dumps(table_of().layout(["time"]).to_json_value()))
    assert value["files"] == 24
    assert value["optimize"]["clusters"] is True
    assert value["columns"][0]["now"].keys() == {"pointFiles", "pointBytes", "rangeFiles", "rangeBytes", "deepest"}
    assert value["columns"][3] == {"name": "none", "isKey": False, "now": None, "then": None}


def test_files_without_bounds_are_read_by_every_predicate() -> None:
    table = table_of(files=6)
    table.set_properties({"delta.dataSkippingStatsColumns": "user"})
    table.append(table.to_arrow().slice(0, 10))
    table.set_properties({"delta.dataSkippingStatsColumns": "user,time"})
    time = column(table.layout(), "time").now
    assert time is not None
    assert time.point_files >= 2


def test_a_column_that_has_no_statistics_is_reported() -> None:
    with pytest.raises(InvalidRequest, match="list"):
        table_of(files=1).layout(axes=["list"])
    with pytest.raises(InvalidRequest, match="no statistics of any column"):
        table_of(1, **{"delta.dataSkippingNumIndexedCols": "0"}).layout()


def test_an_empty_table_has_a_layout() -> None:
    layout = table_of(files=0).layout()
    assert layout.columns[0].now is None
    assert "no values" in str(layout)
    assert "svg" in layout.to_html()
