"""Comparisons of systems that are too large to be solved: simulated, with intervals."""

import json
import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mdpcloud as mc
from mdpcloud.compare import Comparison, evaluate_policies, simulate_policies, size
from mdpcloud.compare.plan import Plan
from mdpcloud.laws import Deterministic
from mdpcloud.systems import CloudRouting, Node
from tests.compare.own import Desk, Shop

SYSTEM = CloudRouting((Node(1, 2.0, 0.5), Node(1, 1.0, 0.5)), 3.0, 0.4)
SHORT = {"events": 40_000, "replications": 4, "seed": 5}
SIGMAS = 4.0


@pytest.fixture
def all_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(size, "MOST", 1)


@cache
def simulated() -> Comparison:
    return simulate_policies(SYSTEM, simulate=SHORT)


def compared(system: Any = SYSTEM, policies: Any = None, **settings: Any) -> Comparison:
    """A comparison of a system of which every lattice is too large."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(size, "MOST", 1)
        return mc.compare(system, policies, simulate=SHORT, **settings)


def by_queue(x: Any) -> Any:
    return np.where(x.node[0] < 2, "node 0", "outside")


# --- what is found --------------------------------------------------------------------------------


def test_without_an_optimum_policies_have_intervals_and_differences() -> None:
    found = compared()
    record = found.to_dict()
    assert found.optimum is None
    assert record["optimum"] is record["states"] is record["caps"] is None
    assert record["truncation"] == {"kind": "simulated", "error": None}
    statuses = {row.name: row.status for row in found.rows}
    assert statuses.pop("bernoulli_split") == "closed_form"
    assert set(statuses.values()) == {"simulated"}
    assert sum(row.difference.kind == "best" for row in found.rows if row.difference) == 1
    assert any("are simulated, since the smallest lattice of" in note for note in found.notes)
    assert any("in 4 replications of each policy" in note for note in found.notes)


def test_simulated_costs_and_measures_are_within_four_standard_errors_of_the_exact_ones() -> None:
    exact = {row.name: row for row in evaluate_policies(SYSTEM)}
    for row in simulated().rows:
        assert row.simulation is not None
        truth = exact[row.name]
        estimates = {"cost": row.simulation.gain, **row.simulation.measures}
        bounds = {"cost": (truth.lower, truth.upper), **truth.measures}
        for name, estimate in estimates.items():
            room = SIGMAS * estimate.standard_error + 1e-12
            assert bounds[name][0] - room <= estimate.value <= bounds[name][1] + room, name
        assert set(row.measures) == set(truth.measures)


def test_derived_measures_have_intervals_as_well() -> None:
    row = next(row for row in simulated().rows if row.name == "restless_bandit")
    low, high = row.measures["profit_rate"]
    assert (low, high) == pytest.approx((3.0 - row.upper, 3.0 - row.lower))
    low, high = row.measures["abandonment_probability[0]"]
    truth = next(iter(evaluate_policies(SYSTEM, ["restless_bandit"])))
    exact = sum(truth.measures["abandonment_probability[0]"]) / 2
    assert low - (high - low) < exact < high + (high - low)


def test_differences_with_common_random_numbers_are_narrower_than_independent_ones() -> None:
    rows = [row for row in simulated().rows if row.difference and row.difference.kind == "paired"]
    best = next(row for row in simulated().rows if row.difference and row.difference.kind == "best")
    assert rows
    for row in rows:
        assert row.difference is not None
        width = row.difference.upper - row.difference.lower
        independent = math.hypot(row.upper - row.lower, best.upper - best.lower)
        assert width < independent
        assert row.difference.value == pytest.approx(row.cost - best.cost, abs=1e-12)


def test_a_difference_from_a_closed_form_is_as_uncertain_as_the_simulation() -> None:
    found = compared(policies=["bernoulli_split", "restless_bandit"])
    split, bandit = found.rows
    assert split.difference is not None
    assert split.difference.kind == "closed_form"
    width = split.difference.upper - split.difference.lower
    assert width == pytest.approx(bandit.upper - bandit.lower)


def test_rules_and_policies_of_the_users_are_simulated() -> None:
    policies = {"queue": by_queue, "never": lambda x: "outside"}
    (queue, never) = compared(policies=policies).rows
    exact = evaluate_policies(SYSTEM, {"queue": by_queue})[0]
    assert queue.simulation is not None
    assert abs(queue.cost - exact.cost) < SIGMAS * queue.simulation.gain.standard_error
    assert never.lower < 1.2 < never.upper
    assert queue.rule is by_queue


def test_a_users_own_system_is_simulated_too() -> None:
    found = compared(Shop())
    assert [row.status for row in found.rows] == ["simulated"] * 2
    exact = evaluate_policies(Shop())
    for row, truth in zip(found.rows, exact, strict=True):
        assert row.simulation is not None
        assert abs(row.cost - truth.cost) < SIGMAS * row.simulation.gain.standard_error
    assert found.to_dict()["indices"] == {"greedy": [[0.25] * 5], "half": [[0.25] * 2]}


def test_equal_seeds_give_equal_comparisons_and_others_do_not() -> None:
    def numbers(seed: int) -> list[float]:
        settings = {**SHORT, "seed": seed}
        rows = simulate_policies(SYSTEM, ["restless_bandit"], simulate=settings).rows
        return [end for row in rows for end in (row.cost, row.lower, row.upper)]

    assert numbers(1) == numbers(1)
    assert numbers(1) != numbers(2)


@pytest.mark.usefixtures("all_too_large")
def test_evaluation_simulates_what_is_too_large() -> None:
    rows = evaluate_policies(SYSTEM, ["restless_bandit", "bernoulli_split"], simulate=SHORT)
    assert [row.status for row in rows] == ["simulated", "closed_form"]
    assert any(note.startswith("simulated, since the smallest lattice") for note in rows[0].notes)
    assert not any("since" in note for note in rows[1].notes)


def test_policies_that_do_not_apply_are_left_out_unless_asked_for() -> None:
    system = CloudRouting((Node(2, 1.0, 0.0),), 1.0, 0.9)
    found = compared(system)
    assert [row.name for row in found.rows] == ["individually_optimal", "restless_bandit"]
    assert sum("the split is not determined" in note for note in found.notes) == 2
    with pytest.raises(mc.InputError, match="the split is not determined"):
        compared(system, ["policy_improvement"])


# --- records --------------------------------------------------------------------------------------


def test_the_record_of_a_simulation_is_plain_and_complete(tmp_path: Path) -> None:
    found = simulated()
    record = found.to_dict()
    found.to_json(tmp_path / "found.json")
    assert json.loads((tmp_path / "found.json").read_text(encoding="utf-8")) == record
    assert record["simulate"]["seed"] == 5
    assert record["simulate"]["events"] == 40_000
    for row in record["policies"]:
        assert {"gap", "gap_lower", "gap_upper", "profit_gap"} <= set(row)
        assert row["gap"] is None
        run = row["simulation"]
        assert run["replications"] == 4
        assert run["events"] > 0
        assert 0 <= run["warm_up"] < run["time"]
        cost = run["estimates"]["cost"]
        assert (cost["value"], cost["lower"], cost["upper"]) == (
            row["cost"],
            row["lower"],
            row["upper"],
        )
        assert cost["standard_error"] > 0
        assert set(row["difference"]) == {"value", "lower", "upper", "kind"}
    assert {row["simulation"]["time"] for row in record["policies"]} == {
        record["policies"][0]["simulation"]["time"]
    }


def test_a_simulated_comparison_pickles() -> None:
    again = pickle.loads(pickle.dumps(simulated()))
    assert again.to_dict() == simulated().to_dict()


def test_pictures_have_costs_and_convergence_but_no_actions(tmp_path: Path) -> None:
    settings = {**SHORT, "paths": ("node[0]",)}
    found = simulate_policies(SYSTEM, ["restless_bandit"], simulate=settings)
    names = sorted(path.name for path in found.plot(tmp_path))
    assert names == [
        "convergence_restless_bandit.png",
        "costs.png",
        "indices.png",
        "path_restless_bandit_node_0.png",
    ]


# --- limits and mistakes --------------------------------------------------------------------------


def test_a_half_width_that_is_met_is_met_by_all_in_the_same_time() -> None:
    settings = {"half_width": 0.02, "replications": 4}
    found = simulate_policies(SYSTEM, simulate=settings)
    assert len({row.simulation.time for row in found.rows if row.simulation}) == 1
    assert all(row.upper - row.lower <= 0.04 for row in found.rows)
    assert {row.difference.kind for row in found.rows if row.difference} == {"best", "paired"}


def test_a_half_width_that_is_not_met_is_an_error_with_what_is_known() -> None:
    settings = {**SHORT, "half_width": 1e-6}
    with pytest.raises(mc.SolveError, match="half_width is 1e-06; allow more events") as caught:
        simulate_policies(SYSTEM, ["restless_bandit", "policy_improvement"], simulate=settings)
    partial: Any = caught.value.partial
    assert [row.status for row in partial.rows] == ["half_width"] * 2
    assert partial.to_dict()["policies"][0]["simulation"]["status"] == "half_width"


def interrupting(after: int) -> Callable[..., None]:
    calls = 0

    def callback(*_: object) -> None:
        nonlocal calls
        calls += 1
        if calls > after:
            raise KeyboardInterrupt

    return callback


def test_an_interrupt_leaves_what_was_simulated_so_far() -> None:
    with pytest.raises(mc.SolveError, match="interrupted") as caught:
        simulate_policies(SYSTEM, simulate=SHORT, progress=interrupting(3))
    partial: Any = caught.value.partial
    assert 1 <= len(partial.rows) <= 2
    assert partial.to_dict()["optimum"] is None


@pytest.mark.parametrize(
    ("settings", "rows"), [(SHORT, 1), ({"half_width": 0.05, "replications": 4}, 2)]
)
def test_an_interrupt_between_two_rounds_leaves_what_was_done(
    settings: dict[str, Any], rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, calls = Plan.run, iter(range(9))

    def interrupted(self: Plan, *arguments: Any) -> Any:
        if next(calls) == rows:
            raise KeyboardInterrupt
        return run(self, *arguments)

    monkeypatch.setattr(Plan, "run", interrupted)
    names = ["restless_bandit", "policy_improvement"]
    with pytest.raises(mc.SolveError, match="interrupted") as caught:
        simulate_policies(SYSTEM, names, simulate=settings)
    partial: Any = caught.value.partial
    assert [row.status for row in partial.rows] == ["simulated"] * rows


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"event": 5}, "simulate has no setting 'event'; did you mean 'events'?"),
        ({"events": 0, "seed": -1}, "simulate: events must be an integer >= 1.*; seed must be"),
        ({"events": 5, "time": 1.0}, "simulate: at most one of events and time"),
        (3, "simulate is 3; it must be a mapping of events, time"),
    ],
)
def test_a_wrong_setting_is_refused_even_where_nothing_is_simulated(
    given: Any, message: str
) -> None:
    with pytest.raises(mc.InputError, match=message):
        mc.compare(SYSTEM, simulate=given)


def test_a_forbidden_action_is_an_error_that_names_policy_and_state() -> None:
    with pytest.raises(mc.InputError, match=r"policy 'mine'.*'join'"):
        compared(Desk(), {"mine": lambda x: "join"})


# --- when it is simulated -------------------------------------------------------------------------


def reason(system: Any, **settings: Any) -> str | None:
    return size.why_not_solved(system, size.Settings(**settings))


def test_a_small_system_is_solved() -> None:
    assert reason(SYSTEM) is None
    assert reason(Desk()) is None
    assert mc.compare(SYSTEM, []).to_dict()["simulate"] is None


def test_many_nodes_are_simulated_and_so_many_states_are_no_overflow() -> None:
    some = CloudRouting((Node(5, 2.0, 0.5),) * 8, 79.0, 0.4)
    assert "states, too many to be solved" in str(reason(some))
    many = CloudRouting((Node(5, 2.0, 0.5),) * 1000, 9900.0, 0.4)
    assert "states, too many to be solved" in str(reason(many))
    assert "10^" in str(reason(many))


def test_a_box_set_by_hand_is_solved_or_refused() -> None:
    some = CloudRouting((Node(5, 2.0, 0.5),) * 8, 79.0, 0.4)
    assert reason(some, caps=(1,) * 8) is None
    many = CloudRouting((Node(5, 2.0, 0.5),) * 1000, 9900.0, 0.4)
    with pytest.raises(mc.InputError, match=r"caps make a lattice of 10\^1041 states"):
        reason(many, caps=(10,) * 1000)


class Large:
    """A system of the user's own with a large lattice."""

    def __init__(self, where: Any = None, caps: tuple[int, ...] = (10**6,) * 3) -> None:
        self.space = mc.Lattice({"jobs": caps}, where=where)

    def model(self) -> Any:
        return mc.Model(self.space, [mc.Event("arrival", 1.0, mc.step(jobs={0: 1}))])


