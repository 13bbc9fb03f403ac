from __future__ import annotations

from tahoe.cli.examination.findings import Finding, State


def test_an_examination_that_did_not_run_is_no_success_and_has_a_reason() -> None:
    finding = Finding("catalogs", State.NOT_EXAMINED, "The table could not be read.", "Solve that problem first.")
    assert finding.state != State.OK
    assert str(finding.state) == "not examined"
