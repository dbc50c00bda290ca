"""What a figure was measured on, and with which versions."""

from __future__ import annotations

import os
import platform
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

# Memory is held and touched in such pieces; so much of it is left alone, for the kernel.
STEP = 256 << 20
SPARED = 400 << 20
# Bytes of a file that a thread reads at a time, and of a page.
PART = 4 << 20
PAGE = 4096


def describe() -> dict[str, object]:
    """Processor, cores, memory and kernel."""
    cpu = "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    return {
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
        "huge_pages": huge_pages(),
        "load_average": list(os.getloadavg()),
    }


def huge_pages() -> str:
    """The kernel's policy, which decides what page faults of large results cost."""
    path = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    return path.read_text().strip() if path.exists() else "unknown"


def free_memory() -> int:
    """Bytes that nobody has."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemFree:"):
            return int(line.split()[1]) << 10
    return 0


@contextmanager
def little_free_memory(left: int) -> Iterator[None]:
    """Holds memory until at most so many bytes are free, so that `warm_memory` can warm them all."""
    held = []
    while free_memory() > left + STEP:
        held.append(np.ones(STEP, dtype=np.uint8))
    yield
    del held


def warm_memory(size: int) -> None:
    """Touches so many bytes and frees them, just before a timed region; all that is free, if that is
    little more.

    A virtual machine hands memory that was free for seconds back to its host; touching it again is
    20 times slower than touching memory that was just freed, and would be charged to whoever
    allocates first.
    """
    free = free_memory() - SPARED
    if size < free < 2 * size:
        size = free
    held = [np.ones(min(STEP, size - start), dtype=np.uint8) for start in range(0, size, STEP)]
    del held


def plain_read(path: Path, buffer: np.ndarray | None = None) -> float:
    """Seconds that a program takes which wants the bytes of a file and nothing else.

    One thread per core reads parts of it, into the buffer or into memory that is allocated within
    the time. NumPy asks for large pages, as we do. The bytes land half a page off their places in
    the file: where large allocations begin, the kernel would copy at a third of its speed.
    """
    size = path.stat().st_size
    start = time.perf_counter()
    if buffer is None:
        buffer = np.empty(size + 2 * PAGE, dtype=np.uint8)
    first = -buffer.ctypes.data % PAGE + PAGE // 2
    view = memoryview(buffer)[first : first + size]
    parts = iter(range(0, size, PART))
    lock = threading.Lock()

    def work(file: int) -> None:
        while True:
            with lock:
                at = next(parts, None)
            if at is None:
                return
            os.preadv(file, [view[at : at + PART]], at)

    with path.open("rb", buffering=0) as file:
        threads = [
            threading.Thread(target=work, args=(file.fileno(),))
            for _ in os.sched_getaffinity(0)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return time.perf_counter() - start


def line(command: list[str], folder: Path) -> str:
    """The first line that a command prints, or why there is none."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as reason:
        return f"unknown ({type(reason).__name__})"
    return (done.stdout.splitlines() or ["unknown"])[0]


def versions(root: Path) -> dict[str, str]:
    """Our commit, the compiler and the interpreter; the peers report their own."""
    return {
        "commit": line(["git", "describe", "--always", "--dirty"], root),
        "rustc": line(["rustc", "--version"], root),
        "python": platform.python_version(),
    }
