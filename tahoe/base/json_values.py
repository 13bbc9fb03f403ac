"""Names for the types of JSON values, as `json` reads and writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object that its owner may change."""
JsonMapping: TypeAlias = Mapping[str, Any]
"""A JSON object that is only read."""
