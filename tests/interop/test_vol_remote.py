"""The connector on a simulated S3: what h5py writes there, h5py and Zarr tools read."""

import json
import os
import signal
import subprocess

import h5py
import numpy as np
import pytest
import zarr

from conftest import Hyperslab
from test_vol import EVERYTHING, plugins, run as run_locally  # noqa: F401


class Cloud:
    """A simulated S3 with one bucket."""

    def __init__(self):
        program = [Hyperslab().program, "sim", "--bucket", "data", "--json"]
        self.process = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        self.env = json.loads(line)["env"]

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(20)


@pytest.fixture(scope="module")
def cloud():
    cloud = Cloud()
    yield cloud
    cloud.stop()


@pytest.fixture
def run(cloud, plugins, monkeypatch):  # noqa: F811
    for name, value in cloud.env.items():
        monkeypatch.setenv(name, value)

    def run(program, *arguments, config="", native=False):
        return run_locally(program, *arguments, plugins=None if native else plugins, config=config)

    return run


def test_everything_there_and_back(run, tmp_path):
    """The same program, on a local file and on one in a bucket, prints the same."""
    native = run(EVERYTHING, tmp_path / "x.h5", native=True)
    remote = run(EVERYTHING, "s3://data/everything/x.h5")
    for ours, theirs in zip(remote.splitlines(), native.splitlines(), strict=True):
        assert ours == theirs


def test_zarr_tools_read_what_h5py_wrote(run, tmp_path, cloud):
    program = """
        import h5py, numpy as np, sys
        with h5py.File(sys.argv[1], "w") as file:
            file.attrs["title"] = "x"
            data = file.create_dataset("g/packed", (30, 40), "<f4", chunks=(7, 9), compression="gzip", fillvalue=2.5)
            data[3:20, ::3] = np.arange(17 * 14).reshape(17, 14)
            data.attrs["unit"] = "m"
            file["whole"] = np.arange(1000, dtype=">i4").reshape(10, 100)
            file["g/scalar"] = 7.5
    """
    run(program, "s3://data/tools/x.h5")
    hyperslab = Hyperslab()
    expected = np.full((30, 40), 2.5, "<f4")
    expected[3:20, ::3] = np.arange(17 * 14).reshape(17, 14)
    assert np.array_equal(hyperslab.get("s3://data/tools/x.h5/g/packed", tmp_path), expected)
    copy = tmp_path / "copy.zarr"
    hyperslab.run("cp", "s3://data/tools/x.h5", copy)
    group = zarr.open_group(copy, mode="r")
    assert group.attrs["title"] == "x" and group["g/packed"].attrs["unit"] == "m"
    assert np.array_equal(group["g/packed"][...], expected)
    assert np.array_equal(group["whole"][...], np.arange(1000).reshape(10, 100))
    assert group["g/scalar"][()] == 7.5


