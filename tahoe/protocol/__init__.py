"""The specification as values and pure functions: actions, features, properties, statistics, deletion vectors."""
