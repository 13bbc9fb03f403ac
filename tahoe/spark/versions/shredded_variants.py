"""PySpark 4.1 and later shred variants by default, which requires a table feature (PROTOCOL.md, "Variant Shredding").

Spark 4.0 ignores the setting; nothing becomes obsolete with a newer release.
"""

from __future__ import annotations

from collections.abc import Mapping

UNSHREDDED: Mapping[str, str] = {"spark.sql.variant.writeShredding.enabled": "false"}
"""The setting of a session that writes variants unshredded."""
