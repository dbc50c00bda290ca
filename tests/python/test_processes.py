"""Async twins, threads, forks, spawned processes, and Ctrl-C."""

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from cloud import Cloud
from conftest import ROOT, same

import hyperslab as hs


@pytest.fixture
def array(s3):
    cells = np.arange(40_000, dtype="<i4").reshape(200, 200)
    return hs.save(f"{s3}/processes/a.zarr", cells, chunks=(50, 50), overwrite=True), cells


def test_reads_run_while_others_do(array):
    stored, cells = array

    async def work():
        keys = [np.s_[i, :] for i in range(0, 200, 5)] + [([1, 2], [3, 4]), ([1, 2], [3, 150])]
        found = await asyncio.gather(*(stored.aread(key) for key in keys))
        for key, one in zip(keys, found, strict=True):
            same(one, cells[key])
        out = np.empty((200,), "<i4")
        assert await stored.aread(3, out=out) is out
        same(out, cells[3])
        both = await hs.aread_many([(stored, 0), (stored, np.s_[5:9, 5:9])])
        same(both[1], cells[5:9, 5:9])
        opened = await hs.aopen(stored.url)
        await opened.awrite(0, 7)
        assert (await opened.aread(0) == 7).all()
        with pytest.raises(IndexError):
            await stored.aread(999)
        # A blocking read in a running loop is allowed, as NumPy's would be.
        same(stored[1], cells[1])

    asyncio.run(work())


def test_a_cancelled_read_ends(monkeypatch):
    slow = Cloud("--latency", "5s")
    try:
        for name, value in slow.env.items():
            monkeypatch.setenv(name, value)

        async def work():
            opening = asyncio.create_task(hs.aopen("s3://data/x.zarr"))
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(asyncio.shield(opening), 0.2)
            opening.cancel()

        asyncio.run(work())
    finally:
        slow.stop()


def test_errors_reach_the_waiting_task(array):
    stored, _ = array
    hs.remove(stored.url)

    async def work():
        # All chunks are gone, so there are fill values; the metadata is gone, too.
        with pytest.raises(hs.NotFoundError):
            await hs.aopen(stored.url)

    asyncio.run(work())


def test_threads_share_an_array(array):
    stored, cells = array
    with ThreadPoolExecutor(8) as pool:
        for i, row in enumerate(pool.map(lambda i: stored[i], range(200))):
            same(row, cells[i])


def in_child(stored, expected, results):
    try:
        same(stored[...], expected)
        same(hs.open(stored.url)[3], expected[3])
        results.put("right")
    except BaseException as reason:  # noqa: BLE001
        results.put(repr(reason))


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_other_processes_read_the_same(array, how):
    stored, cells = array
    same(stored[...], cells)  # threads and connections are there
    context = multiprocessing.get_context(how)
    results = context.Queue()
    children = [context.Process(target=in_child, args=(stored, cells, results)) for _ in range(3)]
    for child in children:
        child.start()
    try:
        assert [results.get(timeout=60) for _ in children] == ["right"] * 3
    finally:
        for child in children:
            child.join(10)
            child.kill()
    same(stored[5], cells[5])


def test_forks_while_others_read(array):
    stored, cells = array
    stop = threading.Event()

    def read():
        while not stop.is_set():
            stored[::7]

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        context = multiprocessing.get_context("fork")
        for _ in range(5):
            results = context.Queue()
            child = context.Process(target=in_child, args=(stored, cells, results))
            child.start()
            assert results.get(timeout=60) == "right"
            child.join(10)
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_ctrl_c_ends_a_read_within_a_second(monkeypatch):
    slow = Cloud("--latency", "30s")
    try:
        # Where tests run in the background, their children would not hear of Ctrl-C at all.
        program = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        program += "import hyperslab as hs\nprint('go', flush=True)\nhs.open('s3://data/x.zarr')"
        environment = os.environ | slow.env | {"PYTHONPATH": str(ROOT / "python")}
        child = subprocess.Popen(
            [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert child.stdout.readline() == "go\n"
        time.sleep(0.5)
        begun = time.monotonic()
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=20)
        # The process has to end, too; the read itself ends within a tenth of a second.
        assert time.monotonic() - begun < 5
        assert "KeyboardInterrupt" in said, said
    finally:
        slow.stop()


def test_deadlines_are_timeouts(monkeypatch):
    cloud = Cloud()
    try:
        for name, value in cloud.env.items():
            monkeypatch.setenv(name, value)
        array = hs.save("s3://data/late.zarr", np.zeros((100, 100)), chunks=(10, 10), compression=False)
        with pytest.raises(TimeoutError):
            hs.open(array.url, deadline="1us")[...]
    finally:
        cloud.stop()
