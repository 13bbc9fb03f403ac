"""Delta's types and schemas, and how they meet Arrow's."""
