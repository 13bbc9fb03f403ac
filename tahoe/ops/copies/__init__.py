"""Tables from existing files: CONVERT TO DELTA and CLONE; and manifests of files for readers that do not read the Delta log."""
