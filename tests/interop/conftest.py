"""What the interop tests share: the program, random cells, and a comparison of bits."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from cloud import program  # noqa: E402


class Hyperslab:
    """The command line under test."""

    def __init__(self):
        self.program = program()

    def run(self, *arguments):
        """Runs a command; a failure shows what the program said."""
        done = subprocess.run([self.program, "--quiet", *map(str, arguments)], capture_output=True, text=True)
        assert done.returncode == 0, f"hyperslab {' '.join(map(str, arguments))}\n{done.stderr}"
        return done.stdout

    def get(self, address, folder):
        """The cells of an array or slice, by way of a .npy file."""
        file = folder / "got.npy"
        self.run("get", address, "-o", file)
        return np.load(file)

    def put(self, cells, url, folder, *layout):
        """Writes cells by way of a .npy file."""
        file = folder / "put.npy"
        np.save(file, cells)
        self.run("put", file, url, *layout)


@pytest.fixture(scope="session")
def hyperslab():
    return Hyperslab()


def random_cells(dtype, shape, seed=0):
    """Random cells of any type; floats have random bits, NaN payloads included."""
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(seed)
    count = int(np.prod(shape, dtype=int))
    if dtype == bool:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind == "U":
        letters = np.array(list("abcäöü日本🦀"))
        width = dtype.itemsize // 4
        words = ["".join(rng.choice(letters, rng.integers(0, width + 1))) for _ in range(count)]
        return np.array(words, dtype).reshape(shape)
    if dtype.kind == "S":
        words = [bytes(rng.integers(1, 256, rng.integers(0, dtype.itemsize + 1), np.uint8)) for _ in range(count)]
        return np.array(words, dtype).reshape(shape)
    if dtype.fields:
        cells = np.empty(shape, dtype)
        for i, name in enumerate(dtype.names):
            cells[name] = random_cells(dtype[name], shape, seed + i)
        return cells
    return np.frombuffer(rng.bytes(count * dtype.itemsize), dtype).reshape(shape)


def same_bits(found, expected):
    """Same shape, same values, same bits: NaN payloads and negative zeros count."""
    found, expected = np.asarray(found), np.asarray(expected)
    little = expected.dtype.newbyteorder("<")
    assert found.shape == expected.shape
    assert found.dtype.newbyteorder("<") == little
    assert found.astype(little, copy=False).tobytes() == expected.astype(little, copy=False).tobytes()
