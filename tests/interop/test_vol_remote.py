"""The connector on a simulated S3: what h5py writes there, h5py and Zarr tools read."""

import json
import os
import shutil
import signal
import subprocess

import h5py
import numpy as np
import pytest
import zarr

from cloud import Cloud
from conftest import ROOT, Hyperslab
from test_vol import EVERYTHING, plugins, run as run_locally  # noqa: F401


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


def test_links_lead_to_other_files(run, tmp_path):
    program = """
        import h5py, sys
        folder = sys.argv[1]
        with h5py.File(f"{folder}/target.h5", "w") as file:
            file["group/data"] = [1, 2, 3]
            file["group"].attrs["x"] = 5
        with h5py.File(f"{folder}/main.h5", "w") as file:
            file["beside"] = h5py.ExternalLink("target.h5", "/group")
            file["far"] = h5py.ExternalLink(f"{folder}/target.h5", "group/data")
            file["nowhere"] = h5py.ExternalLink("absent.h5", "/")
            file["soft"] = h5py.SoftLink("/beside/data")
        with h5py.File(f"{folder}/main.h5", "r+") as file:
            print(file["beside/data"][:], file["far"][:], file["soft"][:], file["beside"].attrs["x"])
            print(file["beside"].file.filename == f"{folder}/target.h5", "nowhere" in file, list(file))
            file["beside"].create_dataset("new", data=[7, 8])
            file["far"][0] = 9
            try:
                file["nowhere"]
            except KeyError:
                print("KeyError")
        with h5py.File(f"{folder}/target.h5") as file:
            print(file["group/new"][:], file["group/data"][:])
    """
    (tmp_path / "native").mkdir()
    native = run(program, tmp_path / "native", native=True)
    assert run(program, "s3://data/links") == native
    assert "[9 2 3]" in native


def test_virtual_datasets_follow_their_sources(run, tmp_path):
    program = """
        import h5py, numpy as np, sys
        folder = sys.argv[1]
        for i in range(3):
            with h5py.File(f"{folder}/source{i}.h5", "w") as file:
                file.create_dataset("data", data=np.arange(4, dtype=">i4") + 10 * i, maxshape=(None,))
        layout = h5py.VirtualLayout((4, 4), "i4")
        for i in range(4):
            layout[i] = h5py.VirtualSource(f"source{i}.h5", "data", (4,))
        with h5py.File(f"{folder}/virtual.h5", "w") as file:
            file.create_virtual_dataset("all", layout, fillvalue=-5)
            own = file.create_dataset("own", data=np.arange(6.0), maxshape=(None,), chunks=(3,))
            endless = h5py.VirtualLayout((6,), "f8", maxshape=(None,))
            endless[: h5py.UNLIMITED] = h5py.VirtualSource(own)[: h5py.UNLIMITED]
            file.create_virtual_dataset("endless", endless)
            print(file["endless"][:], file["all"][1:, ::3])
            own.resize((8,))
            own[6:] = [70, 80]
            print(file["endless"].shape, file["endless"][4:])
        with h5py.File(f"{folder}/virtual.h5") as file:
            print(file["all"][...], file["all"].is_virtual, file["endless"][::2])
    """
    (tmp_path / "native").mkdir()
    native = run(program, tmp_path / "native", native=True)
    assert run(program, "s3://data/virtual") == native


