"""Large-scale limit of a ring of loss centres that offload to both neighbours.

A job that finds centre j full is sent to each of its neighbours j - 1 and j + 1 with probability
p_j <= 1/2, and is lost there if that one is full. In the limit some centres are full a positive
part of the time; the others have all they get, and never are. Runs of one or two neighbouring full
centres are known in closed form (G. Thompson, "Stochastic models for resource allocation in large
distributed systems", thesis, UPMC 2017, chapter 4, conditions (4.4)): alone, centre j is full with
probability 1 - a_j/l_j; of two neighbours each is helped by the other, as in
`mdpcloud.limits.offloading.boundary_value` with p_j and p_{j+1}. What a full centre sends to a
neighbour that is not full is added to that one's arrivals.

Which centres are full is found from below: those with l_j > a_j first, then any that gets more than
a_j from its neighbours, until there is none. A centre that is added only adds to what the others
get, so that this is the smallest set that agrees with itself. In a ring of three the outer
neighbours of two full centres are one centre, which gets from both; in a ring of two both
neighbours are the same, and a job is sent there with probability 2 p_j.

Where the load of a centre is its capacity up to rounding, the centre is not full. If it is, it gets
e_j too much, e_j being at most that rounding, and the probabilities of all centres grow by at most
x_j/l_j, where by the balance of each centre x_j <= e_j + p_{j-1} x_{j-1} + p_{j+1} x_{j+1}.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from mdpcloud.errors import NoLimitError
from mdpcloud.limits.offloading.boundary_value import EPS, FullCentres, full_centres

__all__ = ["Overflow", "RingLimit", "overflow", "ring_limit", "saturated"]

Rates: TypeAlias = Sequence[float]

NEAR = 16.0 * EPS  # of a load and its capacity: a smaller excess is one of rounding


@dataclass(frozen=True)
class Overflow:
    """What a set of full centres does with its jobs.

    Attributes
    ----------
    loads : tuple of float
        What each centre that is not full gets, jobs per unit of time; own arrivals of a full one.
    full : tuple of float
        Probability that each centre is full.
    blocking, forwarded : tuple of float
        Probability that a job is lost, and that it is served by a neighbour.
    error : float
        Estimated absolute error of the probabilities.
    doubts : tuple of float
        Estimated absolute error of the loads, but for rounding.
    """

    loads: tuple[float, ...]
    full: tuple[float, ...]
    blocking: tuple[float, ...]
    forwarded: tuple[float, ...]
    error: float
    doubts: tuple[float, ...]

    def near(self, capacities: Rates) -> tuple[float, ...]:
        """Per centre, by how much the load may differ from the capacity for the errors alone."""
        return tuple(
            NEAR * (load + a) + doubt
            for load, a, doubt in zip(self.loads, capacities, self.doubts, strict=True)
        )


@dataclass(frozen=True)
class RingLimit:
    """What becomes of the jobs of a ring in the large-scale limit.

    Attributes
    ----------
    saturated : tuple of int
        Centres that are full a positive part of the time, counted from 0.
    jobs : Overflow
    served : tuple of float
        Jobs served by each centre per unit of time and scale.
    notes : tuple of str
    """

    saturated: tuple[int, ...]
    jobs: Overflow
    served: tuple[float, ...]
    notes: tuple[str, ...]


def ring_limit(arrivals: Rates, capacities: Rates, probabilities: Rates) -> RingLimit:
    """The large-scale limit.

    Parameters
    ----------
    arrivals : sequence of float
        Arrival rates l_j > 0 at two or more centres, per unit of the scale.
    capacities : sequence of float
        Rates a_j > 0 of all servers of a centre.
    probabilities : sequence of float
        p_j in [0, 1/2] of a job that finds centre j full to be sent to the one neighbour, and to
        the other.

    Raises
    ------
    NoLimitError
        When three or more neighbouring centres are full, where no limit is known.

    Examples
    --------
    >>> found = ring_limit((1.5, 0.5, 0.5), (1.0, 1.0, 1.0), (0.3, 0.2, 0.2))
    >>> found.saturated, round(found.jobs.blocking[0], 12), found.jobs.loads[1]
    ((0,), 0.133333333333, 0.65)
    """
    everywhere = range(len(arrivals))
    full = saturated(arrivals, capacities, probabilities, everywhere)
    jobs = overflow(full, arrivals, capacities, probabilities)
    near = jobs.near(capacities)
    critical = [j for j in everywhere if j not in full and jobs.loads[j] >= capacities[j] - near[j]]
    hidden = _hidden(full, critical, jobs, arrivals, capacities, probabilities)
    return RingLimit(
        saturated=full,
        jobs=replace(jobs, error=min(jobs.error + hidden, 1.0)),
        served=tuple(a if j in full else min(jobs.loads[j], a) for j, a in enumerate(capacities)),
        notes=tuple(
            f"centre {j} gets exactly the {capacities[j]:g} that it can serve; the limit is "
            "continuous there"
            for j in critical
        ),
    )


def saturated(
    arrivals: Rates, capacities: Rates, probabilities: Rates, among: Collection[int]
) -> tuple[int, ...]:
    """Centres that stay full where those ``among`` are full to begin with.

    Raises
    ------
    NoLimitError
        As `ring_limit`.
    """
    full: tuple[int, ...] = ()
    while True:
        jobs = overflow(full, arrivals, capacities, probabilities)
        loads, near = jobs.loads, jobs.near(capacities)
        now = tuple(j for j in sorted(among) if j in full or loads[j] > capacities[j] + near[j])
        if now == full:
            return full
        _check_runs(now, {j: loads[j] for j in now if j not in full}, capacities)
        full = now


def _hidden(
    full: Collection[int],
    critical: Collection[int],
    jobs: Overflow,
    arrivals: Rates,
    capacities: Rates,
    probabilities: Rates,
) -> float:
    """What the probabilities may lack because centres that are just full count as not full."""
    if not critical:
        return 0.0
    centres = len(arrivals)
    everywhere = np.arange(centres)
    slack = np.array(capacities) - np.array(jobs.loads) - np.array(jobs.near(capacities))
    sent = np.zeros((centres, centres))  # to the row, from the column
    for step in (-1, +1):
        np.add.at(sent, ((everywhere + step) % centres, everywhere), probabilities)
    active = np.isin(everywhere, [*full, *critical])
    own = np.where(np.isin(everywhere, [*critical]), np.maximum(-slack, 0.0), 0.0)
    while True:
        spread = np.eye(int(active.sum())) - sent[np.ix_(active, active)]
        if np.linalg.cond(spread) > 1.0 / NEAR:
            return 1.0
        more = np.zeros(centres)
        more[active] = np.linalg.solve(spread, own[active])
        reached = active | (sent @ more > slack)
        if (reached == active).all():
            return float(np.max(more / np.array(arrivals)))
        active = reached


def _check_runs(full: Collection[int], added: Mapping[int, float], capacities: Rates) -> None:
    """Refuse runs of three and more; what is said is what fills the centres added last."""
    for run in _runs(full, len(capacities)):
        if len(run) > 2:
            reasons = (
                f"centre {j} gets {load:g}, {load - capacities[j]:g} more than the "
                f"{capacities[j]:g} that it can serve"
                for j, load in added.items()
                if j in run
            )
            raise NoLimitError(
                f"neighbouring centres {', '.join(map(str, run))} are full together "
                f"({'; '.join(reasons)}); a limit is known for at most two neighbours"
            )


def _runs(full: Collection[int], centres: int) -> list[list[int]]:
    """Neighbouring full centres, in order round the ring."""
    begin = next((j for j in range(centres) if j not in full), 0)
    runs: list[list[int]] = [[]]
    for step in range(centres):
        j = (begin + step) % centres
        if j in full:
            runs[-1].append(j)
        else:
            runs.append([])
    return [run for run in runs if run]


# --- what full centres send to others -------------------------------------------------------------


def overflow(
    full: Collection[int], arrivals: Rates, capacities: Rates, probabilities: Rates
) -> Overflow:
    """What a set of full centres, in runs of at most two, does with its jobs."""
    centres = len(arrivals)
    loads = list(arrivals)
    often, lost, away, doubts = ([0.0] * centres for _ in range(4))
    error = 0.0
    for run in _runs(full, centres):
        law = _law(run, arrivals, capacities, probabilities)
        error = max(error, law.error)
        inside = _links(centres) if len(run) == 2 else 0
        for j, part in zip(run, law.each, strict=False):
            p = probabilities[j]
            often[j] = part
            lost[j] = (1.0 - 2.0 * p) * part + inside * p * law.both
            away[j] = (2 - inside) * p * part + inside * p * max(part - law.both, 0.0)
            for neighbour in ((j - 1) % centres, (j + 1) % centres):
                if neighbour not in run:
                    loads[neighbour] += p * arrivals[j] * part
                    doubts[neighbour] += p * arrivals[j] * law.error
    return Overflow(tuple(loads), tuple(often), tuple(lost), tuple(away), error, tuple(doubts))


def _law(
    run: Sequence[int], arrivals: Rates, capacities: Rates, probabilities: Rates
) -> FullCentres:
    """How often the centres of a run are full."""
    if len(run) == 1:
        (j,) = run
        return FullCentres((max(1.0 - capacities[j] / arrivals[j], 0.0), 0.0), 0.0, 2.0 * EPS)
    links = _links(len(arrivals))
    i, j = run
    return full_centres(
        (arrivals[i], arrivals[j]),
        (capacities[i], capacities[j]),
        (links * probabilities[i], links * probabilities[j]),
    )


def _links(centres: int) -> int:
    """How often neighbours of a ring are neighbours: of two centres, on both sides."""
    return 2 if centres == 2 else 1
