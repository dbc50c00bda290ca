"""PyTorch loaders: the same samples whatever way they are read, in a stated order."""

import os
import signal
import time

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader  # noqa: E402

import hyperslab as hs  # noqa: E402
from hyperslab.torch import SlabDataset, SlabLoader, SlabStream, order_of  # noqa: E402


@pytest.fixture
def stored(s3):
    cells = np.arange(64 * 8 * 6, dtype="<i4").reshape(64, 8, 6)
    name = f"{s3}/torch/{os.getpid()}-{time.monotonic_ns()}.zarr"
    return hs.save(name, cells, chunks=(4, 8, 6), compression=False), cells


def drawn(loader):
    """All samples of an epoch as tuples of their first cells."""
    return [int(sample.ravel()[0]) for batch in loader for sample in batch]


def test_samples_along_an_axis(stored):
    array, cells = stored
    data = SlabDataset(array)
    assert len(data) == 64
    assert torch.equal(data[5], torch.as_tensor(cells[5]))
    assert torch.equal(data[-1], torch.as_tensor(cells[63]))
    windows = SlabDataset(array, axis=0, length=4, stride=2)
    assert len(windows) == 31 and torch.equal(windows[3], torch.as_tensor(cells[6:10]))
    columns = SlabDataset(array, axis=2)
    assert len(columns) == 6 and torch.equal(columns[2], torch.as_tensor(cells[:, :, 2]))
    with pytest.raises(IndexError):
        data[64]


def test_samples_by_boxes(stored):
    array, cells = stored
    starts = np.array([[0, 0, 0], [3, 2, 1], [60, 4, 2]])
    data = SlabDataset(array, starts, shape=(4, 3, 4), labels=["a", "b", "c"])
    value, label = data[1]
    assert label == "b" and torch.equal(value, torch.as_tensor(cells[3:7, 2:5, 1:5]))
    uneven = SlabDataset(array, (starts, starts + [[1, 2, 3], [4, 1, 1], [2, 2, 2]]))
    assert torch.equal(uneven[2], torch.as_tensor(cells[60:62, 4:6, 2:4]))
    [batch] = SlabLoader(uneven, 3)
    assert [tuple(one.shape) for one in batch] == [(1, 2, 3), (4, 1, 1), (2, 2, 2)]


def test_several_arrays_and_names(s3, stored):
    array, cells = stored
    rows = hs.save(f"{array.url[:-5]}-labels.zarr", np.arange(64, dtype="<i8"))
    data = SlabDataset({"x": array, "y": rows})
    [first, *_] = SlabLoader(data, 16)
    assert set(first) == {"x", "y"} and first["y"].tolist() == list(range(16))
    assert torch.equal(first["x"], torch.as_tensor(cells[:16]))
    files = SlabDataset([array, array], np.array([[0, 0, 0]] * 3), shape=(1, 1, 1), which=[0, 1, 0])
    assert len(files) == 3


