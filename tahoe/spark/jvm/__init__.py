"""The bridge to the JVM: converts classes, errors, values, schemas and storage settings."""
