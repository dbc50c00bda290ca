"""HSDS with h5pyd: a service of four data nodes that this process starts and stops.

The nodes are reached by sockets in a folder of their own, so that no fixed port is taken.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import tempfile
import time
from typing import Any

import numpy as np

from . import Peer, codec_names

NODES = 4
USER = "admin"
DATASET = "cells"
LONGEST_START = 60.0

# Chunks of 16 MiB need a larger limit than its 4 MB; a chunk cache of one such chunk is the least
# that it works with; its read timeout of a second is too short for 16 MiB at a shared 125 MB/s.
SETTINGS = {
    "MAX_CHUNK_SIZE": "64m",
    "MAX_REQUEST_SIZE": "1000m",
    "CHUNK_MEM_CACHE_SIZE": "17m",
    "CHUNK_MEM_CACHE_EXPIRE": "1",
    "MAX_TASK_COUNT": "1000",
    "MAX_TASKS_PER_NODE_PER_REQUEST": "64",
    "AIO_MAX_POOL_CONNECTIONS": "64",
    "STORE_READ_TIMEOUT": "60",
    "S3_SYNC_TASK_TIMEOUT": "120",
    "FLUSH_TIMEOUT": "120",
    "TIMEOUT": "300",
    "LOG_LEVEL": "ERROR",
}


class Hsds(Peer):
    """One domain per array."""

    def __init__(self) -> None:
        bucket = os.environ.get("HSDS_BUCKET", "bench")
        os.environ.update(SETTINGS)
        os.environ["AWS_S3_GATEWAY"] = os.environ["AWS_ENDPOINT_URL"]
        os.environ["BUCKET_NAME"] = bucket
        from hsds.hsds_app import HsdsApp

        self.folder = tempfile.mkdtemp(prefix="hsds-")
        self.app = HsdsApp(
            username=USER,
            password=USER,
            dn_count=NODES,
            socket_dir=self.folder,
            logfile=os.path.join(self.folder, "log"),
        )
        self.start()
        self.access = {
            "endpoint": self.app.endpoint,
            "username": USER,
            "password": USER,
            "bucket": bucket,
        }

    def start(self) -> None:
        """Starts the nodes. The application itself gives them ten seconds to make their sockets,
        which is too little on a busy machine; they go on starting meanwhile."""
        try:
            self.app.run()
        except OSError:
            deadline = time.monotonic() + LONGEST_START
            names = ["sn_1", *(f"dn_{node + 1}" for node in range(NODES))]
            while not all(os.path.exists(f"{self.folder}/{name}.sock") for name in names):
                if time.monotonic() > deadline:
                    self.close()
                    raise
                time.sleep(0.1)

    def versions(self) -> dict[str, str]:
        return {name: importlib.metadata.version(name) for name in ("hsds", "h5pyd")}

    def domain(self, url: str) -> str:
        return "/hsds/" + url.removeprefix("s3://").split("/", 1)[1].replace("/", "-")

    def open(self, url: str, data_type: Any) -> Any:
        import h5pyd

        return h5pyd.File(self.domain(url), "r", use_cache=False, **self.access)[DATASET]

    def ingest(self, url: str, spec: dict[str, Any], cells: np.ndarray) -> None:
        import h5pyd

        h5pyd.Folder("/hsds/", mode="w", **self.access)
        with h5pyd.File(self.domain(url), "w", **self.access) as file:
            compress = {"compression": "gzip"} if "zstd" in codec_names(spec) else {}
            dataset = file.create_dataset(
                DATASET,
                shape=tuple(spec["shape"]),
                chunks=tuple(spec["chunk_shape"]),
                dtype=cells.dtype,
                **compress,
            )
            # Requests of about 64 MiB, of whole chunks.
            row_bytes = cells[:1].nbytes
            step = spec["chunk_shape"][0]
            step *= max(1, (64 << 20) // (row_bytes * step))
            for start in range(0, cells.shape[0], step):
                dataset[start : start + step] = cells[start : start + step]
            # Data nodes go on writing after this; whoever asks waits until the store has it all.
            file.flush()

    def close(self) -> None:
        self.app.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def make(_: str) -> Peer:
    """The one variant."""
    return Hsds()
