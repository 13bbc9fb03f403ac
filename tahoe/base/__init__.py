"""The modules that every layer may use: errors, clock, progress, cache, checked arguments, late imports, the version."""
