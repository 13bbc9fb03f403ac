"""Transactions: what was read and is wanted, checked, moved past others, and put into the log."""
