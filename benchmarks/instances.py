"""The routing instances, read from their scenarios."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["GAINS", "LARGE", "SIZES", "SMALL_BOX", "TOLERANCES", "read"]

FOLDER = Path(__file__).parent
SIZES = ("s", "m", "l")
LARGE = "4"  # four nodes, ten million states
TOLERANCES = (1e-6, 1e-8)
GAINS = {"s": 2.1091901576, "m": 2.1091901576, "l": 2.1091901576, "4": 2.5339632595}
SMALL_BOX = (10, 10, 10)


def read(size: str) -> tuple[Any, tuple[int, ...]]:
    """System and caps of an instance."""
    import mdpcloud as mc

    scenario = mc.read_scenario(FOLDER / f"routing_{size}.toml")
    assert scenario.solve.caps is not None
    return scenario.system, scenario.solve.caps
