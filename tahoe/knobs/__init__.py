"""What delta-spark lets its users set, and what becomes of each of these settings here: none is passed over without a word."""