def test_a_large_lattice_of_the_users_own_is_simulated() -> None:
    assert "the smallest lattice of the system has 10^18 states" in str(reason(Large()))


def test_a_part_of_a_lattice_is_judged_by_the_memory() -> None:
    assert reason(Large(lambda x: x.jobs[0] < 2, (20_000, 10_000))) is None
    assert "does not fit into memory" in str(reason(Large(lambda x: x.jobs[0] < 2)))
    huge = Large(lambda x: x.jobs[0] < 2, (9,) * 1000)
    assert "the lattice of 10^1000 points does not fit into memory" in str(reason(huge))


def test_a_system_without_a_markov_model_is_simulated_and_says_why() -> None:
    class NoModel:
        def model(self) -> Any:
            raise mc.InputError("services are not exponential")

    class Simulated(NoModel):
        def simulation(self, policy: Any, ties: str) -> Any: ...

    assert reason(Simulated()) == "services are not exponential"
    with pytest.raises(mc.InputError, match="services are not exponential"):
        reason(NoModel())


@pytest.mark.slow
def test_a_thousand_nodes_go_through() -> None:
    nodes = tuple(Node(1 + k % 7, 1.0 + k % 3, 0.5) for k in range(1000))
    system = CloudRouting(nodes, 9000.0, 0.4)
    found = mc.compare(
        system, ["individually_optimal"], simulate={"events": 20_000, "replications": 2}
    )
    (row,) = found.rows
    assert row.status == "simulated"
    assert row.lower <= row.cost <= row.upper
    assert "mean_jobs[999]" in row.measures
    assert row.measures["mean_jobs"][0] > 0.0


