"""The formats of Iceberg's specification: Avro, manifests, metadata, schemas, values, position deletes and Puffin."""
