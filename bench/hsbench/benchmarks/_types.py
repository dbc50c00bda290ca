"""The data types of the interoperability matrix: fill values and random cells of each."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..cells import is_variable, numpy_dtype

Cells = Callable[[np.random.Generator, int], np.ndarray]


@dataclass(frozen=True)
class Type:
    """A data type: its short name, how Zarr v3 spells it and its fill value, and its cells."""

    label: str
    data_type: Any
    fill_json: Any
    fill: Any
    cells: Cells

    @property
    def variable(self) -> bool:
        return is_variable(self.data_type)

    @property
    def size(self) -> int:
        """Bytes of a cell; 1 where cells have no fixed size."""
        return 1 if self.variable else numpy_dtype(self.data_type).itemsize

    @property
    def ordered(self) -> bool:
        """True if the order of bytes in a cell depends on endianness."""
        if self.variable:
            return False
        dtype = numpy_dtype(self.data_type)
        if dtype.names:
            return True
        return dtype.kind in "iufcMmU" and dtype.itemsize > 1

    def array(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Random cells."""
        return self.cells(rng, int(np.prod(shape))).reshape(shape)

    def filled(self, shape: tuple[int, ...]) -> np.ndarray:
        """An array of fill values."""
        dtype = object if self.variable else numpy_dtype(self.data_type)
        out = np.empty(shape, dtype=dtype)
        if self.variable:
            out.reshape(-1)[:] = [self.fill] * out.size
        else:
            raw = np.frombuffer(self.fill * out.size, dtype=dtype)
            out = raw.reshape(shape).copy()
        return out


def number(name: str, fill_json: Any, fill: Any) -> Type:
    """Random bits, so that floats have NaNs with payloads, and every extreme by hand."""
    dtype = np.dtype(name).newbyteorder("<")

    def cells(rng: np.random.Generator, n: int) -> np.ndarray:
        if dtype.kind == "b":
            return rng.integers(0, 2, n).astype(bool)
        out = np.frombuffer(rng.bytes(n * dtype.itemsize), dtype=dtype).copy()
        if dtype.kind in "iu":
            extremes = [np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1]
        else:
            part = np.float64 if dtype.itemsize == 16 else np.float32
            real = dtype if dtype.kind == "f" else part
            info = np.finfo(real)
            extremes = [0.0, -0.0, np.nan, np.inf, -np.inf, info.max, info.min, info.tiny]
            extremes.append(info.smallest_subnormal)
        out[: len(extremes)] = extremes
        return out

    return Type(name, name, fill_json, np.array(fill, dtype=dtype).tobytes(), cells)


def sized(label: str, name: str, fill_json: Any, fill: bytes, cells: Cells) -> Type:
    """A type of fixed size whose length is a configuration."""
    configuration = {"length_bytes": len(fill)}
    return Type(label, {"name": name, "configuration": configuration}, fill_json, fill, cells)


def raw(size: int) -> Cells:
    """Opaque bytes."""
    return lambda rng, n: np.frombuffer(rng.bytes(n * size), dtype=f"V{size}").copy()


def fixed_bytes(rng: np.random.Generator, n: int) -> np.ndarray:
    lengths = rng.integers(0, 6, n)
    return np.array([bytes(rng.integers(1, 256, k, dtype=np.uint8)) for k in lengths], dtype="S5")


ALPHABET = "aZ0 ~äßπЖ漢字🜚\U0010ffff"