def test_files_can_be_changed_and_opened_again(run, tmp_path):
    program = """
        import h5py, numpy as np, sys
        name = sys.argv[1]
        with h5py.File(name, "w") as file:
            file.create_dataset("a", data=np.arange(100.0), chunks=(7,), maxshape=(None,))
            file["b"] = np.arange(6).reshape(2, 3)
        with h5py.File(name, "r+") as file:
            file["a"][5:50:5] = -1
            file.create_group("copies")
            file.copy("a", "copies/a")
            file["a"].resize((120,))
            file["a"][110:] = 3
            file["c/d"] = [1, 2, 3]
            file.move("b", "moved/b")
            file.create_group("group")
            file.copy("moved", "group/again")
            del file["c/d"]
            file["c/d"] = [4, 5]
            with h5py.File(name, "r+") as again:
                again["c"].attrs["x"] = 1
                assert file["c"].attrs["x"] == 1
        with h5py.File(name) as file:
            expected = np.zeros(120)
            expected[:100] = np.arange(100)
            expected[5:50:5] = -1
            expected[110:] = 3
            assert np.array_equal(file["a"][:], expected)
            assert file["moved/b"][:].tolist() == [[0, 1, 2], [3, 4, 5]] and "b" not in file
            assert file["c/d"][:].tolist() == [4, 5] and file["c"].attrs["x"] == 1
            assert file["copies/a"][:].tolist() == file["a"][:100].tolist() and file["copies/a"].chunks == (7,)
            assert file["group/again/b"][:].tolist() == [[0, 1, 2], [3, 4, 5]]
            with h5py.File(sys.argv[2], "w") as local:
                file.copy("moved", local)
                local.copy(file["a"], "a")
            try:
                file["a"][0] = 1
            except OSError:
                print("read only")
        with h5py.File(sys.argv[2]) as local, h5py.File(name) as file:
            assert local["moved/b"][:].tolist() == [[0, 1, 2], [3, 4, 5]]
            assert np.array_equal(local["a"][:], file["a"][:])
        for name, mode in [("s3://data/absent.h5", "r"), (name, "x"), ("s3://absent/x.h5", "r")]:
            try:
                h5py.File(name, mode)
            except OSError as reason:
                print(type(reason).__name__, reason)
    """
    said = run(program, "s3://data/changed/x.h5", tmp_path / "local.h5").splitlines()
    assert said[0] == "read only"
    assert said[1].startswith("FileNotFoundError") and said[2].startswith("FileExistsError")
    assert said[3].startswith("OSError") or said[3].startswith("FileNotFoundError")


def test_ordinary_files_in_a_bucket_are_read_in_place(run, tmp_path):
    file = tmp_path / "real.h5"
    with h5py.File(file, "w") as opened:
        opened.create_dataset("packed", data=np.arange(1200.0).reshape(30, 40), chunks=(7, 9), compression="gzip")
        opened["texts"] = ["a", "bc"]
        opened["big"] = np.arange(500, dtype=">i4")
        opened.attrs["title"] = "real"
    upload(file, "real.h5")
    program = """
        import h5py, numpy as np, sys
        with h5py.File(sys.argv[1]) as file:
            assert file.filename == sys.argv[1] and file.attrs["title"] == "real"
            print(file["packed"][3:9:2, ::11].tolist(), file["texts"][:].tolist(), file["big"][490:].tolist())
        try:
            h5py.File(sys.argv[1], "r+")
        except OSError as reason:
            print(reason)
    """
    said = run(program, "s3://data/real.h5").splitlines()
    with h5py.File(file) as opened:
        values = [opened["packed"][3:9:2, ::11], opened["texts"][:], opened["big"][490:]]
    assert said[0] == " ".join(str(value.tolist()) for value in values)
    assert "read only" in said[1]


def upload(file, name):
    """An object as it is."""
    import obstore
    from obstore.store import S3Store

    env = os.environ
    store = S3Store(
        "data",
        endpoint=env["AWS_ENDPOINT_URL"],
        access_key_id=env["AWS_ACCESS_KEY_ID"],
        secret_access_key=env["AWS_SECRET_ACCESS_KEY"],
        region=env.get("AWS_REGION", "us-east-1"),
        client_options={"allow_http": True},
    )
    obstore.put(store, name, file.read_bytes())


def test_names_are_mapped(run, tmp_path):
    program = """
        import h5py, os, sys
        with h5py.File(sys.argv[1], "w") as file:
            file["a"] = [1, 2]
            print(file.filename)
        with h5py.File(sys.argv[1]) as file:
            print(file["a"][:].tolist(), os.path.exists(sys.argv[1]))
    """
    name = str(tmp_path / "mapped.h5")
    said = run(program, name, config=f"map={tmp_path}=s3://data/mapped").splitlines()
    assert said == [name, "[1, 2] False"]
    said = run(program, "plain.h5", config="root=s3://data/root").splitlines()
    assert said == ["plain.h5", "[1, 2] False"]
    with pytest.raises(AssertionError, match="there is no setting"):
        run(program, name, config="colour=red")
