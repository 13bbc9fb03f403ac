"""Storage of tables: local folders and object stores behind one small interface."""
