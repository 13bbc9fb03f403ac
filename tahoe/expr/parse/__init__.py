"""SQL text to trees, by an allow-list."""
