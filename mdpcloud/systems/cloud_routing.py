"""Routing and outsourcing to parallel M/M/m+M nodes.

Jobs arrive at rate lambda and go to one of n nodes, or outside at cost C each. Node k has m_k
servers of rate mu_k, a queue, and deadlines of rate theta_k, to the beginning or to the end of
service; it loses jobs at rate L_k(i), lets them go at rate D_k(i), and costs F_k L_k(i) + w_k i per
unit of time. The optimality equation is

    g = sum_k [F_k L_k(i_k) + w_k i_k] + lambda min{ C, min_k [r_k + h(i + e_k) - h(i)] }
        + sum_k D_k(i_k) [h(i - e_k) - h(i)].

Source: J. Nino-Mora, "Resource allocation and routing in parallel multi-server queues with
abandonments for cloud profit maximization", Computers & Operations Research 103 (2019) 221-236.
Fees, charges, holding costs, rooms and deadlines per node are extensions; the box is exact by
`mdpcloud.indices.bounds`. Services and patience of other laws than the exponential one are
simulated job by job.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from numbers import Real
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
from annotated_types import Ge, Gt, MinLen, Unit

from mdpcloud import indices as theory
from mdpcloud.errors import InputError
from mdpcloud.indices.bounds import (
    TIE_TOLERANCE,
    critical_cost,
    exact_cap,
    lower_bound,
    upper_bound,
)
from mdpcloud.indices.node import condition_note
from mdpcloud.laws import Law
from mdpcloud.model.event import Action, Event, step
from mdpcloud.model.model import Model
from mdpcloud.model.space import Lattice
from mdpcloud.parameters import validate
from mdpcloud.plugins import did_you_mean
from mdpcloud.policies.bernoulli_split import BernoulliSplit, bernoulli_split
from mdpcloud.policies.index_rule import IndexRule, tie_order
from mdpcloud.queues.border import checked_count
from mdpcloud.systems.base import AT_CAP, Edge, Heuristic
from mdpcloud.systems.routing_simulation import (
    law_notes,
    simulate_jobs,
    simulate_model,
    unusual_laws,
)
from mdpcloud.systems.routing_split import split_means, split_rule
from mdpcloud.systems.routing_tables import NEAR, Index, NodePolicy

if TYPE_CHECKING:
    from mdpcloud.indices.table import IndexTable
    from mdpcloud.simulate.protocol import Simulation

__all__ = ["CloudRouting", "Node"]

MARGIN = 4  # jobs beyond the heuristics' thresholds in the first box
CLOSED_FORM = 1e-12  # relative error of the closed forms


@dataclass(frozen=True)
class Node:
    """A node: a pool of servers with a queue.

    Parameters
    ----------
    servers : int
        Number of servers.
    service_rate : float
        Rate of one server.
    abandonment_rate : float
        Rate of a job's deadline; 0 for patient jobs.
    fee : float
        Cost of a job lost to its deadline.
    routing_charge : float
        Cost of routing a job here.
    holding_cost : float
        Cost of a job present, per unit of time.
    room : int, optional
        Most jobs present, waiting and in service; unlimited by default.
    service : law, optional
        Shape of the law of service times, of mean 1/service_rate; exponential by default.
    patience : law, optional
        Shape of the law of deadlines, of mean 1/abandonment_rate; exponential by default.
    """

    servers: Annotated[int, Ge(1)]
    service_rate: Annotated[float, Gt(0), Unit("1/time")]
    abandonment_rate: Annotated[float, Ge(0), Unit("1/time")]
    fee: Annotated[float, Ge(0), Unit("cost")] = 1.0
    routing_charge: Annotated[float, Ge(0), Unit("cost")] = 0.0
    holding_cost: Annotated[float, Ge(0), Unit("cost/time")] = 0.0
    room: Annotated[int, Ge(1)] | None = None
    service: Law | None = None
    patience: Law | None = None

    def __post_init__(self) -> None:
        validate(self)
        if self.patience is not None and self.abandonment_rate == 0:
            raise InputError(
                "Node: patience has a law, but abandonment_rate is 0 and jobs are patient; it must "
                "be > 0, as the mean patience is 1/abandonment_rate"
            )


@dataclass(frozen=True)
class CloudRouting:
    """Jobs routed to parallel server pools with deadlines, or outsourced.

    Parameters
    ----------
    nodes : tuple of Node
    arrival_rate : float
        Rate of all jobs together.
    outside_cost : float
        Cost of a job sent outside.
    deadline : {"begin_service", "end_service"}
        Whether a job leaves at its deadline only while it waits, or in service too.

    Examples
    --------
    >>> import mdpcloud as mc
    >>> nodes = (mc.systems.Node(1, 2.0, 0.5), mc.systems.Node(1, 1.0, 0.5))
    >>> system = mc.systems.CloudRouting(nodes, arrival_rate=3.0, outside_cost=0.4)
    >>> system.exact_caps()
    (3, 2)
    >>> round(mc.solve(system.model()).gain, 9), round(3546 / 7715, 9)
    (0.459624109, 0.459624109)
    """

    nodes: Annotated[tuple[Node, ...], MinLen(1)]
    arrival_rate: Annotated[float, Gt(0), Unit("1/time")]
    outside_cost: Annotated[float, Gt(0), Unit("cost")]
    deadline: Literal["begin_service", "end_service"] = "begin_service"

    policy_names: ClassVar[tuple[str, ...]] = (
        "bernoulli_split",
        "individually_optimal",
        "policy_improvement",
        "restless_bandit",
    )

    def __post_init__(self) -> None:
        validate(self)
        capacity = sum(node.servers * node.service_rate for node in self.nodes)
        free = [
            f"nodes[{k}]"
            for k, node in enumerate(self.nodes)
            if node.abandonment_rate == 0 and node.room is None and node.holding_cost == 0
        ]
        if free and self.arrival_rate >= capacity:
            raise InputError(
                f"{', '.join(free)}: no abandonment_rate, room or holding_cost, and the load is "
                f"{self.arrival_rate / capacity:.4g}; waiting there costs nothing, so outsourcing "
                "does not bound the queue and there is no stationary regime: give each an "
                "abandonment_rate > 0, a room or a holding_cost"
            )

    @classmethod
    def example(cls) -> Self:
        """Three pools of equal capacity at load 1, after the base instances of the source."""
        nodes = (Node(2, 10.0, 0.3), Node(5, 4.0, 0.3), Node(10, 2.0, 0.3))
        return cls(nodes, arrival_rate=60.0, outside_cost=0.25)

    def with_load(self, load: float) -> Self:
        """The system with the arrival rate of a load.

        Parameters
        ----------
        load : float
            Arrival rate over the rate of all servers together, > 0.

        Raises
        ------
        InputError
            If the load is not a finite number > 0, or the system does not allow it.

        Examples
        --------
        >>> CloudRouting.example().with_load(0.5).arrival_rate
        30.0
        """
        if isinstance(load, bool) or not (isinstance(load, Real) and 0 < load < np.inf):
            raise InputError(f"load must be a finite number > 0, not {load!r}")
        capacity = sum(node.servers * node.service_rate for node in self.nodes)
        return replace(self, arrival_rate=load * capacity)

    @cached_property
    def _theory(self) -> tuple[theory.Node, ...]:
        return tuple(
            theory.Node(
                servers=node.servers,
                service_rate=node.service_rate,
                abandonment_rate=node.abandonment_rate,
                deadline=self.deadline,
                fee=node.fee,
                holding_cost=node.holding_cost,
                room=node.room,
            )
            for node in self.nodes
        )

    @property
    def _charges(self) -> list[float]:
        return [node.routing_charge for node in self.nodes]

    @property
    def profit_rate(self) -> float:
        """What the jobs pay per unit of time, one service fee each."""
        return self.arrival_rate

    @property
    def is_markovian(self) -> bool:
        """Whether services and patience are exponential, so that there is a model."""
        return not unusual_laws(self.nodes)

    @property
    def notes(self) -> tuple[str, ...]:
        """Laws and costs beyond the theory of the index rules, and which nodes never refuse."""
        found = law_notes(self.nodes)
        found += [
            f"nodes[{k}]: {note}" for k, n in enumerate(self._theory) if (note := condition_note(n))
        ]
        for k, cap in enumerate(self.exact_caps()):
            if cap is None:
                largest = self.nodes[k].routing_charge + upper_bound(self._theory[k])
                found.append(
                    f"nodes[{k}]: outsourcing costs {self.outside_cost:g}, and a job there never "
                    f"more than {largest:g}, so the node never refuses: its room is unlimited and "
                    "no finite box is exact"
                )
        return tuple(found)

    # --- the model --------------------------------------------------------------------------------

    def exact_caps(self) -> tuple[int | None, ...]:
        """Per node the number of jobs beyond which the optimum never goes; None if unlimited."""
        critical = critical_cost(self._theory, self.outside_cost, self._charges)
        return tuple(
            exact_cap(node, critical, charge)
            for node, charge in zip(self._theory, self._charges, strict=True)
        )

    def start_caps(self) -> tuple[int, ...]:
        """Caps of a first box: a little beyond the Whittle index rule's thresholds."""
        caps = []
        limits = [policy.taken()[0] for policy in self._node_policies("restless_bandit")]
        for node, exact, limit in zip(self.nodes, self.exact_caps(), limits, strict=True):
            cap = 2 * node.servers if limit is None else max(limit, node.servers)
            cap = MARGIN + min(cap, 2 * node.servers + NEAR)
            caps.append(cap if exact is None else min(cap, exact))
        return tuple(caps)

    def model(self, caps: Sequence[int] | None = None, edge: Edge = "closed") -> Model:
        """The model on the box 0..caps; on the exact box by default.

        Parameters
        ----------
        caps : sequence of int, optional
            One per node; at its cap (or its room) a node takes no job.
        edge : {"closed", "lower", "upper"}
            With "lower" a node at its cap, short of its room, takes jobs at their least possible
            cost r + v(cap) and stays there, so that the optimum is a lower bound of the true one;
            with "upper" at their largest cost r + U.

        Raises
        ------
        InputError
            When there is no exact box and no caps are given, or they do not fit the nodes, or
            services or patience are not exponential.
        """
        if unusual := unusual_laws(self.nodes):
            raise InputError(
                f"{unusual[0]}, and there is a Markov model for exponential times only: simulate "
                "the system (mdpcloud.simulate), or leave the law out for an exponential one"
            )
        caps = self._checked_caps(caps)
        arrival = Event("arrival", self.arrival_rate, self._routes(caps, edge))
        departures = [
            Event(f"departure {k}", _at(k, node.departures), Action("leave", step(node={k: -1})))
            for k, node in enumerate(self._theory)
        ]
        costs = [_at(k, node.costs) for k, node in enumerate(self._theory)]
        space = Lattice({"node": caps})
        return Model(space, [arrival, *departures], cost_rate=costs, measures=self._measures())

    def _checked_caps(self, caps: Sequence[int] | None) -> tuple[int, ...]:
        if caps is None:
            return tuple(self._known_cap(k, cap) for k, cap in enumerate(self.exact_caps()))
        if len(caps) != len(self.nodes):
            raise InputError(
                f"caps has {len(caps)} numbers for {len(self.nodes)} nodes; one each is needed"
            )
        found = [checked_count(f"caps[{k}]", cap, least=0) for k, cap in enumerate(caps)]
        return tuple(
            cap if node.room is None else min(cap, node.room)
            for cap, node in zip(found, self.nodes, strict=True)
        )

    def _known_cap(self, k: int, cap: int | None) -> int:
        if cap is None:
            raise InputError(
                f"nodes[{k}] never refuses a job at outside_cost {self.outside_cost:g}, so there "
                "is no exact box; give caps, or use compare, which brackets the optimum"
            )
        return cap

    def _routes(self, caps: tuple[int, ...], edge: Edge) -> list[Action]:
        routes = [Action("outside", cost=self.outside_cost)]
        routes += [
            Action(f"node {k}", step(node={k: +1}), cost=charge)
            for k, charge in enumerate(self._charges)
        ]
        if edge == "closed":
            return routes
        for k, (node, cap) in enumerate(zip(self._theory, caps, strict=True)):
            if node.room is not None and cap >= node.room:
                continue
            least = float(lower_bound(node, cap)) if edge == "lower" else upper_bound(node)
            if np.isfinite(least):
                full = Action(
                    f"node {k}{AT_CAP}", cost=self._charges[k] + least, allowed=_is_at(k, cap)
                )
                routes.append(full)
        return routes

    def _measures(self) -> dict[str, Any]:
        nodes = range(len(self.nodes))
        losses = [_at(k, node.losses) for k, node in enumerate(self._theory)]
        jobs = [_at(k, _jobs) for k in nodes]
        queues = [_at(k, node_queue(node.servers)) for k, node in enumerate(self.nodes)]
        measures: dict[str, Any] = {
            "abandonment_rate": losses,
            "outsourcing_rate": ("arrival", "outside"),
            "mean_jobs": jobs,
            "mean_queue": queues,
        }
        for k, node in enumerate(self.nodes):
            measures[f"routing_rate[{k}]"] = ("arrival", f"node {k}")
            measures[f"abandonment_rate[{k}]"] = losses[k]
            measures[f"mean_jobs[{k}]"] = jobs[k]
            measures[f"mean_queue[{k}]"] = queues[k]
            measures[f"utilisation[{k}]"] = _at(k, node_utilisation(node.servers))
        return measures

    def derived(
        self, cost: tuple[float, float], measures: dict[str, tuple[float, float]]
    ) -> dict[str, Any]:
        """Bounds of probabilities per job and of the profit rate.

        ``abandonment_probability[k]`` is per job routed to node k; it is left out where there may
        be none.
        """
        found = {}
        for kind in ("abandonment", "outsourcing"):
            if f"{kind}_rate" in measures:
                low, high = measures[f"{kind}_rate"]
                found[f"{kind}_probability"] = (low / self.arrival_rate, high / self.arrival_rate)
        for k in range(len(self.nodes)):
            least, most = measures.get(f"routing_rate[{k}]", (0.0, 0.0))
            if least > 0.0:
                low, high = measures[f"abandonment_rate[{k}]"]
                low, high = max(low, 0.0) / most, max(high, 0.0) / least
                found[f"abandonment_probability[{k}]"] = (low, high)
        return {**found, "profit_rate": (self.profit_rate - cost[1], self.profit_rate - cost[0])}

    # --- policies ---------------------------------------------------------------------------------

    @cached_property
    def split(self) -> BernoulliSplit:
        """The optimal Bernoulli split."""
        return bernoulli_split(
            self._theory, self.arrival_rate, self.outside_cost, charges=self._charges
        )

    def index_table(
        self,
        ties: str = "fastest",
        policies: Sequence[str] | None = None,
        states: int | None = None,
    ) -> IndexTable:
        """Index table for deployment.

        Parameters
        ----------
        ties : {"first", "last", "fastest", "slowest"}
            Which of several nodes of equal price takes the job.
        policies : sequence of str, optional
            Index policies; all by default.
        states : int, optional
            Entries of a node that never refuses, whose last entry goes on; by default twice its
            servers and 61 more.

        Notes
        -----
        Decisions by the table are those of ``heuristic(name, ties).rule`` in every state, but for
        those in which a node that never refuses is beyond its last entry: there they are those at
        the last entry. If the index does not decrease, what a job is then sent to costs at most
        U - last entry more than the least price, with U the node's `mdpcloud.indices.upper_bound`.

        Examples
        --------
        >>> table = CloudRouting((Node(1, 1.0, 0.5),), 0.8, 0.6).index_table()
        >>> len(table.policies["individually_optimal"][0].index)
        4
        """
        from mdpcloud.indices.table_building import index_table_of

        known = self.policy_names[1:]
        for name in policies or ():
            _check_known("index policy", name, known)
        states = None if states is None else checked_count("states", states)
        found = {name: self._node_policies(name) for name in policies or known}
        return index_table_of(
            {name: [one.table(states) for one in nodes] for name, nodes in found.items()},
            self.outside_cost,
            charges=self._charges,
            servers=[node.servers for node in self.nodes],
            ties=ties,
            service_rates=[node.service_rate for node in self.nodes],
            system="cloud_routing",
        )

    def heuristic(self, name: str, ties: str = "fastest") -> Heuristic:
        """A policy by name.

        Parameters
        ----------
        name : str
            One of ``policy_names``.
        ties : {"first", "last", "fastest", "slowest"}
            Which of several nodes of equal index takes the job.
        """
        _check_known("policy", name, self.policy_names)
        order = tie_order(ties, [node.service_rate for node in self.nodes])
        if name == "bernoulli_split":
            return self._split_heuristic()
        policies = self._node_policies(name)
        limits, tables = zip(*(policy.taken() for policy in policies), strict=True)
        return Heuristic(
            name,
            rule=IndexRule(
                tuple(policy.prices for policy in policies),
                order,
                TIE_TOLERANCE * self.outside_cost,
            ),
            caps=None if None in limits else limits,
            indices=[table.tolist() for table in tables],
            notes=tuple(n for n in map(condition_note, self._theory) if n),
        )

    def _node_policies(self, name: str) -> list[NodePolicy]:
        """What an index policy does at each node."""
        return [
            NodePolicy(self._index(name, k), node, self.outside_cost, charge)
            for k, (node, charge) in enumerate(zip(self._theory, self._charges, strict=True))
        ]

    def _index(self, name: str, k: int) -> Index:
        """Index of node k in states 0..last, as a function of last."""
        node = self._theory[k]
        if name == "individually_optimal":
            return partial(theory.individually_optimal, node)
        if name == "restless_bandit":
            return partial(theory.restless_bandit, node, self.arrival_rate)
        blocked = None if node.room is None else max(self.outside_cost - self._charges[k], 0.0)
        rate = float(self.split.rates[k])
        return partial(theory.policy_improvement, node, rate, blocked_cost=blocked)

    def _split_heuristic(self) -> Heuristic:
        shares = self.split.rates / self.arrival_rate
        notes = tuple(self.split.notes)
        if not self.is_markovian:  # full rooms turn jobs away unasked
            rule = split_rule(shares, [None] * len(self.nodes))
            return Heuristic("bernoulli_split", rule=rule, notes=notes)
        return Heuristic(
            "bernoulli_split",
            rule=split_rule(shares, [node.room for node in self.nodes]),
            cost=float(self.split.cost),
            error=CLOSED_FORM,
            measures=split_means(self._theory, self.split),
            notes=notes,
        )

    # --- simulation -------------------------------------------------------------------------------

    def simulation(self, policy: Any, ties: str = "fastest", start: Any = None) -> Simulation:
        """The system under a policy, for `mdpcloud.simulate`; no state space is enumerated.

        Where all services and patience are exponential it runs by the events of the model, else
        job by job.

        Parameters
        ----------
        policy : str, function of x, mapping, Policy or Solution
            One of ``policy_names``, a rule, a mapping from actions to probabilities, or a policy of
            ``model(caps)``, which is simulated on its box.
        ties : {"first", "last", "fastest", "slowest"}
            Which of several nodes of equal index takes the job.
        start : mapping, optional
            Jobs at each node, ``{"node": (1, 0, 2)}``; none by default. Job by job, none only.

        Raises
        ------
        InputError
            When the policy is unknown or none is given, or does not fit the system.
        """
        if policy is None:
            raise InputError(
                f"give the policy to be simulated; there are {', '.join(self.policy_names)}, and "
                "rules of your own"
            )
        rule = self.heuristic(policy, ties).rule if isinstance(policy, str) else policy
        simulate = simulate_model if self.is_markovian else simulate_jobs
        return simulate(self, rule, start)


def _check_known(what: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        near = did_you_mean(name, known)
        raise InputError(f"{what} {name!r} is unknown; there are {', '.join(known)}{near}")


def _at(k: int, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of the number of jobs at node k, as a function of the state."""
    return lambda x: function(x.node[k])


def _is_at(k: int, cap: int) -> Callable[[Any], Any]:
    return lambda x: x.node[k] == cap


def _jobs(jobs: Any) -> Any:
    return 1.0 * jobs


def node_queue(servers: int) -> Callable[[Any], Any]:
    """Number of waiting jobs of a node, as a function of the jobs present."""
    return lambda jobs: 1.0 * np.maximum(jobs - servers, 0)


def node_utilisation(servers: int) -> Callable[[Any], Any]:
    """Share of busy servers of a node, as a function of the jobs present."""
    return lambda jobs: np.minimum(jobs, servers) / servers