def test_texts_are_strings_of_zarr(run, tmp_path):
    program = """
        import h5py, numpy as np, sys
        with h5py.File(sys.argv[1], "w") as file:
            texts = file.create_dataset("texts", (4, 3), h5py.string_dtype(), chunks=(2, 2), maxshape=(None, 3))
            texts[1:3, 1] = ["a", "hé"]
            texts.resize((5, 3))
            texts[4] = ["x", "", "日本"]
            file["scalar"] = "one"
            odd = file.create_dataset("odd", (2,), h5py.string_dtype())
            odd[0] = "fine"
            odd[1] = b"\\xff\\xfe"
        with h5py.File(sys.argv[1], "r+") as file:
            file["texts"][0, 0] = "later"
            file.copy("texts", "copied")
        with h5py.File(sys.argv[1]) as file:
            print(file["texts"][:].tolist(), file["texts"].fillvalue, file["scalar"][()], file["odd"][:].tolist())
            print(file["texts"].asstr()[::2, 2], file["copied"][4:].tolist(), file["texts"].chunks)
    """
    native = run(program, tmp_path / "x.h5", native=True)
    assert run(program, "s3://data/texts/x.h5") == native
    Hyperslab().run("cp", "s3://data/texts/x.h5", tmp_path / "copy.zarr")
    group = zarr.open_group(tmp_path / "copy.zarr", mode="r")
    assert group["texts"][4].tolist() == ["x", "", "日本"]
    assert group["texts"][0].tolist() == ["later", "", ""]
    assert group["scalar"][()] == "one"
    # libhdf5 itself cannot read fill values of texts from a file that it may not write to.
    said = run("""
        import h5py, sys
        with h5py.File(sys.argv[1], "w") as file:
            file.create_dataset("a", (3,), h5py.string_dtype(), fillvalue="none", chunks=(2,))[1] = "x"
        print(h5py.File(sys.argv[1])["a"][:].tolist())
    """, "s3://data/texts/filled.h5")
    assert said.strip() == "[b'none', b'x', b'none']"


ZARR = """
    import numpy as np, os, sys, zarr
    from obstore.store import S3Store
    from zarr.storage import ObjectStore
    env = os.environ
    def group(mode):
        store = S3Store(
            "data", prefix=sys.argv[1], endpoint=env["AWS_ENDPOINT_URL"], access_key_id=env["AWS_ACCESS_KEY_ID"],
            secret_access_key=env["AWS_SECRET_ACCESS_KEY"], region=env["AWS_REGION"], client_options={"allow_http": True},
        )
        # Who changes metadata must not start from the copy in the root, which may be old.
        return zarr.open_group(ObjectStore(store), mode=mode, use_consolidated=None if mode == "r" else False)
"""


def test_what_zarr_made_is_a_file(run, tmp_path):
    """zarr-python makes a hierarchy, h5py reads and changes it, zarr-python reads that."""
    run(ZARR + """
    root = group("w")
    root.attrs["title"] = "made by zarr"
    root.create_array("g/a", shape=(6, 8), chunks=(4, 4), dtype="f4", fill_value=2.5)[1:3] = 7
    root["g/a"].attrs["unit"] = "m"
    root.create_array("texts", shape=(2,), chunks=(2,), dtype=str)[:] = np.array(["x", "yy"], dtype=object)
    """, "made.h5", native=True)
    said = run("""
        import h5py, sys
        with h5py.File(sys.argv[1], "r+") as file:
            print(sorted(file), file.attrs["title"], file["g/a"].attrs["unit"], file["g/a"][0:3, 0].tolist())
            print(file["texts"][:].tolist(), file["g/a"].chunks, file["g/a"].dtype)
            file["g/a"][0, 0] = -1
            file["g/new"] = [1, 2, 3]
            file["soft"] = h5py.SoftLink("/g/a")
    """, "s3://data/made.h5").splitlines()
    assert said == ["['g', 'texts'] made by zarr m [2.5, 7.0, 7.0]", "[b'x', b'yy'] (4, 4) float32"]
    seen = run(ZARR + """
    root = group("r")
    print(root["g/a"][0, :2].tolist(), root["g/new"][:].tolist(), root["g/a"].attrs["unit"])
    """, "made.h5", native=True)
    assert seen.strip() == "[-1.0, 2.5] [1, 2, 3] m"


