"""The result of a comparison: the optimum, a row per policy, gaps, tables, pictures."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import NoneType
from typing import Any

from mdpcloud.compare.optimum import Optimum
from mdpcloud.compare.row import Row, family_record, simulation_record
from mdpcloud.numbers import enclosing

__all__ = ["Comparison"]

FORMAT = 1
SIMULATED = "simulated"
GAPS = ("gap", "gap_lower", "gap_upper", "absolute_gap", "profit_gap")
SMALLEST = 1e-9  # of the largest cost rate: below it the optimum is too small for a relative gap


@dataclass(frozen=True, eq=False)
class Comparison:
    """Policies of a system beside its optimum.

    Attributes
    ----------
    system : object
    optimum : Optimum or None
        None where the system was not solved and its policies were simulated.
    rows : tuple of Row
    cost_scale : float or None
        The largest cost rate of the model, cost/time; None without an optimum.
    ties : str
    solve : mapping
        Settings.
    notes : tuple of str
    run : mapping
        Versions, machine, time.
    simulate : mapping or None
        Settings of the simulation, where there was one.
    fluid_bound : float or None
        A lower bound of the optimal cost from the fluid limit, cost/time, where the system has one.
    name, time_unit, cost_unit, scenario_sha256, system_name : str
        From the scenario, where there is one.
    """

    system: Any
    optimum: Optimum | None
    rows: tuple[Row, ...]
    cost_scale: float | None
    ties: str
    solve: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    run: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    time_unit: str = "time"
    cost_unit: str = "cost"
    scenario_sha256: str | None = None
    system_name: str | None = None
    simulate: Mapping[str, Any] | None = None
    fluid_bound: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON, without inf or nan."""
        from mdpcloud.systems.registry import name_of

        return {
            "format": FORMAT,
            "system": self.system_name or name_of(type(self.system)),
            "name": self.name,
            "parameters": _plain(dataclasses.asdict(self.system)),
            "units": {"time": self.time_unit, "cost": self.cost_unit},
            "solve": dict(self.solve),
            "simulate": _plain(self.simulate),
            "ties": self.ties,
            **_optimum(self.optimum),
            "fluid_bound": _plain(self.fluid_bound),
            "policies": [self._row(row) for row in self.rows],
            "indices": {
                row.name: [list(table) for table in row.indices]
                for row in self.rows
                if row.indices is not None
            },
            "split": self._split(),
            "notes": list(self.notes),
            "run": {**self.run, "scenario_sha256": self.scenario_sha256},
        }

    def to_json(self, path: str | Path) -> None:
        """Write `to_dict` to a file."""
        text = json.dumps(self.to_dict(), indent=2, allow_nan=False)
        Path(path).write_text(text + "\n", encoding="utf-8")

    def plot(self, folder: str | Path) -> list[Path]:
        """Write the pictures into a folder; their paths."""
        from mdpcloud.compare.pictures import draw

        return draw(self, Path(folder))

    def _row(self, row: Row) -> dict[str, Any]:
        record: dict[str, Any] = _plain(
            {
                "name": row.name,
                "cost": row.cost,
                "lower": row.lower,
                "upper": row.upper,
                "status": row.status,
                **self.gaps(row),
                "measures": row.measures,
                "states": row.states,
                "notes": row.notes,
                **family_record(row),
                **simulation_record(row),
            }
        )
        return record

    def gaps(self, row: Row) -> dict[str, float | None]:
        """Relative, absolute and profit gap of a row; None where it means nothing."""
        best = self.optimum
        if best is None or self.cost_scale is None:
            return dict.fromkeys(GAPS)
        if best.kind == "restricted" and row.cost < best.lower:
            return dict.fromkeys(GAPS)
        small = best.lower <= SMALLEST * self.cost_scale
        earned = getattr(self.system, "profit_rate", None)
        profit = None if earned is None else earned - best.cost
        return {
            "gap": None if small else (row.cost - best.cost) / best.cost,
            "gap_lower": None if small else _gap_of(row.lower, best.upper, -math.inf),
            "gap_upper": None if small else _gap_of(row.upper, best.lower, math.inf),
            "absolute_gap": row.cost - best.cost,
            "profit_gap": (row.cost - best.cost) / profit if profit and profit > 0 else None,
        }

    def _split(self) -> dict[str, Any] | None:
        wanted = any(row.heuristic == "bernoulli_split" for row in self.rows)
        split = getattr(self.system, "split", None) if wanted else None
        if split is None:
            return None
        return {
            "rates": [float(rate) for rate in split.rates],
            "outside_rate": float(split.outside_rate),
            "shadow_price": float(split.shadow_price),
        }


def _gap_of(cost: float, best: float, towards: float) -> float:
    """A bound of the relative gap, rounded outwards."""
    if not math.isfinite(cost):
        return cost
    if not math.isfinite(best):
        return -1.0
    return enclosing(Fraction(cost) / Fraction(best) - 1, towards)


def _optimum(optimum: Optimum | None) -> dict[str, Any]:
    """The optimum, and on which states it was found."""
    if optimum is None:
        truncation = {"kind": SIMULATED, "error": None}
        return {"states": None, "caps": None, "truncation": truncation, "optimum": None}
    return {
        "states": optimum.states,
        "caps": None if optimum.caps is None else list(optimum.caps),
        "truncation": {"kind": optimum.kind, "error": optimum.error},
        "optimum": {
            "cost": optimum.cost,
            "lower": optimum.lower,
            "upper": optimum.upper,
            "status": optimum.status,
        },
    }


def _plain(value: Any) -> Any:
    """Containers and numbers of Python for what a user's system may hold; None for inf and nan."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (bool, int, float, str, NoneType)) else str(value)
