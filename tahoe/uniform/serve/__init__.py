"""A server of Iceberg's REST protocol for all tables below a folder."""
