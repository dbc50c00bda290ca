"""The connector in programs that know nothing of it: local files go on as before."""

import os
import subprocess
import sys
import textwrap

import pytest

from conftest import ROOT

PLUGIN = ROOT / "target/debug/libhyperslab_vol.so"

EVERYTHING = """
    import h5py, numpy as np, sys
    path = sys.argv[1]
    kind = np.dtype([("a", "<i4"), ("b", ">f8"), ("c", h5py.string_dtype())])
    with h5py.File(path, "w", track_order=True) as file:
        file["numbers"] = np.arange(120).reshape(10, 12)
        file["numbers"].attrs["text"] = "hé"
        file["numbers"].attrs["list"] = [1.5, 2.5]
        group = file.create_group("group")
        group["texts"] = ["a", "bc", ""]
        group["sequences"] = np.array([np.arange(3), np.arange(0)], dtype=h5py.vlen_dtype("i4"))
        packed = group.create_dataset("packed", (100,), "i2", chunks=(7,), maxshape=(None,), compression="gzip", shuffle=True)
        packed[3:50:2] = 7
        packed.resize((60,))
        records = file.create_dataset("records", (3,), kind)
        records[1] = (5, 2.5, "x")
        file["hard"], file["soft"] = group["texts"], h5py.SoftLink("/group/packed")
        file["external"] = h5py.ExternalLink("other.h5", "/there")
        file["type"] = np.dtype("f4")
        file["numbers"].dims[0].label = "time"
        refs = file.create_dataset("refs", (2,), h5py.ref_dtype)
        refs[0] = file["numbers"].ref
        regions = file.create_dataset("regions", (1,), h5py.regionref_dtype)
        regions[0] = file["numbers"].regionref[1:3]
        file.copy("group", "copied")
        file.move("hard", "moved")
        file.flush()
        file["group/scale"] = np.arange(10)
        file["group/scale"].make_scale("rows")
        file["numbers"].dims[0].attach_scale(file["group/scale"])
        del file["copied/texts"]
    with h5py.File(path) as file:
        file.visititems(lambda name, node: print(name, node, dict(node.attrs)))
        print(list(file), file["numbers"][2:9:3, ::5], file["soft"][:], file["records"][:])
        print(file[file["refs"][0]].name, file["numbers"][file["regions"][0]])
        print(file.get("external", getlink=True).filename, file["type"].dtype)
        print(file["moved"][:], file["group/packed"].chunks, file["group/packed"].id.get_num_chunks())
        print(file["numbers"] == file["/numbers"], hash(file["numbers"]) == hash(file["numbers"]))
        print(file["numbers"].dims[0].keys(), file.filename.endswith("x.h5"), h5py.h5f.get_obj_count(file.id))
    for name, mode in [("absent.h5", "r"), ("x.h5", "x")]:
        try:
            h5py.File(path.replace("x.h5", name), mode)
        except OSError as reason:
            print(type(reason).__name__)
    try:
        h5py.File(path)["absent"]
    except KeyError as reason:
        print(reason)
"""


@pytest.fixture(scope="session")
def plugins(tmp_path_factory):
    """A folder with the plug-in alone: libhdf5 looks at everything that is there."""
    folder = tmp_path_factory.mktemp("plugins")
    os.symlink(PLUGIN, folder / PLUGIN.name)
    return folder


def run(program, *arguments, plugins=None, config=""):
    """What a program prints, with the connector if there is a folder of plug-ins."""
    surroundings = dict(os.environ)
    if plugins:
        surroundings |= {"HDF5_PLUGIN_PATH": str(plugins), "HDF5_VOL_CONNECTOR": f"hyperslab {config}"}
    command = [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=surroundings)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_local_files_go_on_as_before(tmp_path, plugins):
    for folder in ("native", "ours"):
        (tmp_path / folder).mkdir()
    native = run(EVERYTHING, tmp_path / "native/x.h5")
    ours = run(EVERYTHING, tmp_path / "ours/x.h5", plugins=plugins)
    assert ours == native and "FileExistsError" in native
    # And what they wrote, the other can read.
    read = EVERYTHING[EVERYTHING.index("with h5py.File(path) as file") :]
    read = "    import h5py, sys\n    path = sys.argv[1]\n    " + read
    assert run(read, tmp_path / "native/x.h5", plugins=plugins) == run(read, tmp_path / "ours/x.h5")


def test_several_libraries_in_one_process(tmp_path, plugins):
    program = """
        import importlib, sys
        for name in sys.argv[2:]:
            importlib.import_module(name)
        import h5py, netCDF4
        path = sys.argv[1]
        with h5py.File(path, "w") as file:
            file["a"] = [1, 2, 3]
        with netCDF4.Dataset(path + ".nc", "w") as file:
            file.createDimension("x", 4)
            file.createVariable("v", "f8", ("x",))[:] = 2.5
        with netCDF4.Dataset(path + ".nc") as file, h5py.File(path) as other:
            print(file["v"][:].tolist(), other["a"][:].tolist())
    """
    for order in (("h5py", "netCDF4"), ("netCDF4", "h5py")):
        assert "[2.5, 2.5, 2.5, 2.5] [1, 2, 3]" in run(program, tmp_path / "x.h5", *order, plugins=plugins)