def test_what_zarr_changed_is_seen(run, tmp_path):
    """h5py makes a file, zarr-python changes it, h5py sees that and still has its links."""
    run("""
        import h5py, numpy as np, sys
        with h5py.File(sys.argv[1], "w") as file:
            file.create_dataset("a", data=np.arange(6), maxshape=(None,), chunks=(4,))
            file["fixed"] = np.arange(4.0)
            file["gone"] = [1]
            file["soft"] = h5py.SoftLink("/a")
            file["refs"] = np.array([file["a"].ref], dtype=h5py.ref_dtype)
            file.attrs["kept"] = 1
            file.attrs["old"] = "x"
    """, "s3://data/changed-by-zarr.h5")
    run(ZARR + """
    root = group("r+")
    a = root["a"]
    a.resize((9,))
    a[6:] = [60, 70, 80]
    a.attrs["unit"] = "m"
    root["fixed"].resize((6,))
    del root["gone"]
    del root.attrs["old"]
    root.attrs["new"] = [1, 2]
    root.create_array("made", shape=(2,), dtype="u1")[:] = [3, 4]
    zarr.consolidate_metadata(root.store)
    """, "changed-by-zarr.h5", native=True)
    said = run("""
        import h5py, sys
        with h5py.File(sys.argv[1]) as file:
            print(sorted(file), dict((k, file.attrs[k].tolist()) for k in file.attrs))
            print(file["soft"][:].tolist(), file["a"].attrs["unit"], file["made"][:].tolist(), file["fixed"].shape)
            print(file[file["refs"][0]].name)
    """, "s3://data/changed-by-zarr.h5").splitlines()
    assert said == [
        "['a', 'fixed', 'made', 'refs', 'soft'] {'kept': 1, 'new': [1, 2]}",
        "[0, 1, 2, 3, 4, 5, 60, 70, 80] m [3, 4] (6,)",
        "/a",
    ]


def test_a_file_may_be_closed_before_what_is_in_it(run):
    said = run("""
        import h5py, numpy as np, sys
        fid = h5py.h5f.create(sys.argv[1].encode())
        space = h5py.h5s.create_simple((3,))
        dataset = h5py.h5d.create(fid, b"late", h5py.h5t.STD_I32LE, space)
        fid._close()
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([4, 5, 6], "i4"))
        del dataset
        print(h5py.File(sys.argv[1])["late"][:].tolist())
    """, "s3://data/late.h5")
    assert said.strip() == "[4, 5, 6]"


def test_a_second_writer_is_told(run):
    said = run("""
        import h5py, os, subprocess, sys
        with h5py.File(sys.argv[1], "w") as file:
            file["a"] = [1]
        first = h5py.File(sys.argv[1], "r+")
        first["b"] = [2]
        other = "import h5py, sys; h5py.File(sys.argv[1], 'r+').create_group('other')"
        subprocess.run([sys.executable, "-c", other, sys.argv[1]], check=True)
        try:
            first.close()
        except Exception as reason:
            print("another program has changed" in str(reason))
    """, "s3://data/two-writers.h5").splitlines()
    assert said == ["True"]
    assert run("import h5py, sys; print(sorted(h5py.File(sys.argv[1])))", "s3://data/two-writers.h5") == "['a', 'other']\n"


def test_forks_and_threads(run, tmp_path):
    said = run("""
        import h5py, numpy as np, os, sys, threading
        with h5py.File(sys.argv[1], "w") as file:
            file.create_dataset("a", data=np.arange(10000).reshape(100, 100), chunks=(10, 100))
        file = h5py.File(sys.argv[1])
        assert file["a"][3, 4] == 304
        child = os.fork()
        if child == 0:
            right = file["a"][50:60].sum() == np.arange(5000, 6000).sum()
            os._exit(0 if right else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        wrong = []
        def read(k):
            for i in range(k, 100, 8):
                if not np.array_equal(file["a"][i], np.arange(100 * i, 100 * i + 100)):
                    wrong.append(i)
        threads = [threading.Thread(target=read, args=(k,)) for k in range(8)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        print(wrong)
    """, "s3://data/forked.h5").splitlines()
    assert said == ["0", "[]"]


def test_a_thousand_opens_leave_nothing_behind(run):
    said = run("""
        import h5py, os, sys
        def resident():
            return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        with h5py.File(sys.argv[1], "w") as file:
            file["a"] = list(range(100))
        seen = []
        for i in range(1000):
            with h5py.File(sys.argv[1]) as file:
                file["a"][:10]
            if i in (200, 999):
                seen.append((resident(), len(os.listdir("/proc/self/fd"))))
        (before, open_before), (after, open_after) = seen
        print(after - before < 8 << 20, open_after <= open_before + 1, after - before, open_before, open_after)
    """, "s3://data/often.h5")
    assert said.startswith("True True"), said


