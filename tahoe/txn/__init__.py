"""Transactions: collected reads and changes, prepared, rebased onto concurrent commits, and written to the log."""
