"""Large multi-dimensional arrays on any store: NumPy slices of Zarr and HDF5, from anywhere.

>>> import hyperslab as hs, numpy as np
>>> a = hs.save("memory://doc/a.zarr", np.arange(20.0).reshape(4, 5), chunks=(2, 5))
>>> a[1:3, ::2]
array([[ 5.,  7.,  9.],
       [10., 12., 14.]])
"""

from ._advice import Advice
from ._array import Array, aread_many, read_many
from ._attributes import Attributes
from ._core import __version__
from ._errors import (
    ConflictError,
    DataError,
    DeadlineError,
    DeniedError,
    Error,
    InternalError,
    InvalidError,
    NotFoundError,
    UnavailableError,
)
from ._group import Group
from ._h5py import enable, h5py_env
from ._open import aopen, create, create_group, open, open_array, open_group, profile, remove, save  # noqa: A004
from ._options import options, set_options
from ._plans import Plan
from ._rechunk import rechunk
from ._replicas import Refreshed, Replica

__all__ = [
    "Advice", "Array", "Attributes", "ConflictError", "DataError", "DeadlineError", "DeniedError", "Error",
    "Group", "InternalError", "InvalidError", "NotFoundError", "Plan", "Refreshed", "Replica",
    "UnavailableError",
    "__version__", "aopen", "aread_many", "create", "create_group", "enable", "h5py_env", "open",
    "open_array", "open_group", "options", "profile", "read_many", "rechunk", "remove",
    "save", "set_options",
]  # fmt: skip
