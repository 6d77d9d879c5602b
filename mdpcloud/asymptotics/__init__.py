"""A finite allocation system beside its large-scale limit: measures, sweeps, trajectories.

Names are loaded when they are first used: the settings of figures, which every scenario has, need
none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mdpcloud.asymptotics.measures import exact_measures, finite_measures, limit_measures

__all__ = ["exact_measures", "finite_measures", "limit_measures"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("mdpcloud.asymptotics.measures"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
