"""Hadoop's settings for S3, Azure and Google Cloud Storage, translated to options of `tahoe.store.object_store.open_store`. Pure.

Settings of performance have no translation. A setting on which access, encryption or the addressed server depends is translated or raises
`Unsupported`, which names the setting and never its value, except for the name of a Java class.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import urlsplit

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.store.hadoop_store import HADOOP_PREFIXES
from tahoe.store.location import HADOOP_SCHEMES, split_url, table_url

Settings = Mapping[str, str]
KEY_STORE = "hadoop.security.credential.provider.path"
"""Hadoop's setting for files with secrets, for all stores."""


def hadoop_prefixes(path: str) -> tuple[str, ...]:
    """Return the prefixes of Hadoop's settings for the store of a path; none for stores without such settings."""
    return _PREFIXES.get(split_url(table_url(path))[0], ())


def storage_options(path: str, hadoop: Settings, environment: Settings) -> dict[str, str]:
    """Return the options of the object store of a path.

    Args:
        hadoop: all settings with the prefixes of `hadoop_prefixes`, and `KEY_STORE`; others have no effect.
        environment: the process's variables, which one of S3A's credential providers reads.

    Raises `Unsupported` (``TAHOE_HADOOP_SETTING``) for settings that Tahoe cannot honor, `InvalidRequest` for malformed ones.
    """
    scheme, authority, _ = split_url(table_url(path))
    if scheme == "s3":
        return {**_of_s3(_of_bucket(hadoop, authority), environment), **_of_lock_table(hadoop)}
    if scheme in _AZURE:
        return _of_azure(_of_account(hadoop, authority))
    if scheme in HADOOP_SCHEMES:  # the session's settings apply to its JVM anyway
        return {name: value for name, value in hadoop.items() if name.startswith(HADOOP_PREFIXES)}
    return _of_google(hadoop) if scheme == "gs" else {}


_LOCK_TABLE, _LOG_STORE = "io.delta.storage.S3DynamoDBLogStore.", "spark.delta.logStore.s3"
_AZURE = ("abfs", "abfss")
_PREFIXES = {
    "s3": ("fs.s3a.", *(f"{spark}{_LOCK_TABLE}" for spark in ("", "spark.")), _LOG_STORE),
    "gs": ("fs.gs.", "google.cloud.auth."),
    **dict.fromkeys(_AZURE, ("fs.azure.",)),
}

# -- S3A: https://hadoop.apache.org/docs/stable/hadoop-aws/tools/hadoop-aws/index.html


def _of_bucket(hadoop: Settings, bucket: str) -> dict[str, str]:
    """Return S3A's settings, with those of the bucket in place of the general ones."""
    own = f"fs.s3a.bucket.{bucket}."
    special = {f"fs.s3a.{name.removeprefix(own)}": value for name, value in hadoop.items() if name.startswith(own)}
    return {name: value for name, value in {**hadoop, **special}.items() if value}


def _of_s3(settings: Settings, environment: Settings) -> dict[str, str]:
    options = {**_s3_credentials(settings, environment), **_s3_encryption(settings), **_s3_proxy(settings)}
    if region := settings.get("fs.s3a.endpoint.region"):
        options["aws_region"] = region
    if endpoint := settings.get("fs.s3a.endpoint"):
        secure = _is_true(settings, "fs.s3a.connection.ssl.enabled", "true")
        options["aws_endpoint"] = endpoint if "://" in endpoint else f"{'https' if secure else 'http'}://{endpoint}"
        if options["aws_endpoint"].startswith("http://"):
            options["allow_http"] = "true"
    if _is_true(settings, "fs.s3a.path.style.access"):
        options["aws_virtual_hosted_style_request"] = "false"
    if _is_true(settings, "fs.s3a.requester.pays.enabled"):
        options["aws_request_payer"] = "true"
    for name in ("fs.s3a.delegation.tokens.enabled", "fs.s3a.access.grants.enabled"):
        if _is_true(settings, name):
            raise _unsupported(name)
    return options


