"""Advice on layouts, from boxes and from traces."""

import os
import subprocess
import sys

import numpy as np
import pytest

import hyperslab as hs
from conftest import ROOT


@pytest.fixture
def array(tmp_path):
    cells = np.zeros((64, 256, 256), "f4")
    cells[0, 0, 0] = 1
    return hs.save(str(tmp_path / "a.zarr"), cells, chunks=(64, 16, 16), compression=False)


def test_boxes_lead_to_chunks_like_them(array):
    maps = array.advise([(1, 256, 256)], blocks="256KiB")
    assert maps.worth_it
    assert maps.layout["chunks"] == [1, 256, 256]
    assert "rechunk" in maps.commands[0]
    assert maps.details["today"]["blocks"] > 100 * maps.details["proposed"]["blocks"]
    series = array.advise([(64, 1, 1)], blocks="64KiB")
    assert series.layout["chunks"][0] == 64
    assert "proposed" in repr(series)


def test_two_copies_serve_maps_and_series(array):
    both = array.advise([((1, 256, 256), 3), ((64, 1, 1), 1)], blocks="64KiB", replicas=2)
    assert len(both.layouts) == 2
    assert any("replicas create" in command for command in both.commands)
    no_room = array.advise([(1, 256, 256), (64, 1, 1)], blocks="64KiB", replicas=2, budget=1)
    assert len(no_room.layouts) == 1


def test_traces_are_reads(array, tmp_path):
    traces = tmp_path / "traces"
    program = "import sys, hyperslab as hs; a = hs.open(sys.argv[1], trace=sys.argv[2]); [a[i] for i in range(20)]"
    command = [sys.executable, "-c", program, array.url, str(traces)]
    subprocess.run(command, env=os.environ | {"PYTHONPATH": str(ROOT / "python")}, check=True)
    advice = array.advise(trace=traces, blocks="256KiB")
    assert advice.details["reads"] == 20
    assert advice.layout["chunks"] == [1, 256, 256]
    page = tmp_path / "advice.html"
    advice.save_html(page)
    assert "<svg" in page.read_text()


def test_cost_decides_too(array):
    advice = array.advise([(1, 256, 256)])
    assert advice.details["proposed"]["expected"]["cost"] <= advice.details["today"]["expected"]["cost"]
    assert 0.0 <= advice.saving < 1.0


def test_what_is_wrong_is_said(array, tmp_path):
    for boxes in ([(1, 2)], [(1, 257, 1)], [((1, 1, 1), 0)], []):
        with pytest.raises(hs.InvalidError):
            array.advise(boxes)
    with pytest.raises(hs.InvalidError):
        array.advise()
    with pytest.raises(hs.InvalidError):
        array.advise([(1, 1, 1)], blocks=2)
    with pytest.raises(hs.Error):
        array.advise(trace=tmp_path / "none")