def test_reads_are_traced(run, tmp_path):
    run("""
        import h5py, numpy as np, sys
        with h5py.File(sys.argv[1], "w") as file:
            file.create_dataset("g/a", data=np.zeros((20, 30)), chunks=(5, 5))
        with h5py.File(sys.argv[1]) as file:
            for i in range(4):
                file["g/a"][i : i + 2, 3:9]
    """, "s3://data/traced.h5", config=f"trace={tmp_path / 'traces'}")
    told = json.loads(Hyperslab().run("--json", "trace", "show", tmp_path / "traces"))
    (array,) = told["arrays"]
    assert array["url"] == "s3://data/traced.h5/g/a" and array["reads"] == 4
    assert array["shapes"] == [{"shape": [2, 6], "reads": 4}] and array["bytes"] == 4 * 2 * 6 * 8
    Hyperslab().run("trace", "merge", tmp_path / "traces", "-o", tmp_path / "all.trace")
    again = json.loads(Hyperslab().run("--json", "trace", "show", tmp_path / "all.trace"))
    assert again["arrays"] == told["arrays"]


def test_local_files_can_be_read_by_the_engine(run, tmp_path):
    with h5py.File(tmp_path / "local.h5", "w") as file:
        file.create_dataset("packed", data=np.arange(1200).reshape(30, 40), chunks=(7, 9), compression="gzip")
        file["plain"] = np.arange(50, dtype=">f4")
        file["texts"] = ["a", "b"]
        file["link"] = h5py.ExternalLink("local.h5", "/plain")
    program = """
        import h5py, sys
        with h5py.File(sys.argv[1]) as file:
            print(file["packed"][3:9:2, ::11].tolist(), file["plain"][45:].tolist(), file["texts"][:].tolist())
            print(file["link"][:3].tolist(), file["packed"].id.get_num_chunks(), file.driver, file.filename)
        with h5py.File(sys.argv[1], "r+") as file:
            file["plain"][0] = 5
            print(file["plain"][0])
    """
    shutil.copy(tmp_path / "local.h5", tmp_path / "native.h5")
    native = run(program, tmp_path / "native.h5", native=True).replace("native.h5", "local.h5")
    traces = tmp_path / "traces"
    ours = run(program, tmp_path / "local.h5", config=f"accelerate=1;trace={traces}")
    assert ours == native
    told = json.loads(Hyperslab().run("--json", "trace", "show", traces))
    assert {one["url"].rsplit("/", 1)[-1] for one in told["arrays"]} >= {"packed", "plain"}


