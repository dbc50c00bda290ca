"""Indexing is NumPy's: the same results, and errors where NumPy errs."""

import numpy as np
import pytest
from conftest import same
from expressions import expression, stored_forms

import hyperslab as hs

SHAPES = [(7,), (5, 6), (4, 5, 3), (3, 4, 2, 3), (), (0, 4), (6, 1)]


def outcome(array, key):
    """What an expression gives, or the kinds of error that it is."""
    try:
        return array[key]
    except (IndexError, ValueError, TypeError) as reason:
        return reason


def check(found, expected, key, name):
    if isinstance(expected, Exception):
        assert isinstance(found, Exception), (name, key, expected)
        # NumPy itself is not of one mind about which error a broken index is.
        assert isinstance(found, (IndexError, ValueError, TypeError)), (name, key, found)
        if isinstance(expected, IndexError):
            assert isinstance(found, IndexError), (name, key, found, expected)
        return
    if isinstance(found, Exception):
        raise AssertionError((name, key)) from found
    assert isinstance(found, np.ndarray) == isinstance(expected, np.ndarray), (name, key)
    same(found, expected)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_random_expressions_are_numpys(shape, tmp_path, s3):
    cells = np.arange(np.prod(shape, dtype=int), dtype="<i4").reshape(shape)
    draw = np.random.default_rng(len(shape) * 100 + sum(shape))
    forms = list(stored_forms(tmp_path, f"{s3}/indexing/d{'x'.join(map(str, shape))}", cells))
    assert len(forms) == 6
    for _ in range(150):
        key = expression(draw, shape)
        expected = outcome(cells, key)
        for name, array in forms:
            check(outcome(array, key), expected, key, name)


@pytest.mark.parametrize("shape", [(7,), (5, 6), (4, 5, 3), ()], ids=str)
def test_random_assignments_are_numpys(shape, tmp_path):
    draw = np.random.default_rng(sum(shape) + 1)
    expected = np.zeros(shape, "<i4")
    array = hs.save(tmp_path / "a.zarr", expected, chunks=[max(1, side // 2) for side in shape])
    for turn in range(200):
        key = expression(draw, shape)
        picked = outcome(np.zeros(shape), key)
        if isinstance(picked, Exception):
            with pytest.raises((IndexError, ValueError, TypeError)):
                array[key] = 1
            continue
        # One value for all, as many as there are cells, or one for each along the last axis.
        value = [turn, draw.integers(0, 99, np.shape(picked)), draw.integers(0, 99, np.shape(picked)[-1:])][turn % 3]
        expected[key] = value
        array[key] = value
        same(array[...], expected)


def test_orthogonal_and_coordinate_indexing_are_zarrs(tmp_path):
    import zarr

    cells = np.arange(60, dtype="<i4").reshape(5, 4, 3)
    array = hs.save(tmp_path / "a.zarr", cells, chunks=(2, 2, 2))
    theirs = zarr.open_array(tmp_path / "a.zarr", mode="r+")
    mask = np.array([True, False, True, True, False])
    for key in [([0, 3], slice(None), [0, 2]), (mask, 1, slice(2)), (3, [3, 0]), (slice(None, None, 2), [1, 1, 2])]:
        same(array.oindex[key], theirs.oindex[key])
    for key in [([0, 3], [1, 1], [0, 2]), cells % 7 == 0]:
        same(array.vindex[key], theirs.vindex[key])
    array.oindex[[0, 3], :, [0, 2]] = 7
    same(array[...], theirs[...])
    expected = cells.copy()
    expected[np.ix_([0, 3], range(4), [0, 2])] = 7
    same(array[...], expected)
    array.vindex[[1, 2], [0, 0], [1, 2]] = [5, 6]
    expected[[1, 2], [0, 0], [1, 2]] = [5, 6]
    same(array[...], expected)
    for wrong in [lambda: array.vindex[1:2], lambda: array.vindex[[0], [0]], lambda: array.oindex[[[0]]]]:
        with pytest.raises(IndexError):
            wrong()


def test_large_orthogonal_selections_cost_their_sum(tmp_path):
    array = hs.create(tmp_path / "a.zarr", shape=(10**5, 10**5), dtype="u1", chunks=(1000, 1000))
    rows = np.unique(np.random.default_rng(1).integers(0, 10**5, 1500))
    array.oindex[rows[:3], rows[:3]] = 9
    found = array.oindex[rows, rows]
    assert found.shape == (len(rows), len(rows))
    assert (found[:3, :3] == 9).all() and found.sum() == 81


def test_errors_tell_the_shape(tmp_path):
    array = hs.save(tmp_path / "a.zarr", np.zeros((3, 4)))
    with pytest.raises(IndexError, match=r"index 5 is out of bounds for axis 1 with size 4 .*\(3, 4\)"):
        array[0, 5]
    with pytest.raises(IndexError, match=r"too many indices.*\(3, 4\)"):
        array[0, 0, 0]
    with pytest.raises(IndexError, match="boolean index did not match"):
        array[np.ones(5, bool)]
    with pytest.raises(IndexError, match="could not be broadcast"):
        array[[0, 1], [0, 1, 2]]
