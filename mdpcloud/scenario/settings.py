"""What a scenario file holds, once it is read."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Lt, MinLen, Unit

from mdpcloud.asymptotics.settings import FigureSettings
from mdpcloud.errors import InputError
from mdpcloud.model.limit import Limit
from mdpcloud.parameters import validate
from mdpcloud.simulate.settings import SimulateSettings

__all__ = [
    "CompareSettings",
    "Discount",
    "FigureSettings",
    "Rule",
    "Scenario",
    "SimulateSettings",
    "SolveSettings",
    "Ties",
]

Rule = Callable[..., Any] | Mapping[str, Any]
Ties = Literal["first", "last", "fastest", "slowest"]


@dataclass(frozen=True)
class Discount:
    """Discounting by a rate (continuous time) or by a factor (discrete time), one of them.

    Parameters
    ----------
    discount_rate : float, optional
        Rate at which later costs lose weight, 1/time.
    discount_factor : float, optional
        Weight of the next step's cost.
    """

    discount_rate: Annotated[float, Gt(0), Unit("1/time")] | None = None
    discount_factor: Annotated[float, Ge(0), Lt(1)] | None = None

    def __post_init__(self) -> None:
        validate(self)
        if (self.discount_rate is None) == (self.discount_factor is None):
            raise InputError("exactly one of discount_rate and discount_factor must be given")


@dataclass(frozen=True)
class SolveSettings:
    """How to solve: the table ``[solve]`` of a scenario.

    Parameters
    ----------
    tolerance : float
        Largest difference of the certified bounds, as a part of the optimum.
    criterion : "average_cost" or Discount
        In a file ``"average_cost"``, ``{ discount_rate = 0.1 }`` or ``{ discount_factor = 0.9 }``.
    solver : str, optional
        By default the solver is chosen by the size of the model. For average and discounted cost
        without constraints.
    threads : int
        Number of threads of the sweeps.
    caps : tuple of int, optional
        Largest number of jobs at each node; by default the system chooses.
    time_limit : float, optional
        Time after which to stop with the best bounds so far, in seconds; a comparison shares it
        among its solves, each of which gets at least a tenth.
    constraints : mapping of str to float or Limit, optional
        The table ``[solve.constraints]``: name of a measure of the model, or ``"a / b"`` for the
        ratio of two, to what its long-run average is at most; or ``{ at_least = 0.5 }``. Solved
        only, not compared.
    """

    tolerance: Annotated[float, Gt(0), Lt(1)] = 1e-8
    criterion: Literal["average_cost"] | Discount = "average_cost"
    solver: Literal["value_iteration", "policy_iteration", "linear_programming"] | None = None
    threads: Annotated[int, Ge(1)] = 1
    caps: Annotated[tuple[Annotated[int, Ge(0)], ...], MinLen(1)] | None = None
    time_limit: Annotated[float, Gt(0), Unit("second")] | None = None
    constraints: Mapping[str, float | Limit] | None = None

    def __post_init__(self) -> None:
        validate(self)

    def for_solve(self) -> dict[str, Any]:
        """Arguments of `mdpcloud.solve`."""
        return {
            "criterion": self._criterion(),
            "solver": self._solver(),
            "tolerance": self.tolerance,
            "time_limit": self.time_limit,
            "threads": self.threads,
            **({"constraints": dict(self.constraints)} if self.constraints else {}),
        }

    def for_compare(self) -> dict[str, Any]:
        """Arguments of `mdpcloud.compare`, which knows the average cost only."""
        if self.criterion != "average_cost":
            raise InputError(
                "policies are compared by their 'average_cost' only; for other criteria use solve"
            )
        if self.constraints:
            raise InputError(
                "policies are compared by their cost alone, without solve.constraints; solve finds "
                "what is best within them"
            )
        given = {"caps": self.caps, "time_limit": self.time_limit, "solver": self._solver()}
        known = {name: value for name, value in given.items() if value is not None}
        return {"tolerance": self.tolerance, "threads": self.threads, **known}

    def _criterion(self) -> Any:
        import mdpcloud as mc

        if self.criterion == "average_cost":
            return mc.AverageCost()
        if self.criterion.discount_rate is not None:
            return mc.Discounted(rate=self.criterion.discount_rate)
        return mc.Discounted(factor=self.criterion.discount_factor)

    def _solver(self) -> Any:
        if self.solver is None:
            return None
        from mdpcloud.solve.linear_programming import LinearProgramming
        from mdpcloud.solve.policy_iteration import PolicyIteration
        from mdpcloud.solve.value_iteration import ValueIteration

        known = (LinearProgramming, PolicyIteration, ValueIteration)
        return next(solver() for solver in known if solver.name == self.solver)


@dataclass(frozen=True)
class CompareSettings:
    """What to compare: the table ``[compare]`` of a scenario.

    Parameters
    ----------
    policies : mapping of str, optional
        Name to a rule of the user's own, or to the name itself for a policy that the system knows;
        by default every policy that the system knows. `mdpcloud.compare` takes it as it is. A rule
        is a function of the state, or a mapping from decisions to such functions (`mdpcloud.policy`
        tells what else they may be).
    ties : str
        Which of several actions of equal index is taken.
    spellings : mapping of str
        Each policy as the file spells it, such as ``my_rules.py:rule``, to its name above.
    """

    policies: Mapping[str, str | Rule] | None = None
    ties: Ties = "fastest"
    spellings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Scenario:
    """A scenario file.

    Attributes
    ----------
    format : int
        Version of the file format, 1.
    system : object
        The system, an instance of its dataclass.
    system_name : str
        The system as the file names it.
    name : str
        The scenario's own name, by default that of its file.
    time_unit, cost_unit : str
        Units of the parameters and results: rates are 1/time_unit, costs are in cost_unit.
    solve : SolveSettings
    compare : CompareSettings
    simulate : SimulateSettings
    figure : FigureSettings or None
    path : Path
    sha256 : str
        Hash of the file's bytes, in hexadecimal digits.
    """

    format: int
    system: Any
    system_name: str
    name: str
    time_unit: str
    cost_unit: str
    solve: SolveSettings = field(default_factory=SolveSettings)
    compare: CompareSettings = field(default_factory=CompareSettings)
    simulate: SimulateSettings = field(default_factory=SimulateSettings)
    figure: FigureSettings | None = None
    path: Path = Path()
    sha256: str = ""

    @property
    def parameters(self) -> dict[str, Any]:
        """The system's parameters, those left out in the file included."""
        return dataclasses.asdict(self.system)
