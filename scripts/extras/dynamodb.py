"""A lock table in DynamoDB: boto3 is there, and the request for the newest commit is sent, here to an address without a server."""

import os

from tahoe.exceptions import StorageFailure
from tahoe.store.object_store import open_store

os.environ |= {"AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1"}
keys = {"aws_access_key_id": "any", "aws_secret_access_key": "any"}
store = open_store("s3://bucket/table", {**keys, "io.delta.storage.S3DynamoDBLogStore.ddb.tableName": "delta_log"})
message = ""
try:
    store.list_from("_delta_log")
except StorageFailure as error:
    message = error.message
assert "DynamoDB table delta_log: EndpointConnectionError" in message, message
