"""Markov decision processes for resource allocation, solved exactly and with certificates.

Public names are loaded when they are first used, so that ``import mdpcloud`` costs little more than
nothing; `_HOME` says in which module each of them lives.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from mdpcloud.errors import InputError, MdpcloudError, MultichainError, SolveError

if TYPE_CHECKING:
    from mdpcloud import asymptotics, indices, laws, limits, policies, queues, study, systems
    from mdpcloud.compare import compare
    from mdpcloud.criteria import AverageCost, Discounted, FiniteHorizon, TotalCost
    from mdpcloud.engine.rules import policy
    from mdpcloud.model.chain import markov_chain
    from mdpcloud.model.event import Action, Control, Event, Flow, Mode, Move, step
    from mdpcloud.model.limit import Limit
    from mdpcloud.model.model import Model
    from mdpcloud.model.policy import Policy
    from mdpcloud.model.space import Lattice, Reachable
    from mdpcloud.model.tabular import tabular
    from mdpcloud.model.timed_policy import TimedPolicy
    from mdpcloud.scenario import read_scenario
    from mdpcloud.simulate import SimulationResult, SimulationWarning, simulate
    from mdpcloud.solve import (
        Evaluation,
        InfeasibleError,
        Solution,
        Status,
        bracketed,
        estimated,
        evaluate,
        first_passage,
        improve,
        load_solution,
        long_run,
        recurrent_classes,
        sensitivity,
        solve,
        stationary,
        transient,
    )

__version__ = "0.1.0"

_HOME = {
    "Action": "model.event",
    "AverageCost": "criteria",
    "Control": "model.event",
    "Discounted": "criteria",
    "Evaluation": "solve",
    "Event": "model.event",
    "FiniteHorizon": "criteria",
    "Flow": "model.event",
    "InfeasibleError": "solve",
    "Lattice": "model.space",
    "Limit": "model.limit",
    "Mode": "model.event",
    "Model": "model.model",
    "Move": "model.event",
    "Policy": "model.policy",
    "Reachable": "model.space",
    "SimulationResult": "simulate",
    "SimulationWarning": "simulate",
    "Solution": "solve",
    "Status": "solve",
    "TimedPolicy": "model.timed_policy",
    "TotalCost": "criteria",
    "bracketed": "solve",
    "compare": "compare",
    "estimated": "solve",
    "evaluate": "solve",
    "first_passage": "solve",
    "improve": "solve",
    "load_solution": "solve",
    "long_run": "solve",
    "markov_chain": "model.chain",
    "policy": "engine.rules",
    "read_scenario": "scenario",
    "recurrent_classes": "solve",
    "sensitivity": "solve",
    "simulate": "simulate",
    "solve": "solve",
    "stationary": "solve",
    "step": "model.event",
    "tabular": "model.tabular",
    "transient": "solve",
}
_SUBPACKAGES = (
    "asymptotics",
    "indices",
    "laws",
    "limits",
    "policies",
    "queues",
    "study",
    "systems",
)

__all__ = [
    "Action",
    "AverageCost",
    "Control",
    "Discounted",
    "Evaluation",
    "Event",
    "FiniteHorizon",
    "Flow",
    "InfeasibleError",
    "InputError",
    "Lattice",
    "Limit",
    "MdpcloudError",
    "Mode",
    "Model",
    "Move",
    "MultichainError",
    "Policy",
    "Reachable",
    "SimulationResult",
    "SimulationWarning",
    "Solution",
    "SolveError",
    "Status",
    "TimedPolicy",
    "TotalCost",
    "__version__",
    "asymptotics",
    "bracketed",
    "compare",
    "estimated",
    "evaluate",
    "first_passage",
    "improve",
    "indices",
    "laws",
    "limits",
    "load_solution",
    "long_run",
    "markov_chain",
    "policies",
    "policy",
    "queues",
    "read_scenario",
    "recurrent_classes",
    "sensitivity",
    "simulate",
    "solve",
    "stationary",
    "step",
    "study",
    "systems",
    "tabular",
    "transient",
]


class _Package(ModuleType):
    """The package: ``solve``, ``simulate`` and ``compare`` are functions, not submodules."""

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute, but let no submodule that is being imported hide a public function."""
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as modules do, by name: programs that name the package are sent to workers."""
        return import_module, (self.__name__,)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value: object = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    elif name in _SUBPACKAGES:
        value = import_module(f"{__name__}.{name}")
    else:
        module = sys.modules[__name__]
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}", name=name, obj=module
        )
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


sys.modules[__name__].__class__ = _Package
