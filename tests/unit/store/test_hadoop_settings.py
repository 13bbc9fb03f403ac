"""Hadoop's settings for object stores are translated, or refused by name."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from tahoe.base.exceptions import InvalidRequest, StorageFailure, Unsupported
from tahoe.store.hadoop_settings import hadoop_prefixes, storage_options
from tahoe.store.object_store import open_store

S3, AZURE, GOOGLE = "s3a://bucket/t", "abfss://container@account.dfs.core.windows.net/t", "gs://bucket/t"
KEYS = {"fs.s3a.access.key": "id", "fs.s3a.secret.key": "secret"}
OAUTH = {
    "fs.azure.account.auth.type": "OAuth",
    "fs.azure.account.oauth2.client.id": "client",
    "fs.azure.account.oauth2.client.secret": "secret",
    "fs.azure.account.oauth2.client.endpoint": "https://login.microsoftonline.com/tenant/oauth2/token",
}
ACCOUNT = ".account.dfs.core.windows.net"
PROVIDER, OAUTH_PROVIDER = "fs.s3a.aws.credentials.provider", "fs.azure.account.oauth.provider.type"
OF_KEYS = {"aws_access_key_id": "id", "aws_secret_access_key": "secret"}
OF_OAUTH = {
    "azure_storage_client_id": "client",
    "azure_storage_client_secret": "secret",
    "azure_storage_tenant_id": "tenant",
    "azure_storage_authority_host": "https://login.microsoftonline.com",
}
TRANSLATED: list[tuple[str, dict[str, str], dict[str, str]]] = [
    (S3, {}, {}),
    (S3, KEYS, OF_KEYS),
    (S3, {**KEYS, "fs.s3a.session.token": "t"}, {**OF_KEYS, "aws_session_token": "t"}),
    (S3, {**KEYS, "fs.s3a.session.token": "t", PROVIDER: "o.SimpleAWSCredentialsProvider"}, OF_KEYS),
    (S3, {**KEYS, PROVIDER: "o.AnonymousAWSCredentialsProvider"}, {"aws_skip_signature": "true"}),
    (S3, {**KEYS, PROVIDER: "o.IAMInstanceCredentialsProvider, o.SimpleAWSCredentialsProvider"}, {}),
    (S3, {**KEYS, PROVIDER: "o.TemporaryAWSCredentialsProvider,\n o.SimpleAWSCredentialsProvider,other.Unknown"}, OF_KEYS),
    (S3, {"fs.s3a.bucket.bucket.access.key": "id", "fs.s3a.secret.key": "secret", "fs.s3a.access.key": "general"}, OF_KEYS),
    (S3, {"fs.s3a.bucket.bucket2.access.key": "no", **KEYS}, OF_KEYS),
    (
        S3,
        {"fs.s3a.bucket.bucket.endpoint.region": "eu-west-1", "fs.s3a.endpoint.region": "us-east-1"},
        {"aws_region": "eu-west-1"},
    ),
    (S3, {"fs.s3a.endpoint": "host:9000"}, {"aws_endpoint": "https://host:9000"}),
    (
        S3,
        {"fs.s3a.endpoint": "host:9000", "fs.s3a.connection.ssl.enabled": "false", "fs.s3a.path.style.access": "true"},
        {"aws_endpoint": "http://host:9000", "allow_http": "true", "aws_virtual_hosted_style_request": "false"},
    ),
    (
        S3,
        {"fs.s3a.encryption.algorithm": "SSE-KMS", "fs.s3a.encryption.key": "k"},
        {"aws_server_side_encryption": "aws:kms", "aws_sse_kms_key_id": "k"},
    ),
    (S3, {"fs.s3a.encryption.algorithm": "AES256", "fs.s3a.encryption.key": "k"}, {"aws_server_side_encryption": "AES256"}),
    (S3, {"fs.s3a.proxy.host": "proxy", "fs.s3a.proxy.port": "3128"}, {"proxy_url": "http://proxy:3128"}),
    (S3, {"fs.s3a.requester.pays.enabled": "true"}, {"aws_request_payer": "true"}),
    (S3, {**KEYS, "hadoop.security.credential.provider.path": "jceks://file/x"}, OF_KEYS),
    (
        S3,
        {"spark.io.delta.storage.S3DynamoDBLogStore.ddb.tableName": "locks"},
        {"spark.io.delta.storage.S3DynamoDBLogStore.ddb.tableName": "locks"},
    ),
    (
        S3,
        {"spark.delta.logStore.s3a.impl": "io.delta.storage.S3DynamoDBLogStore"},
        {"io.delta.storage.S3DynamoDBLogStore.ddb.tableName": "delta_log"},
    ),
    (AZURE, {}, {}),
    (AZURE, {f"fs.azure.account.key{ACCOUNT}": "a2V5"}, {"azure_storage_account_key": "a2V5"}),
    (AZURE, {"fs.azure.account.key": "Z2Vu", f"fs.azure.account.key{ACCOUNT}": "a2V5"}, {"azure_storage_account_key": "a2V5"}),
    (AZURE, {"fs.azure.account.key.other.dfs.core.windows.net": "a2V5"}, {}),
    (
        AZURE,
        {f"fs.azure.account.auth.type{ACCOUNT}": "SAS", f"fs.azure.sas.fixed.token{ACCOUNT}": "sv=1&sig=x"},
        {"azure_storage_sas_token": "sv=1&sig=x"},
    ),
    (AZURE, OAUTH, OF_OAUTH),
    (AZURE, {f"{name}{ACCOUNT}": value for name, value in OAUTH.items()}, OF_OAUTH),
    (
        AZURE,
        {**OAUTH, OAUTH_PROVIDER: "org.apache.hadoop.fs.azurebfs.oauth2.MsiTokenProvider"},
        {"azure_storage_client_id": "client"},
    ),
    (
        AZURE,
        {
            **OAUTH,
            OAUTH_PROVIDER: "o.WorkloadIdentityTokenProvider",
            "fs.azure.account.oauth2.token.file": "/f",
            "fs.azure.account.oauth2.msi.tenant": "tenant",
        },
        {"azure_storage_client_id": "client", "azure_federated_token_file": "/f", "azure_storage_tenant_id": "tenant"},
    ),
    (GOOGLE, {}, {}),
    (GOOGLE, {"google.cloud.auth.service.account.json.keyfile": "/k.json"}, {"google_service_account": "/k.json"}),
    (GOOGLE, {"fs.gs.auth.service.account.json.keyfile": "/k.json"}, {"google_service_account": "/k.json"}),
    (
        GOOGLE,
        {"fs.gs.auth.type": "COMPUTE_ENGINE", "google.cloud.auth.service.account.json.keyfile": "/k.json"},
        {"google_service_account": "/k.json"},
    ),
    (GOOGLE, {"fs.gs.auth.type": "UNAUTHENTICATED"}, {"google_skip_signature": "true"}),
    (GOOGLE, {"google.cloud.auth.null.enable": "true"}, {"google_skip_signature": "true"}),
    (GOOGLE, {"fs.gs.auth.type": "COMPUTE_ENGINE", "fs.gs.storage.root.url": "https://storage.googleapis.com/"}, {}),
    (GOOGLE, {"fs.gs.storage.root.url": "http://host:4443"}, {"google_base_url": "http://host:4443", "allow_http": "true"}),
    ("file:///t", {"fs.s3a.access.key": "id"}, {}),
]
REFUSED: list[tuple[str, dict[str, str], str]] = [
    (S3, {**KEYS, PROVIDER: "com.amazonaws.auth.profile.ProfileCredentialsProvider"}, PROVIDER),
    (S3, {PROVIDER: "org.apache.hadoop.fs.s3a.auth.AssumedRoleCredentialProvider"}, PROVIDER),
    (S3, {"fs.s3a.bucket.bucket.aws.credentials.provider": "com.company.Own"}, PROVIDER),
    (S3, {"fs.s3a.encryption.algorithm": "CSE-KMS"}, "fs.s3a.encryption.algorithm"),
    (S3, {"fs.s3a.encryption.algorithm": "SSE-C"}, "fs.s3a.encryption.key"),
    (S3, {"fs.s3a.proxy.host": "p", "fs.s3a.proxy.username": "u"}, "fs.s3a.proxy.username"),
    (S3, {"fs.s3a.delegation.tokens.enabled": "true"}, "fs.s3a.delegation.tokens.enabled"),
    (S3, {"hadoop.security.credential.provider.path": "jceks://x"}, "hadoop.security.credential.provider.path"),
    (AZURE, {"hadoop.security.credential.provider.path": "jceks://x"}, "hadoop.security.credential.provider.path"),
    (AZURE, {f"fs.azure.account.auth.type{ACCOUNT}": "Custom"}, "fs.azure.account.auth.type"),
    (AZURE, {"fs.azure.account.auth.type": "SAS"}, "fs.azure.sas.fixed.token"),
    (AZURE, {"fs.azure.account.auth.type": "SAS", "fs.azure.sas.token.provider.type": "x.Y"}, "fs.azure.sas.token.provider.type"),
    (AZURE, {**OAUTH, OAUTH_PROVIDER: "o.RefreshTokenBasedTokenProvider"}, OAUTH_PROVIDER),
    (AZURE, {**OAUTH, "fs.azure.account.oauth2.client.endpoint": "x"}, "fs.azure.account.oauth2.client.endpoint"),
    (AZURE, {"fs.azure.account.auth.type": "OAuth"}, "fs.azure.account.oauth2.client.id"),
    (GOOGLE, {"fs.gs.auth.type": "USER_CREDENTIALS"}, "fs.gs.auth.type"),
    (GOOGLE, {"google.cloud.auth.service.account.keyfile": "/x.p12"}, "google.cloud.auth.service.account.keyfile"),
    (GOOGLE, {"fs.gs.encryption.key": "k"}, "fs.gs.encryption.key"),
    (GOOGLE, {"fs.gs.requester.pays.mode": "AUTO"}, "fs.gs.requester.pays.mode"),
    (GOOGLE, {"fs.gs.auth.service.account.email": "a@b"}, "fs.gs.auth.service.account.private.key"),
]


@pytest.mark.parametrize(("path", "hadoop", "expected"), TRANSLATED)
def test_settings_become_options_of_the_store(path: str, hadoop: dict[str, str], expected: dict[str, str]) -> None:
    options = storage_options(path, hadoop, {})
    assert options == expected
    if "google_service_account" not in options:  # that file would be read
        open_store(path, options)


@pytest.mark.parametrize(("path", "hadoop", "named"), REFUSED)
def test_a_setting_that_cannot_be_honored_is_named_without_its_secret(path: str, hadoop: dict[str, str], named: str) -> None:
    secret = {name: "canary" if "secret" in name or "key" in name.split(".")[-1] else value for name, value in hadoop.items()}
    with pytest.raises((Unsupported, InvalidRequest), match=named.replace(".", r"\.")) as raised:
        storage_options(path, secret, {})
    assert "canary" not in str(raised.value)


def test_the_environment_is_a_provider_only_if_it_has_a_key() -> None:
    hadoop = {**KEYS, PROVIDER: "o.EnvironmentVariableCredentialsProvider,o.SimpleAWSCredentialsProvider"}
    assert storage_options(S3, hadoop, {}) == OF_KEYS
    assert storage_options(S3, hadoop, {"AWS_ACCESS_KEY_ID": "other"}) == {}


def test_parts_of_a_google_key_become_a_key() -> None:
    parts = {"email": "a@b", "private.key": "k", "private.key.id": "1"}
    options = storage_options(GOOGLE, {f"google.cloud.auth.service.account.{part}": value for part, value in parts.items()}, {})
    assert json.loads(options["google_service_account_key"]) == {
        "type": "service_account",
        "client_email": "a@b",
        "private_key": "k",
        "private_key_id": "1",
    }


def test_each_store_has_its_prefixes() -> None:
    assert hadoop_prefixes(S3)[0] == "fs.s3a." and hadoop_prefixes(AZURE)[0] == "fs.azure."
    assert hadoop_prefixes(GOOGLE) == ("fs.gs.", "google.cloud.auth.") and hadoop_prefixes("/t") == ()


class NoContainer(BaseHTTPRequestHandler):
    """Azure's answer about a container that does not exist."""

    def do_GET(self) -> None:
        body = b"<?xml version='1.0'?><Error><Code>ContainerNotFound</Code><Message>no such container</Message></Error>"
        self.send_response(404)
        self.send_header("x-ms-error-code", "ContainerNotFound")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """No log."""


def test_a_missing_container_of_azure_is_reported_as_such() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), NoContainer)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        endpoint = {"azure_storage_endpoint": f"http://127.0.0.1:{server.server_port}", "azure_storage_account_name": "account"}
        store = open_store("az://container/t", {**endpoint, "azure_storage_account_key": "a2V5"})
        for call in (lambda: store.get("a"), lambda: store.list_from("_delta_log")):
            with pytest.raises(StorageFailure, match=r"ContainerNotFound.*Create the container, or correct its name"):
                call()
    finally:
        server.shutdown()
        server.server_close()


def test_only_settings_of_hadoop_reach_a_store_on_hdfs() -> None:
    values = {"dfs.replication": "2", "fs.hdfs.impl.disable.cache": "true", "mergeSchema": "true"}
    assert storage_options("hdfs://host:1/t", values, {}) == {"dfs.replication": "2", "fs.hdfs.impl.disable.cache": "true"}
