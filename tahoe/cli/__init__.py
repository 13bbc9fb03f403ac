"""The command line: `tahoe detail|history|files|check PATH`, without Spark and without a JVM."""
