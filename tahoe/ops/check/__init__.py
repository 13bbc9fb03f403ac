"""The strict check: one small function for each rule of the specification, applied to the whole log (docs/design/032)."""
