"""The Avro schemas of manifests: legal Avro names, next to the real names."""

from __future__ import annotations

import io
import json

import fastavro

from tests.unit.uniform.sample_manifests import encoded, entries


def test_the_avro_names_of_partition_fields_are_legal_and_record_the_real_name():
    schema = fastavro.reader(io.BytesIO(encoded(entries(1)))).writer_schema
    data_file = next(field for field in schema["fields"] if field["name"] == "data_file")
    partition = next(field for field in data_file["type"]["fields"] if field["name"] == "partition")
    odd = partition["type"]["fields"][0]
    assert odd["name"].isascii()
    assert odd["name"].isidentifier()
    assert odd["iceberg-field-name"] == "1 odd/naïve %name"
    assert json.dumps(schema)
