"""Replicas from Python."""

import numpy as np
import pytest
import zarr
from conftest import same

import hyperslab as hs


def test_reads_come_from_the_cheapest_copy(s3):
    cells = np.arange(64 * 96, dtype="i4").reshape(64, 96)
    array = hs.save(f"{s3}/replicas/a.zarr", cells, chunks=(1, 96), shards=(1, 96))
    assert array.replicas == []
    made = array.create_replica(chunks=(64, 1), shards=(64, 8), compression=False)
    assert (made.name, made.complete, made.chunks, made.shards) == ("r1", True, (64, 1), (64, 8))
    reader = hs.open(f"{s3}/replicas/a.zarr")
    same(reader[:, 5], cells[:, 5])
    plan = reader.explain((slice(None), 5))
    assert plan.answered_by == "r1"
    assert set(plan.copies) == {None, "r1"}
    assert reader.explain(3).answered_by is None

    array[:, 5] = -1
    cells[:, 5] = -1
    same(reader[:, 5], cells[:, 5])
    assert [replica.marked for replica in array.replicas] == [0]
    assert array.remove_replica("r1")
    assert not array.remove_replica("r1")
    same(reader[:, 5], cells[:, 5])


def test_what_zarr_python_writes_is_noticed(tmp_path):
    cells = np.arange(200, dtype="u2").reshape(20, 10)
    array = hs.save(tmp_path / "a.zarr", cells, chunks=(1, 10))
    array.create_replica("columns", chunks=(20, 1))
    foreign = zarr.open_array(tmp_path / "a.zarr")
    same(foreign[...], cells)
    foreign[3:5] = 7
    cells[3:5] = 7
    reader = hs.open(tmp_path / "a.zarr", replica_check="0s")
    same(reader[:, 2], cells[:, 2])
    refreshed = reader.refresh_replicas()
    assert (refreshed.clean, refreshed.foreign, refreshed.filled) == (True, 2, [])
    same(reader[:, 2], cells[:, 2])
    [replica] = reader.replicas
    same(zarr.open_array(replica.url)[...], cells)
    foreign[0] = 9
    cells[0] = 9
    same(reader[:, 2], cells[:, 2])


def test_wrong_requests(tmp_path):
    array = hs.save(tmp_path / "a.zarr", np.zeros((4, 4)))
    with pytest.raises(hs.InvalidError):
        array.create_replica("no/name", chunks=(1, 4))
    with pytest.raises(hs.InvalidError):
        array.create_replica("x", chunks=(1, 4, 4))
    array.create_replica("x", chunks=(1, 4))
    with pytest.raises(hs.ConflictError):
        array.create_replica("x", chunks=(4, 1))
