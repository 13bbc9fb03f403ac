"""Per-file statistics: collected from rows and footers, as values, and as JSON."""
