"""Charts as SVG."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from tahoe.ops.reports.charts import Bar, Point, bars, line, timeline


def test_bars_are_proportional() -> None:
    svg = ElementTree.fromstring(bars("t", [Bar("a<b", 10, "ten"), Bar("c", 5, "five"), Bar("d", 0, "none")]))[0]
    assert svg.attrib["aria-label"] == "t: a<b ten; c five; d none"
    widths = [float(rect.attrib["width"]) for rect in svg.iter("rect")]
    assert widths[0] == 2 * widths[1]
    assert widths[2] == 1.0
    assert [text.text for text in svg.iter("text")][:2] == ["a<b", "ten"]


def test_a_line_spans_the_versions_and_may_have_one_point() -> None:
    svg = ElementTree.fromstring(line("t", [(3, 0.0, "0"), (5, 10.0, "10"), (7, 5.0, "5")]))[0]
    assert svg.attrib["aria-label"] == "t: 0 at version 3, 5 at version 7"
    xs = [float(circle.attrib["cx"]) for circle in svg.iter("circle")]
    assert xs[1] - xs[0] == xs[2] - xs[1]
    ElementTree.fromstring(line("t", [(3, 0.0, "0")]))
    assert line("t", []) == ""


def test_a_timeline_has_a_lane_for_each_operation_and_a_legend() -> None:
    html = timeline("t", [Point(0, "WRITE", "a", "x"), Point(10, "MERGE", "<b>", "y"), Point(20, "WRITE", "a", "z")])
    svg = ElementTree.fromstring(html[: html.index("<p")])
    circles = list(svg.iter("circle"))
    assert circles[0].attrib["cy"] == circles[2].attrib["cy"] != circles[1].attrib["cy"]
    assert "&lt;b&gt;" in html
    assert timeline("t", []) == ""
