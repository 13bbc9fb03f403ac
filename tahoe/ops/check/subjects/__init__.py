"""The subjects of rules: the log as it is written, the settings in force in a version, and the state after its commits."""
