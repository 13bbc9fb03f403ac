"""Tables made and altered: metadata, properties, constraints."""
