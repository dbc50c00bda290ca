"""Processes that the harness starts: workers that answer JSON lines, and the simulated cloud.

Every system under test is a worker that lives through all its runs, so that the start of a process
is in no timed region and no system shares a process with another.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from .harness import BENCH, ROOT, Unusable

DRIVER = ROOT / "target" / "release" / "hyperslab-bench"
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

    def ask(self, op: str, **arguments: Any) -> dict[str, Any]:
        """Sends a request and waits for its answer."""
        if self.process is None:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
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
            raise Failed(f"the process of {self.name} ended with code {code} during {op}")
        answer = json.loads(line)
        if "error" in answer:
            raise Failed(answer["error"])
        return answer["ok"]

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


def cargo(*arguments: str) -> None:
    """Runs cargo in the project; its own output says what went wrong."""
    done = subprocess.run(["cargo", *arguments], cwd=ROOT, stdout=sys.stderr)
    if done.returncode != 0:
        raise Unusable(f"`cargo {' '.join(arguments)}` failed with code {done.returncode}.")


def build_driver() -> None:
    """A release build of the system under test."""
    cargo("build", "--release", "--quiet", "-p", "hyperslab-bench")


def ours(environment: dict[str, str] | None = None) -> Worker:
    """Hyperslab."""
    return Worker("hyperslab", [str(DRIVER), "serve"], environment)


def peer(name: str, environment: dict[str, str] | None = None) -> Worker:
    """A peer of `hsbench.peers`."""
    return Worker(name, [sys.executable, "-m", "hsbench.worker", name], environment)


class Simulator:
    """The simulated S3 as a process of its own."""

    def __init__(self, preset: str):
        self.process = subprocess.Popen(
            [str(DRIVER), "sim", preset, BUCKET],
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

    def __enter__(self) -> Simulator:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()
