# Two commands matter: `make demo` and `make test`. Both set up what they need and can be repeated.

.PHONY: help demo test lint build wheel tour setup-test setup-demo unit interop interop-run python python-run clean

help:
	@echo 'make demo   build Hyperslab and run its main job on a simulated cloud (a few minutes cold)'
	@echo 'make test   set up real servers and peers in the tree, then run every check and test'
	@echo 'make lint   formatting, clippy and rustdoc, warnings as errors'
	@echo 'make build  build the command line (release)'
	@echo 'make wheel  build the Python package: extension, command line and HDF5 plug-in'
	@echo 'make tour   install that wheel into an empty environment and run the tour of the README'

demo: setup-demo
	cargo build --quiet -p hyperslab-cli
	target/debug/hyperslab demo

test: setup-test lint unit interop-run python-run
	@echo 'make test: all checks and tests passed'

setup-demo:
	@scripts/setup demo

setup-test:
	@scripts/setup test

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --quiet

unit:
	@scripts/unit-tests

interop:
	cargo build --quiet -p hyperslab-cli
	$(MAKE) interop-run

# `unit` has built the binary, with the features of the whole workspace: building it by itself again
# would compile half of the dependencies anew.
interop-run:
	cargo build --quiet --workspace --all-targets
	HYPERSLAB_BIN=target/debug/hyperslab .venv/bin/python -m pytest -q tests/interop

python:
	cargo build --quiet -p hyperslab-cli -p hyperslab-vol -p hyperslab-python
	$(MAKE) python-run

# `interop-run` has built the extension and the plug-in.
python-run:
	scripts/python-package
	HYPERSLAB_BIN=target/debug/hyperslab .venv/bin/python -m pytest -q tests/python --ignore tests/python/test_torch.py
	HYPERSLAB_BIN=target/debug/hyperslab .venv-torch/bin/python -m pytest -q tests/python/test_torch.py

wheel: setup-demo
	@scripts/wheel

tour: wheel
	@scripts/tour

build:
	cargo build --release -p hyperslab-cli

clean:
	cargo clean
	rm -rf .venv .venv-torch .tools bench/.venv bench/out
