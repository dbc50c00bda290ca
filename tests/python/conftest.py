"""What the tests of the Python package share: a simulated cloud, and a comparison of bits."""

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests")]

from cloud import Cloud  # noqa: E402


@pytest.fixture(scope="session")
def cloud():
    one = Cloud()
    yield one
    one.stop()


@pytest.fixture
def s3(cloud, monkeypatch):
    """The simulated S3 by the usual environment variables; returns a URL to put things below."""
    for name, value in cloud.env.items():
        monkeypatch.setenv(name, value)
    return "s3://data"


def same(found, expected):
    """The same type, shape and bits."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.dtype == expected.dtype, (found.dtype, expected.dtype)
    assert found.shape == expected.shape, (found.shape, expected.shape)
    assert found.tobytes() == expected.tobytes()
