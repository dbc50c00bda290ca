"""A simulated S3 that a test starts and stops."""

import json
import os
import signal
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def program() -> Path:
    """The command line under test."""
    given = os.environ.get("HYPERSLAB_BIN", "target/debug/hyperslab")
    found = (ROOT / given).resolve()
    if not found.exists():
        raise RuntimeError(f"{given} does not exist; build it with cargo build -p hyperslab-cli")
    return found


class Cloud:
    """A simulated S3 with one bucket, `data`."""

    def __init__(self, *how: str):
        command = [program(), "sim", "--bucket", "data", "--json", *how]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        self.env = json.loads(line)["env"]

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(20)