@pytest.mark.parametrize("shuffle", [False, "exact", "window"])
def test_every_sample_comes_once_in_a_stated_order(stored, shuffle):
    array, cells = stored
    data = SlabDataset(array)
    everyone = cells.reshape(64, -1)[:, 0].tolist()
    loader = SlabLoader(data, 5, shuffle=shuffle, window=4, seed=7)
    first, second = drawn(loader), drawn(loader)
    assert sorted(first) == everyone and sorted(second) == everyone
    assert (first == second) == (shuffle is False)
    again = SlabLoader(data, 5, shuffle=shuffle, window=4, seed=7)
    assert drawn(again) == first
    expected = order_of(data, shuffle, 4, 7, 0)
    assert first == cells.reshape(64, -1)[expected, 0].tolist()
    if shuffle == "window":
        # Every window of four chunks has the samples of four chunks.
        for at in range(0, 64, 16):
            assert len({int(i) // 4 for i in expected[at : at + 16]}) == 4


def test_shuffles_are_random():
    class Table:
        def __init__(self, places):
            self.where = places

        def places(self):
            return self.where

    class Data:
        def __init__(self, places):
            self.fields = {"": Table(places)}
            self.count = len(places)

        def __len__(self):
            return self.count

    data = Data(np.repeat(np.arange(6), 5))
    for shuffle in ("exact", "window"):
        firsts = np.array([order_of(data, shuffle, 2, 1, epoch)[0] for epoch in range(6000)])
        counts = np.bincount(firsts, minlength=30)
        # Each sample is the first one equally often: 200 times, give or take five deviations.
        assert abs(counts - 200).max() < 5 * 200**0.5, counts


@pytest.mark.parametrize(("how", "workers"), [(None, 0), ("fork", 1), ("fork", 2), ("spawn", 1), ("spawn", 2)])
def test_workers_give_the_same_samples(stored, workers, how):
    array, _ = stored
    data = SlabDataset(array)
    alone = SlabLoader(data, 6, shuffle="exact", seed=3)
    loader = SlabLoader(data, 6, shuffle="exact", seed=3, num_workers=workers, multiprocessing_context=how)
    for _ in range(3):
        assert drawn(loader) == drawn(alone)
    plain = DataLoader(data, batch_size=6, num_workers=workers, multiprocessing_context=how)
    assert sorted(drawn(plain)) == sorted(drawn(alone))


def test_streams_are_shared_by_workers(stored):
    array, cells = stored
    stream = SlabStream(SlabDataset(array), 4, shuffle="exact")
    everyone = cells.reshape(64, -1)[:, 0].tolist()
    for workers in (0, 2):
        assert sorted(drawn(DataLoader(stream, batch_size=None, num_workers=workers))) == everyone


def test_a_killed_worker_is_an_error(stored):
    array, _ = stored
    data = SlabDataset(array, transform=None)
    loader = SlabLoader(Deadly(data), 2, num_workers=1, multiprocessing_context="fork")
    with pytest.raises(hs.UnavailableError, match="worker process"):
        drawn(loader)


class Deadly(SlabDataset):
    """Ends its process with the third reading."""

    def __init__(self, other):
        self.__dict__.update(other.__dict__)
        self.turns = 0

    def read(self, samples, pinned=False):
        self.turns += 1
        if self.turns == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().read(samples, pinned)


def test_training_resumes(stored):
    array, _ = stored
    data = SlabDataset(array)
    whole = SlabLoader(data, 8, shuffle="window", window=2, seed=5)
    batches = [batch.clone() for batch in whole]
    half = SlabLoader(data, 8, shuffle="window", window=2, seed=5)
    for _, _ in zip(range(3), half):
        pass
    rest = SlabLoader(data, 8, shuffle="window", window=2)
    rest.load_state_dict(half.state_dict())
    left = list(rest)
    assert len(left) == 5 and all(torch.equal(a, b) for a, b in zip(left, batches[3:]))
    assert rest.state_dict()["epoch"] == 1


def test_shares_of_several_trainers(stored):
    array, cells = stored
    data = SlabDataset(array)
    shares = [drawn(SlabLoader(data, 4, shuffle="exact", seed=1, rank=rank, world_size=3)) for rank in range(3)]
    assert sorted(sum(shares, [])) == cells.reshape(64, -1)[:, 0].tolist()


def test_memory_is_bounded(stored):
    array, _ = stored
    data = SlabDataset(array)
    loader = SlabLoader(data, 4, memory=3 * 8 * 4 * 192)
    held = [sum(len(batch) for batch in stretch) * 192 for stretch in loader.stretches(loader.batches(), 2)]
    assert max(held) <= loader.memory // 3
    assert len(loader) == 16 and len(drawn(loader)) == 64
    assert SlabLoader(data, 1, memory="2MiB").memory == 2 << 20


@pytest.mark.parametrize("workers", [0, 1])
def test_errors_reach_the_training(tmp_path, workers):
    array = hs.save(tmp_path / "a.zarr", np.arange(64).reshape(16, 4), chunks=(4, 4))
    chunk = tmp_path / "a.zarr" / "c" / "2" / "0"
    chunk.write_bytes(chunk.read_bytes()[:9])
    loader = SlabLoader(SlabDataset(array), 4, num_workers=workers, memory="1KiB")
    with pytest.raises(Exception, match="c/2/0"):
        drawn(loader)


def test_wrong_tables_and_settings_are_invalid(stored):
    array, _ = stored
    data = SlabDataset(array)
    for wrong in [
        lambda: SlabDataset(array, np.array([[99, 0, 0]]), shape=(1, 1, 1)),
        lambda: SlabDataset(array, np.array([[0, 0]]), shape=(1, 1)),
        lambda: SlabDataset(array, np.array([[0, 0, 0]])),
        lambda: SlabDataset([array, array], np.array([[0, 0, 0]]), shape=(1, 1, 1)),
        lambda: SlabDataset(array, axis=3),
        lambda: SlabDataset(array, labels=[1]),
        lambda: SlabLoader(data, 0),
        lambda: SlabLoader(data, 1, shuffle="some"),
        lambda: SlabLoader(data, 1, memory="much"),
        lambda: SlabLoader(data, 1, rank=2, world_size=2),
    ]:
        with pytest.raises(hs.InvalidError):
            wrong()
