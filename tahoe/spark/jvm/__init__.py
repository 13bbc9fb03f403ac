"""The bridge to the JVM: classes, errors, values, schemas and storage on their way across it."""
