"""Columns whose values, or whose limits, a table gives: what the schema says of them."""
