"""Columns whose values, or whose limits, the schema defines: defaults, generated partition columns, identity columns."""
