"""h5py on any store, through the connector that comes with the package."""

import os
import subprocess
import sys

import pytest
from conftest import ROOT

import hyperslab as hs

PLUGIN = ROOT / "target" / "debug" / "libhyperslab_vol.so"


def run(program, environment):
    done = subprocess.run([sys.executable, "-c", program], env=os.environ | environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def surroundings(cloud, monkeypatch, tmp_path):
    """A folder with the plug-in alone, as the wheel has it."""
    folder = tmp_path / "plugin"
    folder.mkdir()
    (folder / PLUGIN.name).symlink_to(PLUGIN)
    monkeypatch.setenv("HYPERSLAB_VOL", str(folder / PLUGIN.name))
    return cloud.env | {"PYTHONPATH": str(ROOT / "python"), "HYPERSLAB_VOL": str(folder / PLUGIN.name)}


WRITE = """
import hyperslab as hs
hs.enable(cache="64MiB")
import h5py, numpy as np
with h5py.File("s3://data/h5py/x.h5", "w") as file:
    file["a"] = np.arange(10)
print(hs.open("s3://data/h5py/x.h5/a")[2:5].tolist())
"""


def test_enable_before_import(surroundings):
    assert run(WRITE, surroundings) == "[2, 3, 4]"


def test_enable_after_import_is_an_error(surroundings):
    program = "import h5py, hyperslab as hs\ntry: hs.enable()\nexcept hs.InvalidError as e: print(e.hint)"
    assert "before" in run(program, surroundings) or "first" in run(program, surroundings)


def test_the_environment_of_another_program(surroundings):
    found = hs.h5py_env(root="s3://data/env", phi=0)
    assert found["HDF5_VOL_CONNECTOR"] == "hyperslab root=s3://data/env;phi=0"
    program = "import h5py\nwith h5py.File('y.h5', 'w') as f: f['b'] = 3\nprint(h5py.File('y.h5')['b'][()])"
    assert run(program, surroundings | found) == "3"
    with pytest.raises(hs.InvalidError, match="colour"):
        hs.h5py_env(colour="red")