def _of_lock_table(hadoop: Settings) -> dict[str, str]:
    """Return delta-spark's settings for a lock table, which keep their names; with its default if only the class of the log is set."""
    own = {name: value for name, value in hadoop.items() if name.removeprefix("spark.").startswith(_LOCK_TABLE)}
    classes = {hadoop.get(f"{_LOG_STORE}{kind}.impl") for kind in ("", "a")}
    if _LOCK_TABLE[:-1] in classes and not any(name.endswith(".ddb.tableName") for name in own):
        own[f"{_LOCK_TABLE}ddb.tableName"] = "delta_log"
    return own


def _s3_credentials(settings: Settings, environment: Settings) -> dict[str, str]:
    """Return the credentials of the first provider that has some; none if they come from the environment or the machine's role."""
    name = "fs.s3a.aws.credentials.provider"
    keys = {ours: settings[theirs] for theirs, ours in _S3_KEYS.items() if theirs in settings}
    for provider in [each.strip() for each in settings.get(name, _DEFAULT_PROVIDERS).split(",") if each.strip()]:
        kind = provider.rpartition(".")[2]
        if kind == "AnonymousAWSCredentialsProvider":
            return {"aws_skip_signature": "true"}
        if kind == "TemporaryAWSCredentialsProvider" and "aws_session_token" in keys:
            return keys
        if kind == "SimpleAWSCredentialsProvider" and keys.keys() - {"aws_session_token"}:
            return {ours: value for ours, value in keys.items() if ours != "aws_session_token"}
        if kind in _OF_THE_ENVIRONMENT and "AWS_ACCESS_KEY_ID" in environment:
            return {}
        if kind in _OF_THE_MACHINE:
            return {}
        if kind not in (*_OF_SETTINGS, *_OF_THE_ENVIRONMENT):
            raise _unsupported(name, f"the credential provider {provider}")
    _refuse_key_stores(settings, "fs.s3a.security.credential.provider.path")
    return {}


_S3_KEYS = {
    "fs.s3a.access.key": "aws_access_key_id",
    "fs.s3a.secret.key": "aws_secret_access_key",
    "fs.s3a.session.token": "aws_session_token",
}
_OF_SETTINGS = ("TemporaryAWSCredentialsProvider", "SimpleAWSCredentialsProvider")
_OF_THE_ENVIRONMENT = ("EnvironmentVariableCredentialsProvider",)
_OF_THE_MACHINE = (
    "IAMInstanceCredentialsProvider",
    "InstanceProfileCredentialsProvider",
    "ContainerCredentialsProvider",
    "EC2ContainerCredentialsProviderWrapper",
    "WebIdentityTokenCredentialsProvider",
    "WebIdentityTokenFileCredentialsProvider",
    "DefaultCredentialsProvider",
    "DefaultAWSCredentialsProviderChain",
)
_DEFAULT_PROVIDERS = "TemporaryAWSCredentialsProvider,SimpleAWSCredentialsProvider,EnvironmentVariableCredentialsProvider"


def _s3_encryption(settings: Settings) -> dict[str, str]:
    for algorithm_name, key_name in _ENCRYPTION:
        algorithm, key = settings.get(algorithm_name), settings.get(key_name)
        if algorithm is None:
            continue
        if algorithm == "SSE-C" and key is None:
            raise InvalidRequest(f"{algorithm_name} is SSE-C, which needs a key: set {key_name}.", code="TAHOE_STORAGE_OPTION")
        if algorithm == "SSE-C" and key is not None:
            return {"aws_server_side_encryption": "sse-c", "aws_sse_customer_key_base64": key}
        if algorithm not in _ALGORITHMS:
            raise _unsupported(algorithm_name, "this algorithm")
        kms = {} if key is None or algorithm == "AES256" else {"aws_sse_kms_key_id": key}
        return {"aws_server_side_encryption": _ALGORITHMS[algorithm], **kms}
    return {}


_ENCRYPTION = (
    ("fs.s3a.encryption.algorithm", "fs.s3a.encryption.key"),
    ("fs.s3a.server-side-encryption-algorithm", "fs.s3a.server-side-encryption.key"),
)
_ALGORITHMS = {"AES256": "AES256", "SSE-KMS": "aws:kms", "DSSE-KMS": "aws:kms:dsse"}


