"""Models of cooperating centres: to be solved, and to be simulated.

A solved model has its condition of the space on the lattice. A simulation tabulates functions of
few coordinates, and a condition of the space reads all of them; so there the conditions are on the
actions, whose functions read two centres. Under the threshold policy they need to read only one:
the stream of jobs of a type to a centre is parted by what its own centre says, at rates lambda_jk
times the truth of "kept" and of "sent", and what becomes of those that are sent is read from the
other centre alone. By the thinning of Poisson streams this is the same process.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from mdpcloud.model.event import Action, Event, step
from mdpcloud.model.model import Model
from mdpcloud.model.space import Lattice
from mdpcloud.policies.family import Rules, first_fit
from mdpcloud.systems.cooperation_centres import Centres, OfState, arrival

if TYPE_CHECKING:
    from mdpcloud.systems.cooperation import Cooperation

__all__ = ["boxed_model", "lattice_model", "parted_model"]


def lattice_model(system: Cooperation, centres: Centres) -> Model:
    """The model on the states in which all jobs fit."""
    space = Lattice(_box(centres), where=centres.is_state)
    return _with_arrivals(system, centres, space, guarded=False)


def boxed_model(system: Cooperation, centres: Centres) -> Model:
    """The model on a whole box, of which it never leaves what fits; for simulations."""
    return _with_arrivals(system, centres, Lattice(_box(centres)), guarded=True)


def parted_model(
    system: Cooperation, centres: Centres, levels: Sequence[float]
) -> tuple[Model, Rules]:
    """The threshold policy with parted streams, for simulations, and the rules of what is sent.

    Jobs that are sent and do not fit are lost, and those that do not fit are sent, as by default.
    """
    events, rules = [], {}
    for j, k in centres.places:
        keeps, rate = centres.keeps(j, k, levels), system.scale * system.arrival_rates[j][k]
        following = centres.following(k)
        fits = centres.fits(following, centres.requirements[j])
        local, remote, reject = _actions(system, centres, j, k)
        events.append(Event(f"kept {j} at {k}", partial(_where, rate, keeps, True), local))
        events.append(
            Event(
                f"sent {j} at {k}",
                partial(_where, rate, keeps, False),
                (Action("remote", remote.step, remote.cost, allowed=fits), reject),
            )
        )
        rules[f"sent {j} at {k}"] = first_fit([("remote", fits)])
    names = {(j, k): f"sent {j} at {k}" for j, k in centres.places}
    model = Model(
        Lattice(_box(centres)),
        [*events, *_departures(system, centres)],
        measures=_measures(centres, names),
    )
    return model, rules


def _with_arrivals(
    system: Cooperation, centres: Centres, space: Lattice, *, guarded: bool
) -> Model:
    events = [_arrival(system, centres, j, k, guarded=guarded) for j, k in centres.places]
    names = {(j, k): arrival(j, k) for j, k in centres.places}
    return Model(
        space, [*events, *_departures(system, centres)], measures=_measures(centres, names)
    )


def _box(centres: Centres) -> dict[str, tuple[int, ...]]:
    return {"jobs": tuple(centres.most(j, k) for j, k in centres.places)}


def _arrival(system: Cooperation, centres: Centres, j: int, k: int, guarded: bool = False) -> Event:
    local, remote, reject = _actions(system, centres, j, k)
    if guarded:
        needs = centres.requirements[j]
        here, there = centres.fits(k, needs), centres.fits(centres.following(k), needs)
        local = Action("local", local.step, allowed=here)
        remote = Action("remote", remote.step, remote.cost, allowed=there)
    rate = system.scale * system.arrival_rates[j][k]
    return Event(arrival(j, k), rate, (local, remote, reject))


def _actions(system: Cooperation, centres: Centres, j: int, k: int) -> tuple[Action, ...]:
    there = centres.place(j, centres.following(k))
    return (
        Action("local", step(jobs={centres.place(j, k): +1})),
        Action("remote", step(jobs={there: +1}), cost=system.forwarding_cost),
        Action("reject", cost=system.rejection_cost),
    )


def _departures(system: Cooperation, centres: Centres) -> list[Event]:
    return [
        Event(
            f"departure {j} at {k}",
            partial(_jobs, system.service_rates[j], i),
            Action("leave", step(jobs={i: -1})),
        )
        for i, (j, k) in enumerate(centres.places)
    ]


def _measures(centres: Centres, decisions: dict[tuple[int, int], str]) -> dict[str, Any]:
    measures: dict[str, Any] = {}
    for i, (j, k) in enumerate(centres.places):
        measures[f"rejection_rate[{j}][{k}]"] = (decisions[j, k], "reject")
        measures[f"forwarding_rate[{j}][{k}]"] = (decisions[j, k], "remote")
        measures[f"mean_jobs[{j}][{k}]"] = partial(_jobs, 1.0, i)
    return measures


def _where(rate: float, condition: OfState, truth: bool, x: Any) -> Any:
    return rate * (condition(x) == truth)


def _jobs(each: float, place: int, x: Any) -> Any:
    return each * x.jobs[place]
