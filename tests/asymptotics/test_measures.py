"""A finite allocation system under its own policy: evaluated, simulated, beside its limit."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

import mdpcloud as mc
from mdpcloud.asymptotics import exact_measures, finite_measures, limit_measures, measures
from mdpcloud.errors import NoLimitError
from mdpcloud.policies.complete_sharing import complete_sharing
from mdpcloud.policies.family import Option, Stream
from mdpcloud.queues import erlang_b
from mdpcloud.systems.base import Heuristic
from mdpcloud.systems.measures import Measures, collect, per_job, scaled_count
from mdpcloud.systems.registry import find_system


@dataclass(frozen=True)
class Link:
    """Two classes on one link, each job one server."""

    arrival_rates: tuple[float, ...] = (1.0, 0.5)
    servers: float = 1.25
    scale: float = 10.0

    own_policy: ClassVar[str] = "complete_sharing"
    policy_names: ClassVar[tuple[str, ...]] = ("complete_sharing",)

    @property
    def notes(self) -> tuple[str, ...]:
        note = scaled_count("servers", self.servers, self.scale)[1]
        return (note,) if note else ()

    @property
    def room(self) -> int:
        return scaled_count("servers", self.servers, self.scale)[0]

    def heuristic(self, name: str, ties: str) -> Heuristic:
        option = Option("accept", lambda x: x.jobs < self.room)
        streams = [Stream(f"arrival {j}", (option,)) for j in range(len(self.arrival_rates))]
        return Heuristic(name, rule=complete_sharing(streams).member())

    def model(self, caps: Any = None) -> mc.Model:
        actions = [mc.Action("accept", mc.step(jobs=+1)), mc.Action("reject", cost=1.0)]
        arrivals = [
            mc.Event(f"arrival {j}", self.scale * rate, actions)
            for j, rate in enumerate(self.arrival_rates)
        ]
        departure = mc.Event("departure", lambda x: 1.0 * x.jobs, mc.step(jobs=-1))
        lost = {f"rejection_rate[{j}]": (f"arrival {j}", "reject") for j in (0, 1)}
        return mc.Model(
            mc.Lattice({"jobs": self.room}),
            [*arrivals, departure],
            measures={**lost, "mean_jobs[0]": lambda x: 1.0 * x.jobs},
        )

    def derived(self, cost: Any, measures: Any) -> dict[str, Any]:
        return per_job(measures, [self.scale * rate for rate in self.arrival_rates])

    def limit(self) -> Measures:
        load = sum(self.arrival_rates) / self.servers
        if load < 1.0:
            raise NoLimitError("the load is not above 1")
        return Measures((1 - 1 / load,) * 2, (self.servers,), 1.5 * (1 - 1 / load))


def test_the_exact_measures_of_two_equal_classes_are_those_of_erlang() -> None:
    found, how = finite_measures(Link())
    blocking = erlang_b(13, 15.0)
    assert how == "exact"
    assert found.blocking == pytest.approx((blocking, blocking), abs=found.errors["blocking"])
    assert found.mean_jobs == pytest.approx((15.0 * (1 - blocking),), abs=1e-9)
    assert found.cost == pytest.approx(15.0 * blocking, abs=found.errors["cost"])
    assert max(found.errors.values()) < 1e-9
    assert found.notes == ("servers = 1.25 times the scale 10 is 12.5, rounded to 13",)


def test_what_is_too_large_is_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "MOST", 5)
    assert exact_measures(Link()) is None
    found, how = finite_measures(Link(), simulate={"events": 200_000, "seed": 1})
    assert how == "simulated"
    assert not found.certified
    assert found.blocking[0] == pytest.approx(erlang_b(13, 15.0), abs=3 * found.errors["blocking"])


def test_a_box_that_cannot_be_listed_is_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "MOST_POINTS", 5)
    assert exact_measures(Link()) is None


def test_why_there_is_no_limit_is_told() -> None:
    assert limit_measures(dataclasses.replace(Link(), servers=2.0)) == (
        None,
        ("no limit: the load is not above 1",),
    )
    known, notes = limit_measures(Link())
    assert known is not None
    assert known.cost == pytest.approx(0.25)
    assert notes == ()


def test_a_system_without_a_policy_of_its_own_is_refused() -> None:
    with pytest.raises(mc.InputError, match="no policy of its own"):
        exact_measures(mc.systems.CloudRouting.example())


def test_a_closed_form_is_preferred_to_the_model() -> None:
    class Known(Link):
        def exact(self) -> Measures:
            return Measures((0.5, 0.5), (1.0,), 1.0)

    assert exact_measures(Known()) == Measures((0.5, 0.5), (1.0,), 1.0)


def test_measures_of_types_and_centres_are_nested_as_their_names_are() -> None:
    bounds = {
        f"blocking[{j}][{k}]": (0.1 * j + 0.01 * k, 0.1 * j + 0.01 * k + 0.002)
        for j in (1, 0)
        for k in (0, 1, 2)
    }
    found = collect((2.0, 2.5), {**bounds, "mean_jobs[1]": (3.0, 3.0), "mean_jobs[0]": (1.0, 1.5)})
    assert found.blocking[0] == pytest.approx((0.001, 0.011, 0.021))
    assert found.blocking[1] == pytest.approx((0.101, 0.111, 0.121))
    assert found.mean_jobs == (1.25, 3.0)
    assert found.cost == 2.25
    assert found.errors == pytest.approx({"blocking": 0.001, "mean_jobs": 0.25, "cost": 0.25})


def test_probabilities_are_rates_per_arrival_of_the_class() -> None:
    rates = {"rejection_rate[0][1]": (1.0, 1.5), "forwarding_rate[1][0]": (0.0, 9.0)}
    found = per_job(rates, [[1.0, 2.0], [4.0, 0.0]])
    assert found == {"blocking[0][1]": (0.5, 0.75), "forwarded[1][0]": (0.0, 1.0)}
    nobody = per_job({"rejection_rate[1][1]": (0.0, 0.0)}, [[1.0, 2.0], [4.0, 0.0]])
    assert nobody == {"blocking[1][1]": (0.0, 0.0)}


@pytest.mark.parametrize(
    ("value", "scale", "count", "rounded"),
    [
        (0.9, 10, 9, False),
        (0.145, 100, 15, True),
        (0.29, 100, 29, False),
        (1.25, 10, 13, True),
        (0.7, 1, 1, True),
        (3.0, 1, 3, False),
        (0.3, 1e6, 300_000, False),
        (0.1, 4, 0, True),
    ],
)
def test_capacities_of_a_scale_are_rounded_half_up_and_told(
    value: float, scale: float, count: int, rounded: bool
) -> None:
    found, note = scaled_count("servers", value, scale)
    assert (found, note is not None) == (count, rounded)


def test_a_scale_that_leaves_too_little_is_refused() -> None:
    with pytest.raises(mc.InputError, match=r"servers = 0\.1 times the scale 4 is 0\.4.*>= 1"):
        scaled_count("servers", 0.1, 4, least=1)


@pytest.mark.parametrize("name", ["cooperation", "downgrading"])
def test_classes_without_arrivals_keep_their_places(name: str) -> None:
    system = find_system(name).example()
    rates = system.arrival_rates
    none = (0.0, *rates[0][1:]) if isinstance(rates[0], tuple) else 0.0
    found = exact_measures(dataclasses.replace(system, arrival_rates=(none, *rates[1:])))
    first = found.blocking[0]
    assert (first[0] if isinstance(first, tuple) else first) == 0.0
    assert len(found.blocking) == len(rates)
    assert found.blocking[1] != first


def test_a_scale_beyond_what_can_be_counted_is_refused() -> None:
    with pytest.raises(mc.InputError, match=r"above 2\^53"):
        scaled_count("servers", 4.0, 1e300)
    with pytest.raises(mc.InputError, match="scale must be 0 or in"):
        mc.systems.TrunkReservation((1.0, 1.0), (1.0, 1.0), (4, 4), 1, scale=1e300)
    with pytest.raises(mc.InputError, match=r"above 2\^53"):
        dataclasses.replace(mc.systems.Cooperation.example(), scale=1e80)


def test_tiny_measures_do_not_lose_the_others() -> None:
    link = mc.systems.Downgrading(
        (2.64, 1.53, 11.1), (0.0038, 0.36, 0.15), (1, 4, 5), 6, 6, unfit="reject"
    )
    found = exact_measures(link)
    assert found is not None
    assert 0.9 < found.blocking[2] <= 1.0
    assert found.errors["mean_jobs"] < 1e-9


def test_a_limit_that_is_not_found_leaves_the_exact_measures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nothing(self: Link) -> Measures:
        raise mc.SolveError("too near to a boundary")

    monkeypatch.setattr(Link, "limit", nothing)
    assert limit_measures(Link()) == (None, ("the limit was not found: too near to a boundary",))


def test_what_an_allocation_system_lacks_is_named() -> None:
    class Bare:
        own_policy = "mine"

    with pytest.raises(mc.InputError, match="own_policy 'mine', but has no method model"):
        exact_measures(Bare())
