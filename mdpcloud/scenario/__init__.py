"""Scenario files: a system with its parameters and what to do with it, in TOML.

`read_scenario` reports every mistake of a file at once; `new_scenario` writes one to start from.
"""

from mdpcloud.scenario.reading import read_scenario
from mdpcloud.scenario.settings import (
    CompareSettings,
    Discount,
    Scenario,
    SimulateSettings,
    SolveSettings,
)
from mdpcloud.scenario.template import new_scenario

__all__ = [
    "CompareSettings",
    "Discount",
    "Scenario",
    "SimulateSettings",
    "SolveSettings",
    "new_scenario",
    "read_scenario",
]
