"""mdpcloud on its own description of the routing model, from which the arrays were written."""

from __future__ import annotations

from typing import Any

import mdpcloud as mc
from benchmarks.instances import read as read_routing
from benchmarks.peers.adapters.mdpcloud import TOLERANCE

__all__ = ["average"]


def average(size: str) -> dict[str, Any]:
    system, caps = read_routing(size)
    solution = mc.solve(system.model(caps), tolerance=TOLERANCE)
    return {"gain": solution.gain, "bounds": solution.bounds, "iterations": solution.iterations}
