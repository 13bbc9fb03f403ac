"""The options of `tahoe serve`, which are checked before anything listens; tests/interop starts the server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tahoe.cli.serve import conversion_progress
from tests.unit.base.test_progress import terminal
from tests.unit.cli.test_main import run_main


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--cache", "beside"], "--cache needs --all"),
        (["--port", "70000"], "--port takes a number from 0 to 65535, not 70000"),
        (["--wait", "-1"], "--wait takes a number at least 0, not -1.0"),
        (["--connections", "0"], "--connections takes a number at least 1, not 0"),
        (["--connections-of-a-peer", "0"], "--connections-of-a-peer takes a number at least 1, not 0"),
        (["--host", "0.0.0.0"], "set a token"),
        (["--write-token", "w"], "--write-token needs --writable"),
        (["--writable", "--write-token", " "], "The token is empty"),
        (["--namespace-tokens", "absent.toml"], "The file absent.toml of --namespace-tokens cannot be read"),
        (["--namespace-tokens", __file__], "is no TOML file"),
        (["--writable", "--token", "r"], "set another for writing in the variable TAHOE_WRITE_TOKEN"),
    ],
)
def test_a_wrong_option_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    monkeypatch.delenv("TAHOE_TOKEN", raising=False)
    monkeypatch.delenv("TAHOE_WRITE_TOKEN", raising=False)
    code, message = run_main(monkeypatch, capsys, "serve", "--iceberg", str(tmp_path), *words)
    assert code == 2
    assert sentence in message


def test_a_token_for_writing_in_a_namespace_needs_a_writable_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "tokens.toml"
    file.write_text('[[token]]\nnamespace = "sales"\ntoken = "s3cret"\nwrites = true\n')
    code, message = run_main(monkeypatch, capsys, "serve", "--iceberg", str(tmp_path), "--namespace-tokens", str(file))
    assert (code, "which needs --writable" in message, "s3cret" in message) == (2, True, False)


def test_metadata_of_tables_in_an_object_store_needs_a_folder_that_clients_can_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, message = run_main(monkeypatch, capsys, "serve", "--iceberg", "s3://bucket/warehouse", "--all")
    assert (code, "--all needs --cache" in message) == (2, True)


def test_the_progress_of_a_conversion_names_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tahoe.base.progress.PATIENCE_MS", 0)
    console, text = terminal()
    with conversion_progress("file:///warehouse/sales/orders", console=console) as progress:
        progress("files converted", 20, 300)
    assert "orders: files converted" in text.getvalue() and "20/300" in text.getvalue()
