"""Properties P1-P6 of the three indices of a routing system, by comparing their tables.

    P1  phi_k(i) is nondecreasing in the state i        P4  ... nondecreasing in the outside cost C
    P2  ... nondecreasing in the arrival rate lambda    P5  ... nonincreasing in the node's own mu_k
    P3  ... nondecreasing in theta (of every node)      P6  ... nonincreasing in the node's own m_k

P1 compares neighbouring states; the others compare every state of the table with that of a system
in which one parameter is larger: times 1.1, or one server more. A violation is by how much the
index goes the wrong way; it counts if it is above the tolerance, 1e-9 of the largest index U.

The tables are exact to less than half of that, so that what counts is no error of rounding: IO and
RB are quotients of sums of positive terms (1e-13). PI is read at the rates of the optimal split,
which are exact to 1e-13 lambda while the shadow price is below U; and a change d of the rate moves
PI by at most d U E[T], where T <= 1 / min(slope of D) in the mean is how long one more job makes a
difference (within it, with probability <= d E[T], one more arrival tells the two systems apart).
Where this does not reach the tolerance, an error is raised.

Source: Nino-Mora (2019), Computers & Operations Research 103, 221-236, where P1-P6 are proposed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mdpcloud.errors import InputError
from mdpcloud.indices.bounds import upper_bound
from mdpcloud.model.matrices import Floats
from mdpcloud.plugins import did_you_mean
from mdpcloud.queues.border import checked_count
from mdpcloud.systems.cloud_routing import CloudRouting, Node
from mdpcloud.systems.routing_tables import NEAR

__all__ = ["INDICES", "PROPERTIES", "IndexProperty", "index_properties", "index_tables"]

INDICES = ("individually_optimal", "policy_improvement", "restless_bandit")
PROPERTIES = {
    "P1": "nondecreasing in the state",
    "P2": "nondecreasing in arrival_rate",
    "P3": "nondecreasing in abandonment_rate",
    "P4": "nondecreasing in outside_cost",
    "P5": "nonincreasing in service_rate",
    "P6": "nonincreasing in servers",
}
TOLERANCE = 1e-9  # of a violation, relative to the largest index U
ROUNDING = 1e-13  # of an index, relative to U
RATE_ERROR = 1e-13  # of the rates of the split, relative to lambda
SATURATED = 0.999  # of U, the shadow price from which the rates of the split are not as exact


@dataclass(frozen=True)
class IndexProperty:
    """Whether an index has a property.

    Attributes
    ----------
    index : str
        One of ``INDICES``.
    name : str
        "P1" to "P6", see ``PROPERTIES``.
    violation : float
        By how much, at most, the index goes the wrong way (cost per job); 0 if by no more than the
        tolerance.
    node, state : int or None
        Where the violation is largest; of P1, the lower of the two states. None if there is none.
    change : str
        What was changed there, such as ``nodes[0].service_rate * 1.1``; empty for P1.
    """

    index: str
    name: str
    violation: float
    node: int | None
    state: int | None
    change: str

    @property
    def violated(self) -> bool:
        """Whether there is a violation above the tolerance."""
        return self.violation > 0.0


@dataclass(frozen=True, eq=False)
class _Change:
    """A system with one parameter larger, and the nodes whose indices must not go the wrong way."""

    property: str
    name: str
    system: CloudRouting
    nodes: Sequence[int]
    sign: float


def index_tables(system: CloudRouting, index: str, last: int) -> list[Floats]:
    """An index of each node in states 0..last, whether it refuses there or not.

    Parameters
    ----------
    system : CloudRouting
    index : str
        One of ``INDICES``.
    last : int
        Largest state, >= 0.

    Returns
    -------
    list of (last+1,) ndarray
        In cost per job; inf from a node's room on.

    Examples
    --------
    >>> from mdpcloud.systems import Node
    >>> system = CloudRouting((Node(1, 1.0, 0.5),), 0.8, 0.35)
    >>> index_tables(system, "individually_optimal", 3)
    [array([0.        , 0.33333333, 0.5       , 0.6       ])]
    """
    if index not in INDICES:
        near = did_you_mean(index, INDICES)
        raise InputError(f"index {index!r} is unknown; there are {', '.join(INDICES)}{near}")
    return [system._index(index, k)(last) for k in range(len(system.nodes))]


def index_properties(
    system: CloudRouting,
    indices: Sequence[str] = INDICES,
    *,
    change: float = 0.1,
    tolerance: float = TOLERANCE,
    last: int | None = None,
) -> list[IndexProperty]:
    """Largest violation of each property by each index.

    Parameters
    ----------
    system : CloudRouting
    indices : sequence of str
    change : float
        By what part a rate or cost is raised, > 0.
    tolerance : float
        Violations above it times the largest index count.
    last : int, optional
        Largest state that is looked at; twice the most servers and 60 more by default.

    Returns
    -------
    list of IndexProperty
        Of each index, P1 to P6. No violation is a statement on these states and changes, no proof.

    Raises
    ------
    InputError
        If there are patient jobs, or the tables are not known as exactly as the tolerance needs.

    Examples
    --------
    >>> from mdpcloud.systems import Node
    >>> system = CloudRouting((Node(1, 1.0, 0.5),), 0.8, 0.35)
    >>> any(one.violated for one in index_properties(system, ["individually_optimal"]))
    False
    """
    if not change > 0.0:
        raise InputError(f"change must be > 0, not {change!r}")
    if last is None:
        last = 2 * max(node.servers for node in system.nodes) + NEAR
    last = checked_count("last", last)
    changes = list(_changes(system, change))
    allowed = tolerance * _largest(system)
    found: list[IndexProperty] = []
    for index in indices:
        for one in (system, *(each.system for each in changes)):
            _check_error(one, index, allowed)
        found += _properties(system, index, changes, last, allowed)
    return found


def _properties(
    system: CloudRouting, index: str, changes: Sequence[_Change], last: int, allowed: float
) -> Iterator[IndexProperty]:
    tables = index_tables(system, index, last)
    violations: list[tuple[str, tuple[float, int], int, str]]
    violations = [("P1", _worst(t[:-1], t[1:]), k, "") for k, t in enumerate(tables)]
    for one in changes:
        others = index_tables(one.system, index, last)
        violations += [
            (one.property, _worst(one.sign * tables[k], one.sign * others[k]), k, one.name)
            for k in one.nodes
        ]
    for name in PROPERTIES:
        (size, state), node, change = max(
            (v[1:] for v in violations if v[0] == name), key=lambda each: each[0][0]
        )
        if size > allowed:
            yield IndexProperty(index, name, size, node, state, change)
        else:
            yield IndexProperty(index, name, 0.0, None, None, "")


def _worst(low: Floats, high: Floats) -> tuple[float, int]:
    """By how much `low` is above `high` at most, and where; 0 if nowhere."""
    with np.errstate(invalid="ignore"):
        excess = np.where(low > high, low - high, 0.0)
    state = int(np.argmax(excess))
    return float(excess[state]), state


def _changes(system: CloudRouting, change: float) -> Iterator[_Change]:
    """Systems with one parameter larger."""
    factor = 1.0 + change
    everywhere = range(len(system.nodes))
    text = f"* {factor:.12g}"

    def whole(name: str, field: str) -> _Change:
        larger = replace(system, **{field: getattr(system, field) * factor})
        return _Change(name, f"{field} {text}", larger, everywhere, 1.0)

    yield whole("P2", "arrival_rate")
    impatient = tuple(
        replace(node, abandonment_rate=node.abandonment_rate * factor) for node in system.nodes
    )
    yield _Change(
        "P3", f"nodes[*].abandonment_rate {text}", replace(system, nodes=impatient), everywhere, 1.0
    )
    yield whole("P4", "outside_cost")
    for k, node in enumerate(system.nodes):
        faster = replace(node, service_rate=node.service_rate * factor)
        name = f"nodes[{k}].service_rate {text}"
        yield _Change("P5", name, _with_node(system, k, faster), (k,), -1.0)
        larger = replace(node, servers=node.servers + 1)
        name = f"nodes[{k}].servers + 1"
        yield _Change("P6", name, _with_node(system, k, larger), (k,), -1.0)


def _with_node(system: CloudRouting, k: int, node: Node) -> CloudRouting:
    return replace(system, nodes=(*system.nodes[:k], node, *system.nodes[k + 1 :]))


# --- errors ---------------------------------------------------------------------------------------


def _largest(system: CloudRouting) -> float:
    """Largest index of any node, U."""
    for k, node in enumerate(system.nodes):
        if node.abandonment_rate == 0.0:
            raise InputError(
                f"nodes[{k}].abandonment_rate is 0; the properties are those of nodes with "
                "deadlines, and it must be > 0"
            )
    return max(map(upper_bound, system._theory))


def _check_error(system: CloudRouting, index: str, allowed: float) -> None:
    """Raise if the tables of an index may be wrong by half of what counts as a violation."""
    error = ROUNDING * _largest(system)
    if index == "policy_improvement":
        error += _improvement_error(system)
    if error == np.inf:
        raise InputError(
            f"{system}: the rates of the split, and with them the policy improvement index, are "
            "not known exactly, as the problem is not convex or the shadow price hardly below the "
            "largest index; a smaller outside_cost or arrival_rate helps"
        )
    if not 2.0 * error <= allowed:
        raise InputError(
            f"{system}: the index {index} is known to {error:.1e} only, too little to tell "
            f"violations of {allowed:.1e}; give a larger tolerance"
        )


def _improvement_error(system: CloudRouting) -> float:
    """How far PI may be off because the rates of the split are; inf if that is not known."""
    split = system.split
    tops = [
        charge + upper_bound(node)
        for node, charge in zip(system._theory, system._charges, strict=True)
    ]
    if split.error_bound is None or split.shadow_price > SATURATED * min(tops):
        return np.inf
    leaving = min(min(node.departure_slopes) for node in system._theory)
    return RATE_ERROR * system.arrival_rate * _largest(system) / leaving