def test_services_of_other_laws_are_simulated_the_split_as_well() -> None:
    """Erlang's formula holds for services of any law: the room of one server is its loss system."""
    node = Node(1, 2.0, 0.5, room=1, service=Deterministic())
    system = CloudRouting((node,), 3.0, 0.4)
    found = mc.compare(system, simulate=SHORT)
    assert found.optimum is None
    assert any("there is a Markov model for exponential times only" in note for note in found.notes)
    assert {row.status for row in found.rows} == {"simulated"}
    for row in found.rows:
        assert row.simulation is not None
        busy = row.simulation.measures["utilisation[0]"]
        if row.name != "bernoulli_split":
            assert abs(busy.value - 0.6) < SIGMAS * busy.standard_error


def test_a_time_limit_is_shared_and_said() -> None:
    settings = {"events": 10**9, "time_limit": 0.2, "replications": 2}
    with pytest.raises(mc.SolveError, match="restless_bandit was stopped at the time limit after"):
        simulate_policies(SYSTEM, ["restless_bandit"], simulate=settings)


def test_an_interrupt_before_anything_is_known_is_one() -> None:
    with pytest.raises(KeyboardInterrupt):
        simulate_policies(SYSTEM, simulate=SHORT, progress=interrupting(0))


def test_without_policies_there_is_nothing_but_the_reason() -> None:
    found = compared(policies=[])
    assert found.rows == ()
    assert any("nothing was simulated" in note for note in found.notes)
    assert found.to_dict()["policies"] == []


