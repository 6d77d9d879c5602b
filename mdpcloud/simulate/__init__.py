"""Event simulation of any model under any policy."""

from __future__ import annotations

from mdpcloud.simulate.result import Estimate, SimulationResult, SimulationWarning
from mdpcloud.simulate.simulate import simulate

__all__ = ["Estimate", "SimulationResult", "SimulationWarning", "simulate"]
