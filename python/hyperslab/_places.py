"""Where things are: URLs, paths, and what fsspec, obstore and zarr-python have in their place."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ._errors import InvalidError

__all__ = ["Place", "place_of"]

# A URL and the options of its store.
Place = tuple[str, dict[str, str]]

# Chains of fsspec that only cache what is behind them: we read it ourselves.
CACHES = ("simplecache", "filecache", "blockcache", "cached")
SCHEMES = {"s3a": "s3", "gcs": "gs", "adl": "az", "abfss": "abfs", "local": "file"}

# Names of s3fs, adlfs, gcsfs and obstore, and what we call the same.
NAMES = {
    "key": "access_key_id",
    "secret": "secret_access_key",
    "token": "session_token",
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "session_token",
    "aws_token": "session_token",
    "access_key_id": "access_key_id",
    "secret_access_key": "secret_access_key",
    "session_token": "session_token",
    "endpoint_url": "endpoint",
    "aws_endpoint": "endpoint",
    "aws_endpoint_url": "endpoint",
    "azure_storage_endpoint": "endpoint",
    "azure_endpoint": "endpoint",
    "endpoint": "endpoint",
    "region": "region",
    "region_name": "region",
    "aws_region": "region",
    "aws_default_region": "region",
    "profile": "profile",
    "anon": "anonymous",
    "skip_signature": "anonymous",
    "aws_skip_signature": "anonymous",
    "azure_skip_signature": "anonymous",
    "google_skip_signature": "anonymous",
    "anonymous": "anonymous",
    "requester_pays": "request_payer",
    "request_payer": "request_payer",
    "aws_request_payer": "request_payer",
    "account_name": "account",
    "azure_storage_account_name": "account",
    "account": "account",
    "account_key": "account_key",
    "azure_storage_account_key": "account_key",
    "azure_storage_access_key": "account_key",
    "sas_token": "sas_token",
    "azure_storage_sas_key": "sas_token",
    "connection_string": "connection_string",
    "service_account": "service_account",
    "service_account_path": "service_account",
    "google_service_account": "service_account",
    "virtual_hosted_style_request": "virtual_hosted",
    "aws_virtual_hosted_style_request": "virtual_hosted",
    "retries": "retries",
    "timeout": "timeout",
    "connect_timeout": "connect_timeout",
    "deadline": "deadline",
    "concurrency": "concurrency",
    "unsigned_payload": "unsigned_payload",
    "fsync": "fsync",
}
# Settings of other programs that change nothing for us.
IGNORED = {
    "allow_http", "asynchronous", "bucket", "cache_regions", "cache_storage", "check_files",
    "container_name", "default_block_size", "default_cache_type", "default_fill_cache", "loop",
    "max_concurrency", "project", "protocol", "remote_protocol", "same_names", "session",
    "skip_instance_cache", "target_protocol", "use_listings_cache", "use_ssl", "username",
    "version_aware", "aws_bucket", "azure_container_name", "google_bucket", "path",
}  # fmt: skip


def options_of(scheme: str, given: Mapping[str, Any]) -> dict[str, str]:
    """Options of other programs by our names."""
    found: dict[str, str] = {}
    for name, value in given.items():
        name = str(name).lower()
        if value is None or name in IGNORED:
            continue
        if name in ("client_kwargs", "config_kwargs", "s3_additional_kwargs", "target_options"):
            found |= options_of(scheme, value or {})
            continue
        if scheme == "gs" and name == "token":
            found["anonymous" if value == "anon" else "service_account"] = (
                "true" if value == "anon" else str(value)
            )
            continue
        ours = NAMES.get(name)
        if ours is None:
            raise InvalidError(
                f"the storage option {name!r} is not known",
                f"known are {', '.join(sorted(set(NAMES)))}",
            )
        if ours == "request_payer":
            if value and value != "false":
                found[ours] = "requester"
            continue
        found[ours] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


def url_of(text: str) -> str:
    """A URL without caches before it, and with a scheme of ours."""
    while "::" in text:
        first, rest = text.split("::", 1)
        if first.split("://")[0] not in CACHES:
            raise InvalidError(
                f"{text!r} is a chain of file systems, which cannot be read through",
                "name the innermost URL",
            )
        text = rest
    scheme, colon, rest = text.partition("://")
    if not colon:
        return text
    return f"{SCHEMES.get(scheme, scheme)}://{rest}"


def scheme_of(url: str) -> str:
    return url.split("://")[0] if "://" in url else "file"


def of_fsspec(system: Any, path: str) -> Place:
    """A path in a file system of fsspec."""
    if hasattr(system, "fs") and hasattr(system, "_strip_protocol") and getattr(system, "protocol", "") in CACHES:
        system = system.fs
    protocol = system.protocol if isinstance(system.protocol, str) else system.protocol[0]
    scheme = SCHEMES.get(protocol, protocol)
    options = dict(getattr(system, "storage_options", {}) or {})
    if scheme in ("http", "https"):
        return path, {}
    if scheme == "file":
        return path, {}
    return f"{scheme}://{path.lstrip('/')}", options_of(scheme, options)


def of_obstore(store: Any, path: str = "") -> Place:
    """A store of obstore."""
    kind = type(store).__name__
    prefix = str(getattr(store, "prefix", None) or "").strip("/")
    below = "/".join(part for part in (prefix, path.strip("/")) if part)
    if kind == "LocalStore":
        return os.path.join(str(store.prefix or "/"), path), {}
    if kind == "HTTPStore":
        return "/".join(part for part in (str(store.url).rstrip("/"), path) if part), {}
    config = {str(name).lower(): value for name, value in dict(store.config).items()}
    bucket = next(
        (config[n] for n in ("bucket", "aws_bucket", "container_name", "azure_container_name", "google_bucket") if n in config),
        None,
    )
    scheme = {"S3Store": "s3", "AzureStore": "az", "GCSStore": "gs"}.get(kind)
    if scheme is None or bucket is None:
        raise InvalidError(f"a store of the kind {kind} cannot be opened", "give its URL")
    return f"{scheme}://{bucket}/{below}".rstrip("/"), options_of(scheme, config)


def place_of(where: Any, storage_options: Mapping[str, Any] | None = None) -> Place:
    """The URL and the store's options of whatever names a place."""
    storage_options = storage_options or {}
    if isinstance(where, (str, os.PathLike)):
        url = url_of(os.fspath(where))
        return url, options_of(scheme_of(url), storage_options)
    module = type(where).__module__.split(".")[0]
    if module == "obstore":
        url, options = of_obstore(where)
    elif module == "zarr" and hasattr(where, "fs"):  # FsspecStore
        url, options = of_fsspec(where.fs, where.path)
    elif module == "zarr" and hasattr(where, "root"):  # LocalStore
        url, options = str(where.root), {}
    elif module == "zarr" and type(where).__name__ == "ObjectStore":
        url, options = of_obstore(where.store)
    elif hasattr(where, "fs") and hasattr(where, "root"):  # fsspec's mapper
        url, options = of_fsspec(where.fs, where.root)
    elif hasattr(where, "fs") and hasattr(where, "path"):  # fsspec's open file
        url, options = of_fsspec(where.fs, where.path)
    else:
        raise InvalidError(
            f"{type(where).__name__} does not name a place",
            "give a URL, a path, an fsspec or obstore store, or a store of zarr-python",
        )
    return url, options | options_of(scheme_of(url), storage_options)
