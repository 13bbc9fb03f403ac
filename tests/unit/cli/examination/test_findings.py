from __future__ import annotations

from tahoe.cli.examination.findings import Finding, State


def test_what_was_not_examined_is_no_success_and_says_why() -> None:
    finding = Finding("catalogs", State.NOT_EXAMINED, "The table could not be read.", "Solve that problem first.")
    assert finding.state != State.OK
    assert str(finding.state) == "not examined"
