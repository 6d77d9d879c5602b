"""The routing instances, read from their scenarios."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["GAIN", "SIZES", "SMALL_BOX", "TOLERANCE", "read"]

FOLDER = Path(__file__).parent
SIZES = ("s", "m", "l")
TOLERANCE = 1e-6
GAIN = 2.1091901576  # of l; s and m cut off less than 1e-9 of it
SMALL_BOX = (10, 10, 10)


def read(size: str) -> tuple[Any, tuple[int, ...]]:
    """System and caps of an instance."""
    import mdpcloud as mc

    scenario = mc.read_scenario(FOLDER / f"routing_{size}.toml")
    assert scenario.solve.caps is not None
    return scenario.system, scenario.solve.caps