def _s3_proxy(settings: Settings) -> dict[str, str]:
    if not (host := settings.get("fs.s3a.proxy.host")):
        return {}
    for name in ("fs.s3a.proxy.username", "fs.s3a.proxy.ntlm.domain", "fs.s3a.proxy.ntlm.workstation"):
        if name in settings:
            raise _unsupported(name)
    secure = _is_true(settings, "fs.s3a.proxy.ssl.enabled")
    port = settings.get("fs.s3a.proxy.port")
    return {"proxy_url": f"{'https' if secure else 'http'}://{host}{f':{port}' if port else ''}"}


# -- Azure: https://hadoop.apache.org/docs/stable/hadoop-azure/abfs.html


def _of_account(hadoop: Settings, authority: str) -> dict[str, str]:
    """Return the settings of ABFS, with those of the account, whose names end with its host, in place of the general ones."""
    host = authority.rpartition("@")[2]
    special = {name.removesuffix(f".{host}"): value for name, value in hadoop.items() if name.endswith(f".{host}")}
    return {name: value for name, value in {**hadoop, **special}.items() if value}


def _of_azure(settings: Settings) -> dict[str, str]:
    type_name = "fs.azure.account.auth.type"
    match settings.get(type_name, "OAuth" if f"{_OAUTH}.client.id" in settings else "SharedKey").lower():
        case "sharedkey":
            options = _given(settings, {"fs.azure.account.key": "azure_storage_account_key"})
            if not options:
                _refuse_key_stores(settings)
        case "sas":
            if "fs.azure.sas.token.provider.type" in settings and _SAS not in settings:
                raise _unsupported("fs.azure.sas.token.provider.type")
            options = _required(settings, type_name, {_SAS: "azure_storage_sas_token"})
        case "oauth":
            options = _azure_oauth(settings)
        case _:
            raise _unsupported(type_name, "this type")
    for name in ("fs.azure.encryption.encoded.client-provided-key", "fs.azure.encryption.context.provider.type"):
        if name in settings:
            raise _unsupported(name)
    return options


_SAS = "fs.azure.sas.fixed.token"
_OAUTH = "fs.azure.account.oauth2"
_PROVIDER = "fs.azure.account.oauth.provider.type"


def _azure_oauth(settings: Settings) -> dict[str, str]:
    provider = settings.get(_PROVIDER, "ClientCredsTokenProvider")
    client = {f"{_OAUTH}.client.id": "azure_storage_client_id"}
    match provider.rpartition(".")[2]:
        case "ClientCredsTokenProvider":
            secret = {f"{_OAUTH}.client.secret": "azure_storage_client_secret"}
            options = _required(settings, _PROVIDER, {**client, **secret})
            return {**options, **_authority(settings, f"{_OAUTH}.client.endpoint")}
        case "MsiTokenProvider":
            return _given(settings, {**client, f"{_OAUTH}.msi.endpoint": "azure_msi_endpoint"})
        case "WorkloadIdentityTokenProvider":
            file = {f"{_OAUTH}.token.file": "azure_federated_token_file", f"{_OAUTH}.msi.tenant": "azure_storage_tenant_id"}
            host = {f"{_OAUTH}.msi.authority": "azure_storage_authority_host"}
            return {**_required(settings, _PROVIDER, {**client, **file}), **_given(settings, host)}
    raise _unsupported(_PROVIDER, f"the token provider {provider}")


def _authority(settings: Settings, name: str) -> dict[str, str]:
    """Return tenant and host of an endpoint such as ``https://login.microsoftonline.com/TENANT/oauth2/token``."""
    url = urlsplit(settings.get(name, ""))
    tenant = url.path.strip("/").partition("/")[0]
    if not url.hostname or not tenant:
        raise InvalidRequest(
            f"{name} must be https://HOST/TENANT/oauth2/token, for example of login.microsoftonline.com. Set it.",
            code="TAHOE_STORAGE_OPTION",
            option=name,
        )
    return {"azure_storage_tenant_id": tenant, "azure_storage_authority_host": f"{url.scheme}://{url.netloc}"}


