"""The strict check: every rule of the specification, one small function each, held against all that a log holds (docs/design/032)."""
