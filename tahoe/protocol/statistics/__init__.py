"""Per-file statistics: from rows and footers, as values, as JSON."""
