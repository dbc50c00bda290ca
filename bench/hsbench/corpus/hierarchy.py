"""Groups of every kind, links, attributes, committed types, dimension scales."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np

from . import Case

LIBVERS = ("earliest", "v110", "v114")


def groups(libver: str, count: int, ordered: bool):
    def write(path: Path) -> None:
        with h5py.File(path, "w", libver=(libver, "latest"), track_order=ordered) as file:
            for i in range(count):
                group = file.create_group(f"group-{(i * 7919) % count}", track_order=ordered)
                group["cells"] = np.arange(i % 13 + 1)
                group.attrs["number"] = i
            deep = file
            for i in range(12):
                deep = deep.create_group(f"level{i}")
            deep["bottom"] = np.arange(3.0)

    return write


def attributes(libver: str, count: int):
    def write(path: Path) -> None:
        with h5py.File(path, "w", libver=(libver, "latest")) as file:
            data = file.create_dataset("data", data=np.arange(4))
            for target in (file, data):
                for i in range(count):
                    target.attrs[f"number{i}"] = i * 1.5
                target.attrs["text"] = "grüße"
                target.attrs["bytes"] = np.bytes_(b"fixed")
                target.attrs["texts"] = ["a", "bb", ""]
                target.attrs["matrix"] = np.arange(12, dtype=">i2").reshape(3, 4)
                target.attrs["flag"] = True
                target.attrs["nan"] = np.float32("nan")
                target.attrs["empty"] = h5py.Empty("<f8")
                target.attrs["pair"] = np.array((1, 2.5), dtype=[("a", "<i4"), ("b", "<f8")])
                target.attrs["complex"] = 1 + 2j
                target.attrs["none"] = np.zeros((0, 3))
            if libver != "earliest":
                data.attrs.create("large", np.arange(9000))

    return write


def links(path: Path) -> None:
    other = path.with_name(path.stem + "-other.h5")
    with h5py.File(other, "w") as file:
        file["there/cells"] = np.arange(15).reshape(3, 5)
    with h5py.File(path, "w") as file:
        file["a/cells"] = np.arange(10)
        file["hard"] = file["a/cells"]
        file["soft"] = h5py.SoftLink("/a/cells")
        file["a/relative"] = h5py.SoftLink("cells")
        file["dangling"] = h5py.SoftLink("/nowhere")
        file["circle"] = h5py.SoftLink("/circle")
        file["a/self"] = file["a"]
        file["external"] = h5py.ExternalLink(other.name, "/there/cells")
        file["external-group"] = h5py.ExternalLink(other.name, "/there")
        file["lost"] = h5py.ExternalLink("no-such-file.h5", "/x")


def committed(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["kind"] = np.dtype([("x", "<f4"), ("y", "<f8")])
        data = file.create_dataset("data", (5,), dtype=file["kind"])
        data["x"] = np.arange(5)
        data.attrs.create("value", np.array((1, 2), file["kind"].dtype), dtype=file["kind"])


def scales(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["lat"] = np.linspace(-90, 90, 5)
        file["lon"] = np.linspace(0, 360, 7)
        for name in ("lat", "lon"):
            file[name].make_scale(name)
        file["temperature"] = np.arange(35.0).reshape(5, 7)
        file["temperature"].dims[0].attach_scale(file["lat"])
        file["temperature"].dims[1].attach_scale(file["lon"])


def shared_messages(path: Path) -> None:
    """Types and spaces that many objects share."""
    creation = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    try:
        creation.set_shared_mesg_nindexes(1)
        creation.set_shared_mesg_index(0, 0x1F, 1)
    except AttributeError:
        creation = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    low = h5py.h5f.create(bytes(path), h5py.h5f.ACC_TRUNC, fcpl=creation)
    with h5py.File(low) as file:
        for i in range(12):
            data = file.create_dataset(
                f"d{i}", data=np.arange(60, dtype="<f8").reshape(6, 10), chunks=(3, 5), fillvalue=2.5
            )
            data.attrs["same"] = "the same text for all of them"


def cases() -> Iterator[Case]:
    for libver in LIBVERS:
        for count, ordered in ((3, False), (300, False), (300, True)):
            name = f"groups-{count}{'-ordered' if ordered else ''}-{libver}"
            features = {f"groups of {count}", f"libver {libver}"} | ({"order"} if ordered else set())
            yield Case(name, frozenset(features), groups(libver, count, ordered))
        for count in (2, 60):
            features = frozenset({f"{count} attributes", f"libver {libver}"})
            yield Case(f"attributes-{count}-{libver}", features, attributes(libver, count))
    for write in (links, committed, scales, shared_messages):
        name = write.__name__.replace("_", " ")
        yield Case(name.replace(" ", "-"), frozenset({name}), write)
