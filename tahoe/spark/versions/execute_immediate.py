"""``EXECUTE IMMEDIATE`` of Spark 4.0, which parses the text without the session's parser; later versions use that parser.

Obsolete when PySpark 4.1 is the oldest supported release, with the functions that use these names.
"""

from __future__ import annotations

EXECUTE_IMMEDIATE = "ExecuteImmediateQuery"
"""The node of the statement in Spark 4.0."""

HINT = "On Spark 4.0 a script must give EXECUTE IMMEDIATE the text itself, not a variable, for a statement on a Delta table."
