"""What Iceberg's specification writes: Avro, manifests, metadata, schemas, values, position deletes and Puffin."""
