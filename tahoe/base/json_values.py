"""Names for the types of JSON values, as `json` reads and writes them, and their compact text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object that its owner may change."""
JsonMapping: TypeAlias = Mapping[str, Any]
"""A JSON object that is only read."""


def compact_json(value: object) -> str:
    """Return JSON text without blanks, in which characters beyond ASCII stay as they are."""
    return _compact.encode(value)


_compact = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)  # `json.dumps` makes one for each call