@dataclass(frozen=True)
class Ending:
    """Five steps of mean 1/2, a cost of 3 per unit of time, and nothing more."""

    def model(self) -> Any:
        step = mc.Event("step", lambda x: 2.0 * (x.done < 5), mc.step(done=+1))
        space = mc.Lattice({"done": 5})
        return mc.Model(space, [step], cost_rate=lambda x: 3.0 * (x.done < 5))


def test_what_ends_says_when_and_at_what_cost() -> None:
    settings = {"time": 40.0, "replications": 200}
    (row,) = simulate_policies(Ending(), {"as it is": None}, simulate=settings).rows
    assert row.status == "absorbed"
    assert (row.cost, row.lower, row.upper) == (0.0, 0.0, 0.0)
    assert row.simulation is not None
    ends = row.simulation.absorption
    assert abs(ends["time"].value - 2.5) < SIGMAS * ends["time"].standard_error
    assert abs(ends["cost"].value - 7.5) < SIGMAS * ends["cost"].standard_error
    assert any("until it ended a replication took on average time 2." in n for n in row.notes)
    record = simulate_policies(Ending(), {"as it is": None}, simulate=settings).to_dict()
    assert set(record["policies"][0]["simulation"]["absorption"]) == {"time", "cost"}


@dataclass(frozen=True)
class Rewarded:
    """A reward per step that depends on the action, in a system of the user's own."""

    high: float = 2.0

    def model(self, caps: object = None) -> Any:
        evenly = [[0.5, 0.5], [0.5, 0.5]]
        return mc.tabular([evenly, evenly], rewards=[[1.0, self.high], [0.5, self.high]])


def test_the_best_of_rewards_is_the_largest() -> None:
    policies = {"low": lambda x: 0, "high": np.array([1, 1])}
    found = simulate_policies(Rewarded(), policies, simulate={"events": 10_000})
    low, high = (row.difference for row in found.rows)
    assert low is not None
    assert high is not None
    assert high.kind == "best"
    assert low.lower < -1.25 < low.upper