def test_the_command_line_knows_the_connector(run, tmp_path, plugins):  # noqa: F811
    hyperslab = Hyperslab()
    said = hyperslab.run("vol", "env", "root=s3://bucket/run", "phi=0").splitlines()
    assert said[0].startswith("export HDF5_PLUGIN_PATH=")
    assert said[1] == "export HDF5_VOL_CONNECTOR='hyperslab root=s3://bucket/run;phi=0'"
    wrong = subprocess.run([hyperslab.program, "vol", "env", "colour=red"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "there is no setting" in wrong.stderr
    surroundings = os.environ | {"HDF5_PLUGIN_PATH": str(hyperslab.program.parent), "HDF5_VOL_CONNECTOR": "hyperslab"}
    surroundings["PATH"] = f"{os.path.dirname(os.sys.executable)}:{surroundings['PATH']}"
    done = subprocess.run([hyperslab.program, "--json", "doctor"], capture_output=True, text=True, env=surroundings)
    told = json.loads(done.stdout)
    loads = [check for check in told["checks"] if "loads the connector" in json.dumps(check)]
    assert told["healthy"] and len(loads) >= 2, done.stdout
    # The command line's own libhdf5 is none that the connector serves, whatever the environment says.
    np.save(tmp_path / "cells.npy", np.arange(6).reshape(2, 3))
    for command in (["put", "cells.npy", "x.zarr/a"], ["cp", "x.zarr", "x.h5"]):
        subprocess.run([hyperslab.program, *command], cwd=tmp_path, env=surroundings, check=True)
    with h5py.File(tmp_path / "x.h5") as file:
        assert file["a"][1, 2] == 5


@pytest.fixture(scope="session")
def c_program(tmp_path_factory):
    """A program in C, with the libhdf5 that the build made."""
    built = sorted(ROOT.glob("target/debug/build/hdf5-metno-src-*/out/include/hdf5.h"))
    assert built, "libhdf5 was not built"
    library = built[0].parents[1]
    zlib = sorted(ROOT.glob("target/debug/build/libz-sys-*/out/lib/libz.a"))
    program = tmp_path_factory.mktemp("c") / "program"
    source = ROOT / "tests/interop/program.c"
    # The plug-in finds the functions of a library that is part of the program by their names.
    command = ["cc", "-o", program, source, f"-I{library}/include", "-rdynamic", f"{library}/lib/libhdf5.a"]
    subprocess.run([*command, *(zlib[:1] or ["-lz"]), "-ldl", "-lm", "-lpthread"], check=True)
    return program


def test_a_program_in_c_runs_unchanged(c_program, run, plugins, tmp_path, monkeypatch):  # noqa: F811
    native = subprocess.run([c_program, tmp_path / "x.h5"], capture_output=True, text=True, check=True).stdout
    monkeypatch.setenv("HDF5_PLUGIN_PATH", str(plugins))
    monkeypatch.setenv("HDF5_VOL_CONNECTOR", "hyperslab")
    remote = subprocess.run([c_program, "s3://data/c/x.h5"], capture_output=True, text=True)
    assert remote.returncode == 0, remote.stderr
    assert remote.stdout == native
    # And h5py reads what it wrote.
    said = run("import h5py, sys; f = h5py.File(sys.argv[1]); print(f['table'].dtype, f['list'].attrs['answer'])", "s3://data/c/x.h5")
    assert said.strip() == ">i2 42"


def test_xarray_and_tensorstore_read_what_h5py_wrote(run):
    run("""
        import h5py, numpy as np, sys
        with h5py.File(sys.argv[1], "w") as file:
            file["time"] = np.arange(3.0)
            data = file.create_dataset("temperature", data=np.arange(12, dtype="<f4").reshape(3, 4), chunks=(2, 4))
            file["time"].make_scale("time")
            data.dims[0].attach_scale(file["time"])
            data.attrs["units"] = "K"
    """, "s3://data/tools.zarr")
    said = run(ZARR + """
    import tensorstore, xarray
    opened = xarray.open_zarr(group("r").store, consolidated=True)
    print(opened["temperature"].dims[0], float(opened["temperature"].sel(time=2.0).sum()), opened["temperature"].attrs["units"])
    spec = {"driver": "zarr3", "kvstore": {
        "driver": "s3", "bucket": "data", "path": "tools.zarr/temperature/",
        "endpoint": env["AWS_ENDPOINT_URL"], "aws_region": env["AWS_REGION"],
    }}
    print(tensorstore.open(spec).result().read().result().sum())
    """, "tools.zarr", native=True).splitlines()
    assert said == ["time 38.0 K", "66.0"]


def test_netcdf_by_xarray_goes_there_and_back(run, tmp_path):
    program = """
        import numpy as np, sys, xarray
        made = xarray.Dataset(
            {"t": (("time", "x"), np.arange(12.0).reshape(3, 4), {"units": "K"}), "name": ("x", list("abcd"))},
            {"time": np.array(["2020-01-01", "2020-01-02", "2020-01-05"], "M8[ns]"), "x": np.arange(4)},
            {"title": "round trip"},
        )
        made.to_netcdf(sys.argv[1], engine="h5netcdf", encoding={"t": {"zlib": True, "chunksizes": (2, 2)}})
        with xarray.open_dataset(sys.argv[1], engine="h5netcdf") as read:
            print(read.load().identical(made), read["t"].encoding["chunksizes"], read.attrs)
    """
    native = run(program, tmp_path / "x.nc", native=True)
    assert run(program, "x.nc", config="root=s3://data/netcdf") == native
    assert native.startswith("True")


def test_sources_of_virtual_datasets_have_several_names(run, tmp_path):
    """The array of a dataset is at one of its names, and the mapping may name another."""
    program = """
        import h5py, numpy as np, sys
        with h5py.File(sys.argv[1], "w") as file:
            file["z"] = np.arange(6)
            layout = h5py.VirtualLayout((6,), "i8")
            layout[:] = h5py.VirtualSource(file["z"])
            file.create_virtual_dataset("v", layout, fillvalue=7)
            file["a"] = file["z"]
            none = h5py.VirtualLayout((2, 0), "i8")
            none[0] = h5py.VirtualSource(file.create_dataset("empty", (0,), "i8"))
            file.create_virtual_dataset("none", none)
        with h5py.File(sys.argv[1]) as file:
            print(file["v"][()].tolist(), file["none"][()].shape)
    """
    native = run(program, tmp_path / "x.h5", native=True)
    assert native.startswith("[0, 1, 2, 3, 4, 5]")
    assert run(program, "s3://data/names/x.h5") == native


def test_files_that_links_led_to_are_closed(run, tmp_path):
    """Another open of such a file may ask for other locking, which one that is open still would refuse."""
    program = """
        import h5py, sys
        name, other = sys.argv[1:]
        with h5py.File(other, "w") as file:
            file["group/data"] = [1, 2, 3]
        with h5py.File(name, "w") as file:
            file["link"] = h5py.ExternalLink(other, "/group")
        with h5py.File(name, "r", locking=True) as file:
            print(file["link/data"][()].tolist())
            for locking in (False, "best-effort", True):
                group = file.get("link", elink_locking=locking)
                print(group.file.id.get_access_plist().get_file_locking(), list(group))
                del group
    """
    native = run(program, tmp_path / "x.h5", tmp_path / "y.h5", native=True)
    assert run(program, "s3://data/closed/x.h5", "s3://data/closed/y.h5") == native


def test_file_objects_are_the_programs_own(run, tmp_path):
    program = """
        import h5py, io, os, sys
        os.chdir(sys.argv[1])
        memory = io.BytesIO()
        with h5py.File(memory, "w") as file:
            file["x"] = [1, 2]
        with h5py.File(memory) as file:
            print(file.driver, file["x"][()].tolist(), memory.getvalue()[:4])
    """
    native = run(program, tmp_path, native=True)
    assert run(program, tmp_path, config=f"map={tmp_path}=s3://data/objects") == native


def test_the_newest_format_is_for_every_library(run, tmp_path):
    program = """
        import h5py, sys
        for version in ("latest", ("v108", "v112")):
            with h5py.File(sys.argv[1], "w", libver=version) as file:
                file["x"] = [1, 2]
            with h5py.File(sys.argv[1], "r+") as file:
                file["y"] = 3
                print(list(file), file["x"][()].tolist())
    """
    native = run(program, tmp_path / "x.h5", native=True)
    assert run(program, "s3://data/newest/x.h5") == native


def test_a_file_is_as_it_was_flushed_last(run, tmp_path):
    """A writer that was killed after an array grew, and before the hierarchy was written."""
    url = f"file://{tmp_path}/killed.zarr"
    program = """
        import h5py, numpy as np, sys
        with h5py.File(sys.argv[1], "w") as file:
            file.create_dataset("log", data=np.arange(3), maxshape=(None,), chunks=(2,))
            texts = file.create_dataset("texts", (2,), h5py.string_dtype(), maxshape=(None,), chunks=(2,))
            texts[:] = ["a", "b"]
    """
    run(program, url)
    for name, length in (("log", 5), ("texts", 4)):
        metadata = tmp_path / "killed.zarr" / name / "zarr.json"
        described = json.loads(metadata.read_text())
        described["shape"] = [length]
        metadata.write_text(json.dumps(described))
    program = """
        import h5py, sys
        with h5py.File(sys.argv[1], "r") as file:
            print(file["log"].shape, file["log"][...].tolist(), file["log"][1:].tolist(), file["texts"].asstr()[...].tolist())
    """
    assert run(program, url).split("\n")[0] == "(3,) [0, 1, 2] [1, 2] ['a', 'b']"
    # One who writes takes the array as it is, since another tool may have made it longer.
    program = """
        import h5py, sys
        with h5py.File(sys.argv[1], "r+") as file:
            file["log"][0] = 7
            print(file["log"].shape, file["log"][...].tolist())
    """
    assert run(program, url).split("\n")[0] == "(5,) [7, 1, 2, 0, 0]"
