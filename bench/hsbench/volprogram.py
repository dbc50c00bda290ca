"""Programs that make, change and read HDF5 files at random, and tell all that they see.

Run as `python -m hsbench.volprogram PREFIX FIRST COUNT`: a line of JSON for each program. The same
number is the same program, whatever files it works on, so what it tells must be the same too.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import sys
from typing import Any

import h5py
import numpy as np

# Not "<f2": libhdf5 2.0 itself shows 6e-8 in places of such datasets that nobody wrote to.
NUMBERS = ["<i4", ">i2", "u1", "<f8", ">f4", "<c16", "?", "<i8", "S5"]
RECORD = np.dtype([("a", "<i4"), ("b", ">f8"), ("c", "S3"), ("d", "<i2", (2,))])
STEPS = 25
MOST_CELLS = 600


def fingerprint(value: Any) -> str:
    """A text that two values share only if they are the same."""
    if isinstance(value, h5py.Empty):
        return f"empty {value.dtype}"
    array = np.asarray(value)
    if array.dtype.kind == "O":
        return repr([fingerprint(one) if isinstance(one, np.ndarray) else one for one in array.ravel().tolist()])
    digest = hashlib.sha1(np.ascontiguousarray(array).tobytes()).hexdigest()[:12]
    return f"{array.dtype.str if not array.dtype.fields else array.dtype} {array.shape} {digest}"


class Program:
    """One program: a file, and what is in it."""

    def __init__(self, name: str, other: str, seed: int):
        self.name = name
        self.other = other
        self.random = random.Random(seed)
        self.numpy = np.random.default_rng(seed)
        self.said: list[str] = []
        self.made = 0
        version = self.random.choice([None, None, "latest", ("v108", "v112")])
        self.how = {"libver": version} if version else {}
        self.file = h5py.File(name, "w", track_order=self.random.random() < 0.3, **self.how)

    def say(self, *what: Any) -> None:
        self.said.append(" ".join(map(str, what)))

    def run(self) -> list[str]:
        steps = [
            (self.make_dataset, 5), (self.write, 8), (self.read, 8), (self.resize, 3),
            (self.describe, 3), (self.make_group, 2), (self.link, 2), (self.move, 1),
            (self.copy, 2), (self.remove, 1), (self.flush, 1), (self.reopen, 2),
            (self.make_texts, 1), (self.make_records, 1), (self.make_others, 1), (self.look, 2),
            (self.chunks, 1), (self.make_virtual, 1), (self.follow, 1),
        ]
        calls = [call for call, weight in steps for _ in range(weight)]
        self.make_dataset()
        for _ in range(STEPS):
            call = self.random.choice(calls)
            try:
                call()
            except Exception as reason:  # noqa: BLE001  (what is raised is what is compared)
                self.say(call.__name__, "raises", type(reason).__name__)
                if "HSBENCH_WHY" in os.environ:
                    print(seed_of(self.name), call.__name__, reason, file=sys.stderr)
        self.reopen()
        self.look()
        for name in self.datasets():
            self.say("at last", name, fingerprint(self.file[name][()]))
        self.file.close()
        return self.said

    # What there is

    def fresh(self) -> str:
        self.made += 1
        group = self.random.choice([""] + self.groups())
        return f"{group}/n{self.made}" if group else f"n{self.made}"

    def walk(self, kind: type) -> list[str]:
        found: list[str] = []
        self.file.visititems(lambda name, node: found.append(name) if isinstance(node, kind) else None)
        return sorted(found)

    def datasets(self) -> list[str]:
        return self.walk(h5py.Dataset)

    def groups(self) -> list[str]:
        return self.walk(h5py.Group)

    def pick(self) -> h5py.Dataset:
        return self.file[self.random.choice(self.datasets())]

    # Steps

    def shape(self) -> tuple[int, ...]:
        rank = self.random.choice([0, 1, 1, 2, 2, 2, 3])
        sides = [self.random.randint(0 if self.random.random() < 0.05 else 1, 12) for _ in range(rank)]
        return tuple(sides)

    def make_dataset(self) -> None:
        kind = self.random.choice(NUMBERS)
        shape = self.shape()
        options: dict[str, Any] = {}
        if shape and 0 not in shape and self.random.random() < 0.7:
            options["chunks"] = tuple(self.random.randint(1, side) for side in shape)
            if self.random.random() < 0.6:
                options["maxshape"] = tuple(self.random.choice([None, 2 * side]) for side in shape)
            if self.random.random() < 0.5:
                options["compression"] = self.random.choice(["gzip", "lzf"])
            options["shuffle"] = self.random.random() < 0.3
            options["fletcher32"] = self.random.random() < 0.2
        if self.random.random() < 0.4 and kind not in ("S5", "?"):
            options["fillvalue"] = 3
        name = self.fresh()
        dataset = self.file.create_dataset(name, shape, kind, **options)
        # Of texts that nobody wrote, libhdf5 itself shows whatever was in memory; of cells without chunks
        # and a fill value, whatever was in their place in the file.
        anything = kind == "S5" or "chunks" not in options and "fillvalue" not in options
        if self.random.random() < 0.6 or anything:
            dataset[...] = self.cells(dataset, dataset.shape)
        self.say("made", name, dataset.shape, dataset.dtype, dataset.chunks, dataset.maxshape,
                 dataset.compression, dataset.compression_opts, dataset.shuffle, dataset.fletcher32,
                 dataset.fillvalue)

    def cells(self, dataset: h5py.Dataset, shape: tuple[int, ...]) -> np.ndarray:
        kind = dataset.dtype
        count = int(np.prod(shape, dtype=int))
        if h5py.check_string_dtype(kind) and kind.kind == "O":
            words = ["", "a", "hé", "日本", "long " * 9, "x\udcffy"[:1]]
            return np.array([self.random.choice(words) for _ in range(count)], dtype=object).reshape(shape)
        if h5py.check_vlen_dtype(kind):
            rows = np.empty(count, dtype=object)
            for i in range(count):
                rows[i] = self.numpy.integers(0, 99, self.random.randint(0, 4)).astype(h5py.check_vlen_dtype(kind))
            return rows.reshape(shape)
        if h5py.check_ref_dtype(kind):
            refs = np.empty(count, dtype=kind)
            for i in range(count):
                refs[i] = self.pick().ref
            return refs.reshape(shape)
        if kind.kind == "S":
            return np.array([b"ab", b"", b"xyzzy"], dtype=kind)[self.numpy.integers(0, 3, count)].reshape(shape)
        if kind.fields:
            return np.frombuffer(self.numpy.bytes(kind.itemsize * count), dtype=kind).reshape(shape) if not any(
                kind[n].kind == "f" for n in kind.names
            ) else self.records(kind, count).reshape(shape)
        if kind.kind == "b":
            return self.numpy.integers(0, 2, shape).astype(kind)
        # Other types than the dataset's: they are converted on the way.
        from_kind = self.random.choice([kind, kind, np.dtype("<i2"), np.dtype("<f8")])
        # Nothing is converted to enumerations: their cells would stay unwritten (see `make_dataset`).
        if kind.kind == "c" or h5py.check_enum_dtype(kind):
            from_kind = kind
        return self.numpy.integers(0, 100, shape).astype(from_kind)

    def records(self, kind: np.dtype, count: int) -> np.ndarray:
        out = np.zeros(count, kind)
        for name in kind.names:
            if kind[name].kind != "S":
                out[name] = self.numpy.integers(0, 100, out[name].shape)
            else:
                out[name] = b"ab"
        return out

    def selection(self, shape: tuple[int, ...]) -> Any:
        if not shape or self.random.random() < 0.15:
            return ()
        way = self.random.random()
        if way < 0.15:
            axis = self.random.randrange(len(shape))
            if shape[axis] == 0:
                return ()
            count = self.random.randint(1, shape[axis])
            return tuple(
                sorted(self.random.sample(range(shape[axis]), count)) if i == axis else slice(None)
                for i in range(len(shape))
            )
        if way < 0.25:
            return self.numpy.integers(0, 2, shape).astype(bool)
        parts: list[Any] = []
        for side in shape:
            if side and self.random.random() < 0.2:
                parts.append(self.random.randrange(side))
                continue
            start, stop = sorted((self.random.randint(0, side), self.random.randint(0, side)))
            parts.append(slice(start, stop, self.random.choice([1, 1, 2, 3])))
        return tuple(parts)

    def write(self) -> None:
        dataset = self.pick()
        if dataset.is_virtual:
            # Writing through virtual datasets is refused: docs/vol-gaps.md.
            return
        selection = self.selection(dataset.shape)
        # How many cells are selected is what a NumPy array of the same shape says.
        picked = np.zeros(dataset.shape, "u1")[selection]
        cells = self.cells(dataset, np.shape(picked))
        if dataset.dtype.fields and self.random.random() < 0.3:
            field = self.random.choice(dataset.dtype.names)
            dataset[(field, *selection) if isinstance(selection, tuple) else (field, selection)] = cells[field]
        else:
            dataset[selection] = cells
        self.say("wrote", dataset.name, np.shape(picked))

    def read(self) -> None:
        dataset = self.pick()
        selection = self.selection(dataset.shape)
        if dataset.is_virtual:
            # libhdf5 itself reads no points of virtual datasets.
            selection = ()
        if dataset.dtype.fields and self.random.random() < 0.4:
            field = self.random.choice(dataset.dtype.names)
            value = dataset.fields(field)[selection]
        elif dataset.dtype.kind in "iuf" and self.random.random() < 0.2:
            value = dataset.astype("f8")[selection]
        else:
            value = dataset[selection]
        if h5py.check_ref_dtype(dataset.dtype):
            self.say("read", dataset.name, [self.file[ref].name if ref else None for ref in np.ravel(value)])
        else:
            self.say("read", dataset.name, fingerprint(value))

    def resize(self) -> None:
        dataset = self.pick()
        most = [16 if side is None else side for side in dataset.maxshape]
        # Not to nothing: libhdf5 itself keeps the chunks then, and shows them when the dataset grows again.
        dataset.resize(tuple(self.random.randint(1, side) for side in most))
        self.say("resized", dataset.name, dataset.shape)

    def describe(self) -> None:
        node = self.file[self.random.choice(self.datasets() + self.groups() + ["/"])]
        name = f"a{self.random.randrange(4)}"
        if name in node.attrs and self.random.random() < 0.4:
            del node.attrs[name]
        else:
            node.attrs[name] = self.random.choice(
                [1, 2.5, "text", [1, 2, 3], ["a", "bc"], np.float32(7), b"bytes", h5py.Empty("i4"),
                 np.arange(6, dtype=">i2").reshape(2, 3), True]
            )
        self.say("attributes", node.name, {key: fingerprint(node.attrs[key]) for key in node.attrs})

    def make_group(self) -> None:
        name = self.fresh()
        self.file.create_group(name, track_order=self.random.random() < 0.3)
        self.say("group", name)

    def link(self) -> None:
        name = self.fresh()
        target = self.random.choice(self.datasets() + self.groups())
        way = self.random.random()
        if way < 0.4:
            self.file[name] = self.file[target]
        elif way < 0.8:
            self.file[name] = h5py.SoftLink("/" + target if way < 0.7 else "/nowhere")
        else:
            self.file[name] = h5py.ExternalLink(self.other.rsplit("/", 1)[-1], "/there")
        self.say("link", name, target, name in self.file)

    def follow(self) -> None:
        """What links lead to, in another file too."""
        with h5py.File(self.other, "a") as other:
            if "there" not in other:
                other["there"] = np.arange(5)
        for name in sorted(self.file):
            link = self.file.get(name, getlink=True)
            self.say(name, type(link).__name__, name in self.file)
            if isinstance(link, h5py.ExternalLink):
                self.say(fingerprint(self.file[name][()]))

    def move(self) -> None:
        old, new = self.random.choice(self.datasets() + self.groups()), self.fresh()
        self.file.move(old, new)
        self.say("moved", old, new)

    def copy(self) -> None:
        old, new = self.random.choice(self.datasets() + self.groups()), self.fresh()
        self.file.copy(old, new, shallow=self.random.random() < 0.2)
        self.say("copied", old, new)

    def remove(self) -> None:
        all_nodes = self.datasets() + self.groups()
        if len(all_nodes) > 3:
            name = self.random.choice(all_nodes)
            del self.file[name]
            self.say("removed", name)

    def flush(self) -> None:
        self.file.flush()

    def reopen(self) -> None:
        self.file.close()
        if self.random.random() < 0.3:
            with h5py.File(self.name, "r") as file:
                self.say("readable", sorted(file))
        self.file = h5py.File(self.name, "r+", **self.how)

    def make_texts(self) -> None:
        shape = self.random.choice([(), (3,), (4, 3)])
        dataset = self.file.create_dataset(self.fresh(), shape, h5py.string_dtype())
        dataset[...] = self.cells(dataset, shape)
        self.say("texts", dataset.name, fingerprint(dataset[()]))

    def make_records(self) -> None:
        dataset = self.file.create_dataset(self.fresh(), (self.random.randint(1, 9),), RECORD, chunks=True)
        self.say("records", dataset.name, fingerprint(dataset[()]))

    def make_others(self) -> None:
        kind = self.random.choice([h5py.vlen_dtype("i4"), h5py.ref_dtype, h5py.enum_dtype({"A": 1, "B": 5})])
        dataset = self.file.create_dataset(self.fresh(), (self.random.randint(1, 5),), kind)
        if not kind.kind == "i":
            dataset[...] = self.cells(dataset, dataset.shape)
        else:
            # All of them: see `make_dataset`.
            dataset[...] = 5
        self.say("others", dataset.name, dataset.dtype)

    def make_virtual(self) -> None:
        # Sources of one shape for ever: of one that has become smaller libhdf5 itself reads nothing.
        names = [n for n in self.datasets() if self.file[n].ndim == 1 and self.file[n].dtype.kind in "iuf"]
        names = [n for n in names if self.file[n].maxshape == self.file[n].shape and not self.file[n].chunks]
        source = self.file[self.random.choice(names)]
        half = source.shape[0] // 2
        layout = h5py.VirtualLayout((2, source.shape[0]), source.dtype)
        layout[0] = h5py.VirtualSource(source)
        layout[1, : source.shape[0] - half] = h5py.VirtualSource(source)[half:]
        dataset = self.file.create_virtual_dataset(self.fresh(), layout, fillvalue=7)
        self.say("virtual", dataset.name, fingerprint(dataset[()]))

    def look(self) -> None:
        def tell(name: str, node: Any) -> None:
            if isinstance(node, h5py.Dataset):
                self.say(name, node.shape, node.dtype, node.maxshape, node.chunks, sorted(node.attrs))
            else:
                self.say(name, type(node).__name__, list(node), sorted(node.attrs))

        self.file.visititems(tell)

    def chunks(self) -> None:
        dataset = self.pick()
        if dataset.chunks and dataset.dtype.kind in "iufcS":
            at = dataset.id.get_num_chunks()
            self.say("chunks", dataset.name, at > 0 or dataset.size == 0)
            if at:
                # Files have their chunks in the order of their making, or in that of their places.
                offset = min(dataset.id.get_chunk_info(i).chunk_offset for i in range(at))
                try:
                    mask, raw = dataset.id.read_direct_chunk(offset)
                    dataset.id.write_direct_chunk(offset, raw, mask)
                except RuntimeError:
                    # libhdf5 itself does not find chunks that have not left its cache.
                    pass
                self.say(fingerprint(dataset[()]))


def seed_of(name: str) -> str:
    """The number of the program that a file belongs to."""
    return name.rsplit("/", 1)[-1]


def main() -> None:
    prefix, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for seed in range(first, first + count):
        try:
            said = Program(f"{prefix}/p{seed}.h5", f"{prefix}/o{seed}.h5", seed).run()
        except Exception as reason:  # noqa: BLE001
            said = ["fails", type(reason).__name__]
            if "HSBENCH_WHY" in os.environ:
                print(seed, reason, file=sys.stderr)
        print(json.dumps({"seed": seed, "said": said}), flush=True)


if __name__ == "__main__":
    main()