# -- Google Cloud Storage: the settings of its Hadoop connector, of version 2 (google.cloud.auth) and 3 (fs.gs.auth)


def _of_google(hadoop: Settings) -> dict[str, str]:
    settings = {name.replace("google.cloud.auth.", "fs.gs.auth."): value for name, value in hadoop.items() if value}
    spelled = {name.replace("google.cloud.auth.", "fs.gs.auth."): name for name in hadoop}
    for name in _NOT_ON_GOOGLE:
        if name in settings:
            raise _unsupported(spelled[name])
    if settings.get("fs.gs.requester.pays.mode", "DISABLED").upper() != "DISABLED":
        raise _unsupported("fs.gs.requester.pays.mode")
    options = _google_credentials(settings)
    if (root := settings.get("fs.gs.storage.root.url", _GOOGLE).rstrip("/")) != _GOOGLE:
        options["google_base_url"] = root
        if root.startswith("http://"):
            options["allow_http"] = "true"
    return options


_GOOGLE = "https://storage.googleapis.com"
_NOT_ON_GOOGLE = (
    "fs.gs.auth.access.token.provider",
    "fs.gs.auth.access.token.provider.impl",
    "fs.gs.auth.impersonation.service.account",
    "fs.gs.auth.refresh.token",
    "fs.gs.auth.service.account.keyfile",
    "fs.gs.encryption.key",
    "fs.gs.proxy.address",
)


def _google_credentials(settings: Settings) -> dict[str, str]:
    kind = settings.get("fs.gs.auth.type", "").upper()
    if kind == "UNAUTHENTICATED" or _is_true(settings, "fs.gs.auth.null.enable"):
        return {"google_skip_signature": "true"}
    # Hadoop 3.5 sets COMPUTE_ENGINE for everybody, and Google's own connector has no such default: a key that is set counts.
    if kind not in ("", "COMPUTE_ENGINE", "APPLICATION_DEFAULT", "SERVICE_ACCOUNT_JSON_KEYFILE"):
        raise _unsupported("fs.gs.auth.type", "this type")
    if file := settings.get("fs.gs.auth.service.account.json.keyfile"):
        return {"google_service_account": file}
    parts = {part: settings.get(f"fs.gs.auth.service.account.{part}") for part in ("email", "private.key", "private.key.id")}
    if not any(parts.values()):
        return {}
    if missing := [f"fs.gs.auth.service.account.{part}" for part, value in parts.items() if not value]:
        raise InvalidRequest(
            f"A key of a service account needs {missing[0]} too: set it.", code="TAHOE_STORAGE_OPTION", option=missing[0]
        )
    key = {"client_email": parts["email"], "private_key": parts["private.key"], "private_key_id": parts["private.key.id"]}
    return {"google_service_account_key": json.dumps({"type": "service_account", **key})}


# -- all of them


def _is_true(settings: Settings, name: str, default: str = "false") -> bool:
    return settings.get(name, default).strip().lower() == "true"


def _given(settings: Settings, names: Mapping[str, str]) -> dict[str, str]:
    """Return the options for the settings that are there."""
    return {ours: settings[theirs] for theirs, ours in names.items() if theirs in settings}


def _required(settings: Settings, because: str, names: Mapping[str, str]) -> dict[str, str]:
    """Return the options for the settings, all of which another setting requires."""
    if missing := [theirs for theirs in names if theirs not in settings]:
        raise InvalidRequest(f"{because} requires {missing[0]} too: set it.", code="TAHOE_STORAGE_OPTION", option=missing[0])
    return _given(settings, names)


def _refuse_key_stores(settings: Settings, *more: str) -> None:
    """Refuse secrets in Hadoop's key stores, if no setting has the secret itself."""
    for name in (*more, KEY_STORE):
        if name in settings:
            raise _unsupported(name)


def _unsupported(name: str, value: str = "") -> Unsupported:
    return Unsupported(
        f"Tahoe cannot honor {value + ' in ' if value else ''}Hadoop's setting {name} when it reads and writes the log. Set keys or tokens "
        "directly (docs/storage.md), or the environment variables of the store, and remove it.",
        code="TAHOE_HADOOP_SETTING",
        setting=name,
    )
