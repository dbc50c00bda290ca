"""Who answers queries: Hyperslab by its planners, and the peers."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import obstore

from ..harness import OURS, Report, Unusable
from ..process import BUCKET, Failed, Simulator, Worker, ours, peer
from .layouts import Layout

MONEY = "hyperslab, internet, φ = ∞"
FORCED = ("get", "range-merge", "range-fetch", "function", "function-whole", "paper")
# Those that read what we wrote, and those that write the same cells in their own format first.
READERS = ("tensorstore", "zarr-python-64", "zarr+zarrs-64")
WRITERS = ("tiledb", "icechunk", "hsds", "parquet")
PEERS = READERS + WRITERS
# Those whose arrays are datasets of a file each.
CONNECTOR = "h5py+connector"
FILES = {CONNECTOR: ".h5/data", "h5py+s3fs": ".h5/data"}
SECRET = "a-secret-of-the-benchmark"
# Seconds that a peer may go on writing after it said that it is done.
LONGEST_WRITE = 120.0


@dataclass
class Contender:
    """A process that answers queries."""

    name: str
    worker: Worker
    settings: dict[str, Any] | None = None
    own_format: bool = False
    # False: one session for all rounds, which refines its profile as it reads.
    new_session: bool = True
    # Whose copy of an array it reads, if not its own, and what stands behind the array's name there.
    copy_of: str | None = None
    suffix: str = ""
    opened: list[str] = field(default_factory=list)

    @property
    def ours(self) -> bool:
        return self.settings is not None

    def url(self, folder: str, array: str) -> str:
        """Where its copy of an array is: ours is the Zarr that most read."""
        whose = self.copy_of or (self.name if self.own_format else "zarr")
        return f"s3://{BUCKET}/{folder}/{whose}/{array}{self.suffix}"

    def open(self, urls: list[str], data_type: str) -> None:
        """Opens arrays; ours in a new session, so that no shard index is left from before."""
        if not self.new_session and self.opened == urls:
            return
        self.opened = urls
        if self.settings is not None:
            self.worker.ask("configure", settings=self.settings)
            self.worker.ask("open_all", urls=urls)
        else:
            self.worker.ask("open_all", urls=urls, data_type=data_type)


@dataclass
class Field:
    """All contenders of a benchmark against one simulated cloud."""

    stack: ExitStack
    sim: Simulator
    report: Report
    profile: Path | str
    prices: str = "aws"
    contenders: dict[str, Contender] = field(default_factory=dict)

    def add_ours(self, name: str, **settings: Any) -> Contender:
        """Hyperslab with these settings besides profile, prices and function."""
        worker = self.stack.enter_context(ours(self.sim.environment))
        given = {"profile": str(self.profile), "prices": self.prices, "place": "same-region"}
        if self.sim.function is not None:
            given |= {"function": self.sim.function, "secret": SECRET}
        contender = Contender(name, worker, given | settings)
        self.contenders[name] = contender
        self.report.versions |= worker.ask("versions")
        return contender

    def add_peer(self, name: str, environment: dict[str, str] | None = None) -> Contender | None:
        """A peer; one that does not start is noted and left out."""
        worker = self.stack.enter_context(peer(name, self.sim.environment | (environment or {})))
        try:
            self.report.versions |= worker.ask("versions")
        except Failed as reason:
            self.report.note(f"{name} does not start: {reason}")
            return None
        suffix = FILES.get(name, "")
        contender = Contender(name, worker, own_format=name in WRITERS or bool(suffix), suffix=suffix)
        self.contenders[name] = contender
        return contender

    def add_planners(self) -> None:
        """The planner by cost, for time and for money, and the forced modes."""
        self.add_ours(OURS, planner="global")
        self.add_ours(MONEY, planner="global", place="internet", phi="inf")
        for mode in FORCED:
            self.add_ours(mode, planner=mode)

    def load(self, folder: str, array: str, layout: Layout, file: Path, names: list[str]) -> None:
        """Writes an array once as Zarr, and once in the format of each peer that has its own.

        The network is as fast as it can be meanwhile. Writers hold all cells, so their processes
        are ended afterwards; they start again when they are asked.
        """
        self.sim.set_network("unshaped")
        zarr = f"s3://{BUCKET}/{folder}/zarr/{array}"
        with ours(self.sim.environment) as writer:
            writer.ask("create", url=zarr, spec=layout.spec())
            writer.ask("load", path=str(file), data_type=layout.data_type)
            writer.ask("write", shape=list(layout.shape))
        for name in names:
            contender = self.contenders.get(name)
            if contender is None or not contender.own_format:
                continue
            url = contender.url(folder, array)
            self.sim.reset()
            try:
                contender.worker.ask("ingest", url=url, spec=layout.spec(), path=str(file))
                if layout.packing == "raw":
                    self.settle(name, file.stat().st_size)
            except Failed as reason:
                self.report.note(f"{name} cannot store {layout}: {reason}")
                del self.contenders[name]
            contender.worker.stop()

    def settle(self, name: str, size: int) -> None:
        """Waits until the store has received all cells: HSDS says that it is done before."""
        deadline = time.monotonic() + LONGEST_WRITE
        while self.sim.meter()["bytes_in"] < size:
            if time.monotonic() > deadline:
                raise Failed(f"{name} has not written all cells after {LONGEST_WRITE:g} s")
            time.sleep(0.1)

    def clear(self, folder: str) -> None:
        """Removes all arrays of a folder, so that the simulator holds one layout at a time."""
        self.sim.set_network("unshaped")
        environment = self.sim.environment
        bucket = obstore.store.S3Store(
            BUCKET,
            client_options={"allow_http": True},
            endpoint=environment["AWS_ENDPOINT_URL"],
            access_key_id=environment["AWS_ACCESS_KEY_ID"],
            secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
            region=environment["AWS_REGION"],
        )
        for page in bucket.list(f"{folder}/"):
            bucket.delete([entry["path"] for entry in page])


def must_answer(contender: Contender, what: str, reason: Failed) -> None:
    """Hyperslab by its own planner must not fail."""
    if contender.name in (OURS, MONEY):
        raise Unusable(f"{contender.name} fails at {what}: {reason}") from reason