def fixed_text(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.array([text(rng, 3) for _ in range(n)], dtype="<U3")


def text(rng: np.random.Generator, longest: int) -> str:
    letters = rng.integers(0, len(ALPHABET), rng.integers(0, longest + 1))
    return "".join(ALPHABET[i] for i in letters)


def objects(one: Callable[[np.random.Generator], Any]) -> Cells:
    def cells(rng: np.random.Generator, n: int) -> np.ndarray:
        out = np.empty(n, dtype=object)
        out[:] = [one(rng) for _ in range(n)]
        return out

    return cells


def time(label: str, kind: str, unit: str, fill: int) -> Type:
    def cells(rng: np.random.Generator, n: int) -> np.ndarray:
        out = np.frombuffer(rng.bytes(n * 8), dtype="<i8").copy()
        out[:3] = [np.iinfo(np.int64).min, np.iinfo(np.int64).max, 0]
        return out.view(f"<{'M8' if kind == 'datetime64' else 'm8'}[{unit}]")

    spelled = {"name": f"numpy.{kind}", "configuration": {"unit": unit, "scale_factor": 1}}
    return Type(label, spelled, fill, np.int64(fill).tobytes(), cells)


def structured() -> Type:
    fields = [
        ["a", "int32"],
        ["b", "float64"],
        ["c", {"name": "null_terminated_bytes", "configuration": {"length_bytes": 3}}],
    ]
    spelled = {"name": "structured", "configuration": {"fields": fields}}
    dtype = numpy_dtype(spelled)
    fill = np.array((-7, 2.5, b"xyz"), dtype=dtype).tobytes()

    def cells(rng: np.random.Generator, n: int) -> np.ndarray:
        out = np.empty(n, dtype=dtype)
        out["a"] = rng.integers(-(2**31), 2**31, n)
        out["b"] = np.frombuffer(rng.bytes(n * 8), dtype="<f8")
        out["c"] = fixed_bytes(rng, n).astype("S3")
        return out

    return Type("structured", spelled, base64.b64encode(fill).decode(), fill, cells)


def numbers_struct() -> Type:
    """A structure of numbers alone, which more peers know."""
    spelled = {"name": "structured", "configuration": {"fields": [["x", "int16"], ["y", "float32"]]}}
    dtype = numpy_dtype(spelled)
    fill = np.array((300, -0.5), dtype=dtype).tobytes()

    def cells(rng: np.random.Generator, n: int) -> np.ndarray:
        return np.frombuffer(rng.bytes(n * dtype.itemsize), dtype=dtype).copy()

    return Type("{i2, f4}", spelled, base64.b64encode(fill).decode(), fill, cells)


TYPES = [
    number("bool", True, True),
    number("int8", -128, -128),
    number("int16", -2, -2),
    number("int32", 2147483647, 2147483647),
    number("int64", -9223372036854775808, -9223372036854775808),
    number("uint8", 255, 255),
    number("uint16", 7, 7),
    number("uint32", 4294967295, 4294967295),
    number("uint64", 18446744073709551615, 18446744073709551615),
    number("float16", 1.5, 1.5),
    number("float32", "NaN", np.nan),
    number("float64", "-Infinity", -np.inf),
    number("complex64", ["NaN", 1.5], complex(np.nan, 1.5)),
    number("complex128", [-0.5, "Infinity"], complex(-0.5, np.inf)),
    sized("S5", "null_terminated_bytes", "YWIA/w==", b"ab\0\xff\0", fixed_bytes),
    sized("U3", "fixed_length_utf32", "π🜚", np.array("π🜚", dtype="<U3").tobytes(), fixed_text),
    sized("V4", "raw_bytes", "AQIDBA==", b"\1\2\3\4", raw(4)),
    Type("r16", "r16", [1, 255], b"\1\xff", raw(2)),
    Type("r24", "r24", [1, 2, 3], b"\1\2\3", raw(3)),
    Type("string", "string", "fill ü", "fill ü", objects(lambda rng: text(rng, 12))),
    Type(
        "bytes", "variable_length_bytes", "AP8B", b"\0\xff\1",
        objects(lambda rng: rng.bytes(int(rng.integers(0, 12)))),
    ),
    structured(),
    numbers_struct(),
    time("datetime64[ns]", "datetime64", "ns", 1_000_000_007),
    time("timedelta64[s]", "timedelta64", "s", -9223372036854775808),
]
