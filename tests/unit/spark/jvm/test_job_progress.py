"""Whether Spark's jobs are shown on a bar that a command has opened already."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from tahoe.base.progress import Reported, silent
from tahoe.ops.copies.clone_source import FileCopy
from tahoe.spark.copies import clone
from tahoe.spark.jvm.job_progress import STEP, jobs_shown_by
from tahoe.store.local_store import LocalLogStore

_PATIENCE_SECONDS = 60


class Seen(Reported):
    """Records the reports, and the first of them as an event."""

    def __init__(self) -> None:
        super().__init__()
        self.first = Event()

    def __call__(self, step: str, done: int, total: int | None = None) -> None:
        super().__call__(step, done, total)
        self.first.set()


def session(**settings: str) -> Any:
    """A session whose only stage has two of four tasks done."""
    stage = SimpleNamespace(stageId=1, numCompletedTasks=2, numTasks=4)
    tracker = SimpleNamespace(getActiveStageIds=lambda: [1], getStageInfo=lambda number: stage)
    context = SimpleNamespace(_conf=settings, statusTracker=lambda: tracker)
    return SimpleNamespace(sparkContext=context, _jsparkSession=None)  # the attribute of a session with a JVM


def test_tasks_are_reported_to_the_bar_of_the_command() -> None:
    seen = Seen()
    with jobs_shown_by(session(), seen):
        assert seen.first.wait(_PATIENCE_SECONDS)
    assert set(seen.reports) == {(STEP, 2, 4)}


@pytest.mark.parametrize("setting", ["true", "false"])
def test_nothing_is_reported_if_the_setting_of_spark_s_own_bar_is_set(setting: str) -> None:
    asked = session(**{"spark.ui.showConsoleProgress": setting})
    asked.sparkContext.statusTracker = None  # a call would fail
    with jobs_shown_by(asked, seen := Seen()):
        pass
    assert seen.reports == []


def test_a_bar_that_is_not_displayed_and_spark_connect_do_not_ask_spark() -> None:
    without_context: Any = SimpleNamespace()
    for asked, progress in ((SimpleNamespace(_jsparkSession=None), silent), (without_context, Seen())):
        with jobs_shown_by(asked, progress):  # type: ignore[arg-type]
            pass


def test_a_clone_by_tasks_reports_them_on_its_own_bar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Seen()

    def run(*arguments: object) -> list[bool]:
        assert seen.first.wait(_PATIENCE_SECONDS)
        return [False]

    monkeypatch.setattr(clone, "run_on", run)
    monkeypatch.setattr(clone, "raised", lambda answers: answers)
    source, target = LocalLogStore(tmp_path / "a"), LocalLogStore(tmp_path / "b")
    copies = [FileCopy(f"{n}", f"{n}", clone._LITTLE) for n in range(clone._FEW + 1)]
    assert clone._copied(session(), source, target, copies, seen) == 0
    assert (STEP, 2, 4) in seen.reports
