"""Places as fsspec, obstore and zarr-python name them."""

import fsspec
import numpy as np
import obstore
import pytest
import zarr
from conftest import same

import hyperslab as hs
from hyperslab._places import options_of, place_of


def test_local_places(tmp_path):
    cells = np.arange(6)
    hs.save(tmp_path / "a.zarr", cells)
    system = fsspec.filesystem("file")
    places = [
        str(tmp_path / "a.zarr"),
        f"file://{tmp_path}/a.zarr",
        system.get_mapper(str(tmp_path / "a.zarr")),
        zarr.storage.LocalStore(tmp_path / "a.zarr"),
        obstore.store.LocalStore(str(tmp_path / "a.zarr")),
        f"simplecache::file://{tmp_path}/a.zarr",
    ]
    for place in places:
        same(hs.open(place)[...], cells)


def test_places_in_a_bucket(cloud, s3, monkeypatch):
    cells = np.arange(6)
    hs.save(f"{s3}/places/a.zarr", cells)
    keys = {name: cloud.env[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL")}
    for name in keys:
        monkeypatch.delenv(name)
    given = {
        "key": keys["AWS_ACCESS_KEY_ID"],
        "secret": keys["AWS_SECRET_ACCESS_KEY"],
        "client_kwargs": {"endpoint_url": keys["AWS_ENDPOINT_URL"], "region_name": "us-east-1"},
    }
    array = hs.open(f"{s3}/places/a.zarr", storage_options=given)
    same(array[...], cells)
    import pickle

    same(pickle.loads(pickle.dumps(array))[...], cells)
    store = obstore.store.S3Store(
        "data",
        prefix="places/a.zarr",
        access_key_id=keys["AWS_ACCESS_KEY_ID"],
        secret_access_key=keys["AWS_SECRET_ACCESS_KEY"],
        endpoint=keys["AWS_ENDPOINT_URL"],
        region="us-east-1",
        client_options={"allow_http": True},
    )
    same(hs.open(store)[...], cells)
    same(hs.open(zarr.storage.ObjectStore(store, read_only=True))[...], cells)


def test_options_of_others_by_our_names():
    assert options_of("s3", {"anon": True, "requester_pays": True, "use_ssl": True, "profile": None}) == {
        "anonymous": "true",
        "request_payer": "requester",
    }
    assert options_of("az", {"account_name": "a", "account_key": "k"}) == {"account": "a", "account_key": "k"}
    assert options_of("gs", {"token": "anon"}) == {"anonymous": "true"}
    assert options_of("gs", {"token": "/key.json"}) == {"service_account": "/key.json"}
    assert place_of("gcs://b/k")[0] == "gs://b/k"
    with pytest.raises(hs.InvalidError, match="colour"):
        options_of("s3", {"colour": 1})
