"""A finite allocation system beside its large-scale limit: measures, sweeps, trajectories."""

from __future__ import annotations

from mdpcloud.asymptotics.measures import exact_measures, finite_measures, limit_measures

__all__ = ["exact_measures", "finite_measures", "limit_measures"]
