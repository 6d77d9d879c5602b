"""The result of a run: estimates, notes, what was recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from mdpcloud.simulate import diagnostics
from mdpcloud.simulate.estimates import estimate, estimates
from mdpcloud.simulate.protocol import COST, Floats, Record
from mdpcloud.simulate.result import Estimate, SimulationResult
from mdpcloud.simulate.run import Run

__all__ = ["summarise"]


def summarise(run: Run) -> SimulationResult:
    """What a run has found so far."""
    dropped = run.dropped
    series = run.series.copy()
    series[:, :, 0] *= run.sense
    found = estimates(series[:, dropped:], run.simulation.names)
    return SimulationResult(
        gain=found.pop(COST),
        measures=found,
        status=run.status,
        notes=(*_endings(run), *_remarks(run, series[:, dropped:])),
        replications=len(run.paths),
        time=run.done,
        warm_up=dropped * run.segment,
        events=run.events,
        elapsed=run.elapsed,
        segment=run.segment,
        series=series,
        seed=_seed(run.seed),
        sense=run.sense,
        absorption=_absorption(run),
        records={name: _records(run, name) for name in run.recorded},
    )


def _seed(seed: np.random.SeedSequence) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What a seed was made of, as plain numbers: entropy and spawn key."""
    entropy = np.atleast_1d(np.array(seed.entropy, dtype=object)).ravel()
    return tuple(int(part) for part in entropy), tuple(int(key) for key in seed.spawn_key)


def _remarks(run: Run, kept: Floats) -> tuple[str, ...]:
    """What speaks against the intervals, where paths go on."""
    if run.absorbed:
        return ()
    names = run.simulation.names
    open_ = [c for c, name in enumerate(names) if name not in run.constants]
    found = diagnostics.remarks(kept[:, :, open_], [names[c] for c in open_]) if open_ else ()
    return (*found, *run.own_doubts)


def _records(run: Run, name: str) -> tuple[Record, ...]:
    """What was recorded of a variable; an interrupted path may be ahead of the run."""
    known = run.series.shape[1]
    found = [path.record(name) for path in run.paths]
    return tuple(replace(record, occupation=record.occupation[:known]) for record in found)


def _endings(run: Run) -> list[str]:
    """What there is to say about replications that ended."""
    ends = [path.absorbed for path in run.paths if path.absorbed is not None]
    if not ends:
        return []
    where = sorted({end.state for end in ends})
    shown = ", ".join(where[:3]) + (", ..." if len(where) > 3 else "")
    count = len(run.paths)
    if len(ends) < count:
        return [
            f"{len(ends)} of {count} replications ended in states that nothing leaves ({shown}); "
            "the estimates are averages over the time simulated, not long-run averages"
        ]
    return [
        f"all replications ended in states that nothing leaves ({shown}), the last at time "
        f"{max(end.time for end in ends):.6g}; the estimates are averages of what these cost"
    ]


def _absorption(run: Run) -> Mapping[str, Estimate]:
    """Time and cost until absorption, where all replications ended."""
    if run.absorbed < len(run.paths):
        return {}
    times = np.array([path.absorbed.time for path in run.paths if path.absorbed is not None])
    costs = run.series[:, :, 0] * run.sense
    total = costs.sum(axis=1) * run.segment - costs[:, -1] * (run.done - times)
    return {"time": estimate(times[:, None]), "cost": estimate(total[:, None])}
