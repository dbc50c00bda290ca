"""What a metered round costs, by the project's price books.

The simulator bills one place; the same counts at another place are billed here, by the same rules
(`crates/sim/src/meter.rs`).
"""

from __future__ import annotations

import tomllib
from typing import Any

from ..harness import ROOT


def book(name: str) -> dict[str, Any]:
    """A price book of `prices/`."""
    return tomllib.loads((ROOT / "prices" / f"{name}.toml").read_text())


def requests(meter: dict[str, Any]) -> int:
    """Requests to the store, and calls of the function."""
    kinds = ("get", "head", "list", "put", "delete")
    return sum(meter[kind] for kind in kinds) + meter["function"]["calls"]


def dollars(meter: dict[str, Any], prices: dict[str, Any], place: str) -> float:
    """The bill for a client at a place: same_region, other_region or internet."""
    fees, egress, function = prices["requests"], prices["egress"], prices["function"]
    calls = meter["function"]
    reads = meter["get"] + meter["head"] + calls["reads"]
    writes = meter["put"] + meter["list"]
    return (
        reads * fees["read_per_1000"]["value"] / 1000
        + writes * fees["write_per_1000"]["value"] / 1000
        + meter["bytes_out"] / egress["bytes_per_gb"]["value"] * egress[f"{place}_per_gb"]["value"]
        + calls["calls"] * function["per_million_requests"]["value"] / 1e6
        + calls["gb_seconds"] * function["per_gb_second"]["value"]
        + calls["seconds"] * function["per_vcpu_second"]["value"]
    )
