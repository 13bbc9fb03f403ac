"""The server of Iceberg's REST protocol, over all tables below a folder."""
