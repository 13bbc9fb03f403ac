"""The fields of log records."""

from __future__ import annotations

import logging

import pytest

from tahoe.base.log_fields import about


def test_fields_are_attributes_of_the_record(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("tahoe.test").warning("lost", extra=about("file:///t", 3, files=2))
    (record,) = caplog.records
    assert (vars(record)["table"], vars(record)["version"], vars(record)["files"]) == ("file:///t", 3, 2)


def test_a_record_about_no_version_has_no_such_field() -> None:
    assert about("file:///t") == {"table": "file:///t"}
