"""What is optimised: average, discounted, finite-horizon or total cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

from mdpcloud.errors import InputError

__all__ = [
    "AverageCost",
    "Criterion",
    "Discounted",
    "FiniteHorizon",
    "TotalCost",
    "discount_rate",
]

SMALLEST_FACTOR = 1e-100  # in place of the factor 0, which has no rate; no sum notices


@dataclass(frozen=True)
class AverageCost:
    """Long-run average cost per unit of time (per step in discrete time)."""

    scale = 1.0
    """What the engine's values are to be multiplied by."""

    def rate_for(self, discrete: bool) -> float:
        """The discount rate, 0."""
        return 0.0


@dataclass(frozen=True)
class Discounted:
    """Expected discounted cost.

    Parameters
    ----------
    rate : float, optional
        Continuous time: a cost at time t counts exp(-rate t); 1/time, > 0.
    factor : float, optional
        Discrete time (tabular models): a cost at step t counts factor**t; 0 <= factor < 1.
    """

    rate: float | None = None
    factor: float | None = None

    def __post_init__(self) -> None:
        if (self.rate is None) == (self.factor is None):
            raise InputError("give rate (continuous time) or factor (discrete time), and not both")
        for name, value in (("rate", self.rate), ("factor", self.factor)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, Real)):
                raise InputError(f"discount {name} is {value!r}; it must be a number")
        if self.rate is not None and not (math.isfinite(self.rate) and self.rate > 0):
            raise InputError(f"discount rate is {self.rate}; it must be finite and > 0")
        if self.factor is not None and not 0 <= self.factor < 1:
            hint = (
                "; for the undiscounted case use mdpcloud.AverageCost()" if self.factor == 1 else ""
            )
            raise InputError(f"discount factor is {self.factor}; it must be in [0, 1){hint}")

    def rate_for(self, discrete: bool) -> float:
        """The rate alpha of alpha V = c + Q V.

        In discrete time V = c + b P V is (1/b - 1) V = c/b + (P - I) V: alpha = (1 - b) / b, with a
        relative error of two roundings however close b is to 1, and values are to be divided by b.
        """
        if discrete != (self.factor is not None):
            kind, right = ("discrete", "factor") if discrete else ("continuous", "rate")
            given = "rate" if discrete else "factor"
            raise InputError(
                f"the model is in {kind} time: use Discounted({right}=...), not {given}="
                f"{self.rate if self.factor is None else self.factor:g}"
            )
        if self.rate is not None:
            return self.rate
        factor = max(self.factor or 0.0, SMALLEST_FACTOR)
        return (1.0 - factor) / factor

    @property
    def scale(self) -> float:
        """What the engine's values are to be multiplied by: 1/b in discrete time."""
        return 1.0 if self.factor is None else 1.0 / max(self.factor, SMALLEST_FACTOR)


@dataclass(frozen=True, eq=False)
class FiniteHorizon:
    """Expected cost from now until a given time.

    Parameters
    ----------
    time : float
        The horizon, > 0; in discrete time a whole number of steps.
    final_cost : float, (n,) array or function of x, optional
        What the state at the end costs (for a model given by rewards: earns).
    """

    time: float
    final_cost: Any = None
    scale = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.time, bool) or not isinstance(self.time, Real):
            raise InputError(f"the horizon is {self.time!r}; it must be a number")
        if not (math.isfinite(self.time) and self.time > 0):
            raise InputError(f"the horizon is {self.time}; it must be finite and > 0")

    def steps(self) -> int:
        """The horizon of a model in discrete time."""
        if self.time != int(self.time):
            raise InputError(
                f"the horizon is {self.time}; in discrete time it must be a whole number of steps"
            )
        return int(self.time)


@dataclass(frozen=True, eq=False)
class TotalCost:
    """Expected cost until the process reaches a target (stochastic shortest path).

    Parameters
    ----------
    targets : (n,) booleans, sequence of state numbers, or function of x returning booleans
        Where the process ends; nothing counts from there on. By default the states that nothing
        leaves and that cost nothing.
    """

    targets: Any = None
    scale = 1.0


Criterion = AverageCost | Discounted | FiniteHorizon | TotalCost


def discount_rate(criterion: Any, discrete: bool) -> float:
    """The rate alpha of a criterion, 0 for average cost; checks that it is one of these two.

    Raises
    ------
    InputError
        When it is no criterion, or one for the other kind of time.
    """
    if not isinstance(criterion, AverageCost | Discounted):
        raise InputError(
            f"criterion is {criterion!r}; it must be one of mdpcloud.AverageCost(), "
            "mdpcloud.Discounted(...), mdpcloud.FiniteHorizon(...) and mdpcloud.TotalCost(...)"
        )
    return criterion.rate_for(discrete)
