"""The differences between PySpark 4.0, 4.1, 4.2 and 4.3: one module each, with the release that makes it obsolete (docs/design/037)."""
