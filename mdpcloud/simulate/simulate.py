"""Simulation of a model or system under a policy: estimates of its long-run averages.

Replications are cut into segments of equal length. All of them advance by the same segments in
turns, each with random numbers of its own, so that the result does not depend on the number of
jobs, and an interrupt leaves whole segments of all of them. The warm-up is left out by MSER-5 or as
stated (`mdpcloud.simulate.warm_up`), the intervals are made of batches
(`mdpcloud.simulate.estimates`), and a run that is too short to trust them says so
(`mdpcloud.simulate.diagnostics`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from mdpcloud.errors import InputError, SolveError
from mdpcloud.simulate.horizon import Horizon, Seed, seed_of
from mdpcloud.simulate.result import SimulationResult, SimulationWarning
from mdpcloud.simulate.run import Run
from mdpcloud.simulate.subject import simulation_of
from mdpcloud.simulate.summary import summarise

__all__ = ["simulate"]


def simulate(
    model_or_system: Any,
    policy: Any = None,
    *,
    rng: Seed,
    events: int | None = None,
    time: float | None = None,
    half_width: float | None = None,
    warm_up: Literal["mser"] | float = "mser",
    replications: int = 8,
    n_jobs: int = 1,
    progress: Callable[[int, float, float], None] | None = None,
    start: Mapping[str, Any] | int | None = None,
    ties: str = "fastest",
    paths: Sequence[str] = (),
    time_limit: float | None = None,
    strict: bool = True,
) -> SimulationResult:
    """Estimate the long-run averages of a policy by simulation.

    States are never enumerated, so the space may be of any size.

    Parameters
    ----------
    model_or_system : Model, TabularModel, MarkovChain or system
        A system is simulated without caps on its queues.
    policy : what `mdpcloud.policy` takes, a Policy, a Solution, or a name of the system's own
        Not needed where nothing is to be decided.
    rng : int, SeedSequence or Generator
        Equal seeds give equal results, whatever ``n_jobs`` is. Policies simulated from equal seeds
        for equal ``time`` have common random numbers; `SimulationResult.difference` uses them.
    events : int, optional
        About how many events to simulate, in all replications together; by default a million. A
        pilot run turns it into a time.
    time : float, optional
        Simulated time of each replication, instead of ``events``.
    half_width : float, optional
        Go on until the 95 % interval of the gain is at most twice as wide; ``events`` (by default
        a hundred million) or ``time`` bound the work.
    warm_up : "mser" or float
        Time to leave out at the beginning of each replication; "mser": found by MSER-5.
    replications : int
        Independent runs.
    n_jobs : int
        Replications that run at the same time, in threads.
    progress : function of (events, lower, upper), optional
        Called now and then with the interval of the gain so far.
    start : mapping from axis to coordinate, or a state number, optional
        Where replications begin: a Reachable's start, the first point of a Lattice, or state 0.
    ties : {"fastest", "first", "last", "slowest"}
        For a system's own policies: which of several nodes of equal index takes the job.
    paths : sequence of str
        State variables, such as ``"node[0]"``, to record: `SimulationResult.records`.
    time_limit : float, optional
        Seconds after which to stop with what is known.
    strict : bool
        Raise `SolveError`, which carries the result, where the half width was not reached.

    Returns
    -------
    SimulationResult
        After an interrupt (Ctrl-C): of what has been simulated so far.

    Raises
    ------
    InputError
        When an argument is wrong, nothing ever happens, or a path comes to a state in which an
        event or action is not possible; the message names them.
    SolveError
        When the half width was not reached.

    Warns
    -----
    SimulationWarning
        When the run is too short for its intervals to be trusted.

    Examples
    --------
    >>> import mdpcloud as mc
    >>> nodes = (mc.systems.Node(1, 2.0, 0.5), mc.systems.Node(1, 1.0, 0.5))
    >>> system = mc.systems.CloudRouting(nodes, arrival_rate=3.0, outside_cost=0.4)
    >>> found = mc.simulate(system, "policy_improvement", rng=1, events=200_000)
    >>> found.gain.lower < 0.48 < found.gain.upper
    True
    """
    horizon = Horizon(events, time, half_width, warm_up, replications, n_jobs, time_limit)
    if progress is not None and not callable(progress):
        raise InputError(f"progress is {progress!r}; it must be a function or None")
    seed = seed_of(rng)
    simulation = simulation_of(model_or_system, policy, start, ties)
    run = Run(simulation, seed, horizon, paths)
    run.go(progress)
    result = summarise(run)
    for note in run.doubts:
        warnings.warn(note, SimulationWarning, stacklevel=2)
    if strict and result.status in ("half_width", "time_limit") and half_width is not None:
        raise SolveError(_missed(result, half_width), result)
    return result


def _missed(result: SimulationResult, half_width: float) -> str:
    if result.gain.half_width <= half_width:
        return (
            f"the interval of the gain, ± {result.gain.half_width:.2g}, is as narrow as asked, but "
            f"the run is too short to trust it ({result.events} events): allow more events or time"
        )
    reason = "the time limit" if result.status == "time_limit" else "all the work allowed"
    return (
        f"the interval of the gain is {result.gain.value:.6g} ± {result.gain.half_width:.2g} after "
        f"{reason} ({result.events} events); the half width asked is {half_width:g}: allow more "
        "events or time"
    )
