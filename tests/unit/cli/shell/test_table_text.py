"""Tables as text: their width on a terminal, and without one."""

from __future__ import annotations

import pytest

from tahoe.cli.shell.output import Format, Output
from tahoe.cli.shell.table_text import fitted

TABLE = Output(Format.TABLE)
COLUMNS = (("path", "left"), ("size", "right"), ("note", "left"))


def test_a_table_that_fits_is_shown_completely() -> None:
    shown = fitted(COLUMNS, [("a", "1,234", "b")], 40)
    assert (shown.columns, shown.widths, shown.is_shortened) == (COLUMNS, (4, 5, 4), False)


def test_the_widest_text_is_shortened_and_numbers_never() -> None:
    shown = fitted(COLUMNS, [("p" * 100, "9" * 20, "short note")], 60)
    assert (shown.columns, shown.widths, shown.is_shortened) == (COLUMNS, (22, 20, 10), True)


def test_columns_without_space_are_left_out_from_the_right() -> None:
    columns = [(f"column{number}", "left") for number in range(50)]
    shown = fitted(columns, [["x" * 20] * 50], 80)
    assert len(shown.columns) == 7
    assert sum(shown.widths) + 3 * (len(shown.widths) - 1) <= 78


def test_wide_characters_take_two_cells() -> None:
    assert fitted((("名", "left"),), [("名前名前",)], 80).widths == (8,)


def test_one_column_is_always_shown() -> None:
    assert len(fitted(COLUMNS, [("p" * 100, "9" * 200, "n")], 10).columns) == 1


def test_nothing_is_cut_without_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    path = "part-" + "x" * 150
    TABLE.table([("path", "left"), ("size", "right")], [(path, "12")])
    folded = capsys.readouterr().out
    assert max(map(len, folded.splitlines())) <= 80 and "".join(folded.split()).count("x") == 150
    TABLE.table([("path", "left"), ("size", "right")], [(path, "12")], names=True)
    assert any(path in line and "12" in line for line in capsys.readouterr().out.splitlines())


def test_wide_shows_a_row_on_one_line_of_any_length(capsys: pytest.CaptureFixture[str]) -> None:
    Output(Format.TABLE, wide=True).table([("text", "left")], [("y " * 2000,)])
    assert any(line.count("y") == 2000 for line in capsys.readouterr().out.splitlines())


@pytest.mark.parametrize(("columns", "width"), [("70", 70), ("5", 60), ("many", 80), ("٣٠٠", 80)])
def test_the_width_is_columns_if_it_is_a_number(
    columns: str, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    TABLE.table([("text", "left")], [("y" * 400,)])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= width


def test_pairs_are_one_per_line_and_text_is_not_markup(capsys: pytest.CaptureFixture[str]) -> None:
    TABLE.pairs([("name", "[red]value[/red]"), ("other", "2")])
    assert [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()] == [
        ["name", "[red]value[/red]"],
        ["other", "2"],
    ]
