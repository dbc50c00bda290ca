"""Errors: a tree of exceptions that are also Python's own, with a sentence and a hint."""

import pickle

import numpy as np
import pytest

import hyperslab as hs


def test_the_tree_of_exceptions():
    for ours, builtin in [
        (hs.InvalidError, ValueError), (hs.NotFoundError, KeyError), (hs.NotFoundError, FileNotFoundError),
        (hs.DeniedError, PermissionError), (hs.DeadlineError, TimeoutError), (hs.UnavailableError, OSError),
        (hs.DataError, ValueError), (hs.ConflictError, RuntimeError),
    ]:  # fmt: skip
        assert issubclass(ours, hs.Error) and issubclass(ours, builtin)
    error = hs.DeniedError("no", "try")
    assert str(error) == "no (hint: try)" and error.hint == "try"
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is hs.DeniedError and str(again) == str(error)


def test_nothing_there(tmp_path, s3):
    for where in [tmp_path / "none.zarr", f"{s3}/none.zarr", tmp_path / "none.h5"]:
        with pytest.raises(FileNotFoundError):
            hs.open(where)


def test_wrong_keys_are_denied_and_not_told(s3, monkeypatch):
    hs.save(f"{s3}/denied/a.zarr", np.zeros(3))
    with pytest.raises(PermissionError) as raised:
        hs.open(f"{s3}/denied/a.zarr", storage_options={"key": "nobody", "secret": "hunter2"})
    assert "hunter2" not in str(raised.value)


def test_no_credentials_is_one_sentence(s3, monkeypatch, tmp_path):
    hs.save(f"{s3}/bare/a.zarr", np.zeros(3))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(hs.Error) as raised:
        hs.open(f"{s3}/bare/a.zarr", retries=None, deadline="5s", storage_options={"retries": 0})
    assert raised.value.hint


@pytest.mark.parametrize(
    "call",
    [
        lambda f: hs.open("ftp://h/x"),
        lambda f: hs.open(f / "a.zarr", colour="red"),
        lambda f: hs.open(f / "a.zarr", phi=-1),
        lambda f: hs.open(3),
        lambda f: hs.open("filecache::zip::s3://b/k"),
        lambda f: hs.open("s3://b/k", storage_options={"colour": 1}),
        lambda f: hs.create(f / "b.zarr", shape=(-1,), dtype="i4"),
        lambda f: hs.create(f / "b.zarr", shape=(2,), dtype="nonsense"),
        lambda f: hs.create(f / "b.zarr", shape=(2,), dtype="S"),
        lambda f: hs.create(f / "b.zarr", shape=(2,), dtype="i4", chunks=(1, 1)),
        lambda f: hs.create(f / "b.zarr", shape=(2,), dtype="i4", chunks=(2,), shards=(3,)),
        lambda f: hs.create(f / "b.zarr", shape=(2,), dtype="i4", compression="magic"),
        lambda f: hs.create(f / "b.zarr", shape=(1.5,), dtype="i4"),
        lambda f: hs.create(f / "b.zarr", shape=(2,), dtype="i4", dimension_names=["a", "b"]),
        lambda f: hs.open_group(f / "a.zarr"),
        lambda f: hs.open(f / "a.zarr")["x"] if False else hs.open(f / "a.zarr").read(out=3),
    ],
)
def test_wrong_calls_are_invalid(call, tmp_path):
    hs.save(tmp_path / "a.zarr", np.zeros(3))
    with pytest.raises((hs.InvalidError, TypeError)) as raised:
        call(tmp_path)
    assert "\n" not in str(raised.value)


def test_damaged_chunks_are_data_errors(tmp_path):
    array = hs.save(tmp_path / "a.zarr", np.arange(100), chunks=50)
    chunk = tmp_path / "a.zarr" / "c" / "0"
    chunk.write_bytes(chunk.read_bytes()[:10])
    with pytest.raises(hs.DataError) as raised:
        array[...]
    assert "c/0" in str(raised.value)


def test_what_is_there_is_not_overwritten(tmp_path):
    hs.save(tmp_path / "a.zarr", np.zeros(3))
    with pytest.raises(hs.ConflictError):
        hs.save(tmp_path / "a.zarr", np.ones(3))
    hs.save(tmp_path / "a.zarr", np.ones(3), overwrite=True)


def test_values_that_do_not_fit_are_numpys_errors(tmp_path):
    array = hs.save(tmp_path / "a.zarr", np.zeros((2, 3)))
    with pytest.raises(ValueError, match="broadcast"):
        array[...] = np.zeros(4)
    with pytest.raises(ValueError):
        array[0] = "text"
    assert not array[...].any()
