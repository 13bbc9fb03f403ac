"""What all tests share: Hypothesis profiles, and the mark of the tests that start Spark."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

HERE = Path(__file__).parent

settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.register_profile("nightly", deadline=None, max_examples=2_000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lies below tests/spark, so that no file there can forget to."""
    for item in items:
        if item.path.is_relative_to(HERE / "spark"):
            item.add_marker("spark")
