"""The examples in the documentation run as they are printed."""

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest
from conftest import ROOT

import hyperslab

NEEDS_MORE = {"hyperslab.torch", "hyperslab.xarray"}
MODULES = ["hyperslab"] + [
    f"hyperslab.{found.name}"
    for found in pkgutil.iter_modules(hyperslab.__path__)
    if f"hyperslab.{found.name}" not in NEEDS_MORE and not found.name.startswith("_core")
]
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_modules(name):
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=OPTIONS)
    assert failed == 0


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "guide").glob("*.md")), ids=lambda page: page.name)
def test_examples_in_pages(page: Path, tmp_path, monkeypatch, s3):
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testfile(str(page), module_relative=False, optionflags=OPTIONS)
    assert tried > 0 and failed == 0
