"""Output for programs and for people, without a terminal."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime

import pytest

from tahoe.cli.shell.output import print_json, print_pairs, print_table


def test_json_is_one_line_with_times_and_sorted_sets(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"at": datetime(2024, 1, 2, tzinfo=UTC), "day": date(2024, 1, 2), "set": {"b", "a"}, "text": "ü"})
    said = capsys.readouterr().out
    assert said.count("\n") == 1 and "ü" in said
    assert json.loads(said) == {"at": "2024-01-02T00:00:00+00:00", "day": "2024-01-02", "set": ["a", "b"], "text": "ü"}
    with pytest.raises(TypeError, match="object cannot be converted to JSON"):
        print_json(object())


def test_pairs_are_one_per_line_and_text_is_not_markup(capsys: pytest.CaptureFixture[str]) -> None:
    print_pairs([("name", "[red]value[/red]"), ("other", "2")])
    assert [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()] == [
        ["name", "[red]value[/red]"],
        ["other", "2"],
    ]


def test_nothing_is_cut_without_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    path = "part-" + "x" * 150
    print_table([("path", "left"), ("size", "right")], [(path, "12")])
    folded = capsys.readouterr().out
    assert max(map(len, folded.splitlines())) <= 80 and "".join(folded.split()).count("x") == 150
    print_table([("path", "left"), ("size", "right")], [(path, "12")], wide=True)
    assert any(path in line and "12" in line for line in capsys.readouterr().out.splitlines())


@pytest.mark.parametrize(("columns", "width"), [("70", 70), ("5", 60), ("many", 80), ("٣٠٠", 80)])
def test_the_width_is_columns_if_it_is_a_number(
    columns: str, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    print_table([("text", "left")], [("y" * 400,)])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= width
