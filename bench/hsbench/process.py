"""Processes that the harness starts: workers that answer JSON lines, and the simulated cloud.

Every system under test is a worker that lives through all its runs, so that the start of a process
is in no timed region and no system shares a process with another.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from .harness import BENCH, ROOT, Report, Unusable
from .peers import ENVIRONMENT, OWN_PYTHON

DRIVER = ROOT / "target" / "release" / "hyperslab-bench"
COMMAND_LINE = ROOT / "target" / "release" / "hyperslab"
EXAMPLES = ROOT / "target" / "release" / "examples"
CONNECTOR = ROOT / "target" / "release" / "libhyperslab_vol.so"
BUCKET = "bench"


class Failed(Exception):
    """A worker's answer that says why it could not."""


class Worker:
    """A process that answers one JSON line per request. It is started again if it died."""

    def __init__(self, name: str, command: list[str], environment: dict[str, str] | None = None):
        self.name = name
        self.command = command
        self.environment = os.environ | (environment or {})
        self.process: subprocess.Popen[str] | None = None
        self.errors: IO[bytes] | None = None

    def ask(self, op: str, **arguments: Any) -> dict[str, Any]:
        """Sends a request and waits for its answer."""
        if self.process is None:
            self.errors = tempfile.TemporaryFile()
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.errors,
                text=True,
                env=self.environment,
                cwd=BENCH,
            )
        assert self.process.stdin and self.process.stdout
        try:
            self.process.stdin.write(json.dumps({"op": op, **arguments}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            code = self.process.wait()
            self.process = None
            raise Failed(
                f"the process of {self.name} ended with code {code} during {op}{self.last_words()}"
            )
        answer = json.loads(line)
        if "error" in answer:
            raise Failed(answer["error"])
        return answer["ok"]

    def last_words(self) -> str:
        """The last line that a process wrote about its end."""
        if self.errors is None:
            return ""
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        return f": {lines[-1][:300]}" if lines else ""

    def stop(self) -> None:
        """Ends the process by ending its input."""
        if self.process is not None:
            assert self.process.stdin and self.process.stdout
            self.process.stdin.close()
            self.process.stdout.close()
            self.process.wait()
            self.process = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def able(
    report: Report, system: str, what: str, attempt: Callable[[], float]
) -> Callable[[], float | None]:
    """An attempt whose failure leaves a peer out, with a note. Ours must not fail."""

    def guarded() -> float | None:
        try:
            return attempt()
        except Failed as reason:
            if system == "hyperslab":
                raise Unusable(f"hyperslab fails at {what}: {reason}") from reason
            report.note(f"{system} cannot do {what}: {reason}")
            return None

    return guarded


def cargo(*arguments: str) -> None:
    """Runs cargo in the project; its own output says what went wrong."""
    done = subprocess.run(["cargo", *arguments], cwd=ROOT, stdout=sys.stderr)
    if done.returncode != 0:
        raise Unusable(f"`cargo {' '.join(arguments)}` failed with code {done.returncode}.")


def build() -> None:
    """A release build of all that is measured. Packages built by themselves would have other features
    of what they depend on, and half of that would be compiled for each."""
    cargo("build", "--release", "--quiet", "--workspace", "--lib", "--bins", "--examples")


def build_python() -> None:
    """The Python package, laid into the tree."""
    build()
    subprocess.run([str(ROOT / "scripts" / "python-package"), "release"], check=True)


def run_example(
    name: str, *arguments: str, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Runs an example of ours. One that prints nothing did not run, nor, to be checked, one that fails."""
    build()
    command = [str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if not done.stdout.strip() or (check and done.returncode != 0):
        reason = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise Unusable(f"the example `{name}` did not run: {reason}")
    return done


def run_measured(command: list[str], **how: Any) -> tuple[float, int]:
    """Runs a program to its end; returns its seconds and its peak resident bytes."""
    start = time.perf_counter()
    process = subprocess.Popen(command, **how)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        shown = " ".join([Path(command[0]).name, *command[1:]])
        raise Unusable(f"`{shown}` ended with {process.returncode}.")
    return seconds, usage.ru_maxrss * 1024


def connector_environment(plugins: Path, settings: str = "") -> dict[str, str]:
    """What leads HDF5 programs to the connector, alone in a folder: libhdf5 looks at all that is there."""
    plugins.mkdir(exist_ok=True)
    link = plugins / CONNECTOR.name
    if not link.exists():
        link.symlink_to(CONNECTOR)
    return {"HDF5_PLUGIN_PATH": str(plugins), "HDF5_VOL_CONNECTOR": f"hyperslab {settings}".strip()}


def ours(environment: dict[str, str] | None = None) -> Worker:
    """Hyperslab."""
    return Worker("hyperslab", [str(DRIVER), "serve"], environment)


def peer(
    name: str, environment: dict[str, str] | None = None, python: str | None = None
) -> Worker:
    """A peer of `hsbench.peers`; `python` is another interpreter below bench/ than its usual one."""
    own = ENVIRONMENT.get(name, {})
    python = python or OWN_PYTHON.get(name)
    python = str(BENCH / python) if python else sys.executable
    command = [python, "-m", "hsbench.worker", name]
    return Worker(name, command, (environment or {}) | own)


class Simulator:
    """The simulated cloud as a process of its own.

    `extras` are those of the driver's `simulate.rs`: prices, place, function_secret, computed,
    threads.
    """

    def __init__(self, preset: str, **extras: Any):
        self.process = subprocess.Popen(
            [str(DRIVER), "sim", preset, BUCKET, json.dumps(extras)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise Unusable(f"the simulator with the preset {preset!r} does not start.")
        started = json.loads(line)
        self.endpoint: str = started["endpoint"]
        self.environment: dict[str, str] = started["env"]
        self.network: str = started["network"]
        self.function: str | None = started["function"]

    def meter(self) -> dict[str, Any]:
        """What was counted since the last reset."""
        return self.admin("GET", "meter")

    def reset(self) -> None:
        """Counts from zero again."""
        self.admin("POST", "reset")

    def set_network(self, network: str | dict[str, Any]) -> None:
        """Changes the network: the name of a preset, or a network as `GET network` shows it."""
        if isinstance(network, str):
            self.admin("PUT", f"network?preset={network}")
        else:
            self.admin("PUT", "network", network)

    def admin(self, method: str, name: str, body: Any = None) -> Any:
        """The simulator's own path, which is neither shaped nor metered."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"{self.endpoint}/_sim/{name}", data=data, method=method
        )
        # The simulator is on this machine, whatever proxy the environment names.
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(request, timeout=60) as answer:
            return json.load(answer)

    def __enter__(self) -> Simulator:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def measure_profile(sim: Simulator, secret: str, file: Path, seconds: int) -> None:
    """Measures the simulated cloud and its function as a user would, with `hyperslab profile`."""
    command = [str(COMMAND_LINE), "profile", f"s3://{BUCKET}/profile", "--quiet"]
    command += ["--function", str(sim.function), "--seconds", str(seconds)]
    command += ["--bytes", "128MiB", "-o", str(file)]
    environment = os.environ | sim.environment | {"HYPERSLAB_FUNCTION_SECRET": secret}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise Unusable(f"`hyperslab profile` failed: {' '.join(done.stderr.split())}")
