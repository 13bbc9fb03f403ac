"""Creating and altering tables: metadata, properties, constraints."""
