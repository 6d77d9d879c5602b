"""Structure of chains and problems: reachability, recurrent classes, end components.

An *end component* of a problem is a set of states with at least one allowed action left for every
term of every state, such that the actions left never leave the set and connect all its states.
Within a maximal end component the optimal long-run average cost is one number, and every recurrent
class of every policy lies in one (de Alfaro, Formal Verification of Probabilistic Systems, 1997,
section 3.3; here the actions are chosen term by term). Graphs are sparse matrices whose positive
entries are edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from mdpcloud.engine.rows import Matrix, Rows
from mdpcloud.engine.rows_kernels import prune

__all__ = [
    "EndComponents",
    "closed_classes",
    "components",
    "end_components",
    "moves_graph",
    "path",
    "period",
    "reachable",
    "towards",
]

Ints: TypeAlias = NDArray[np.int32]
Bools: TypeAlias = NDArray[np.bool_]


def moves_graph(rows: Rows) -> Matrix:
    """Return the graph (n, n) of all moves that some allowed action makes."""
    matrix = rows.transitions
    ends = np.repeat(rows.state, np.diff(matrix.indptr)), matrix.indices
    return sparse.csr_array((np.ones(matrix.nnz), ends), shape=(rows.n, rows.n))


def reachable(graph: Matrix, start: int | NDArray[Any]) -> Bools:
    """Return which states (n,) can be reached from a state or from any of several.

    Examples
    --------
    >>> reachable(sparse.csr_array([[0, 1, 0], [0, 0, 0], [1, 0, 0]]), 0)
    array([ True,  True, False])
    """
    starts = np.atleast_1d(np.asarray(start))
    order, _ = _breadth_first(graph, starts)
    found = np.zeros(graph.shape[0], np.bool_)
    found[order] = True
    return found


def _breadth_first(graph: Matrix, starts: NDArray[Any]) -> tuple[Ints, Ints]:
    """Order and predecessors of a search from an extra state with edges to the starts."""
    n = graph.shape[0]
    matrix = sparse.csr_array(graph)
    indptr = np.append(matrix.indptr, matrix.indptr[-1] + starts.size)
    indices = np.append(matrix.indices, starts)
    extended = sparse.csr_array((np.ones(indices.size), indices, indptr), shape=(n + 1, n + 1))
    order, before = csgraph.breadth_first_order(extended, n)
    return order[1:], before


def path(graph: Matrix, start: int | NDArray[Any], targets: Bools) -> list[int] | None:
    """Return the states of a shortest path into the targets (n,), None if there is none.

    Examples
    --------
    >>> cycle = sparse.csr_array([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    >>> path(cycle, 0, np.array([False, False, True]))
    [0, 1, 2]
    """
    n = graph.shape[0]
    order, before = _breadth_first(graph, np.atleast_1d(np.asarray(start)))
    hits = order[targets[order]]
    if hits.size == 0:
        return None
    states = [int(hits[0])]
    while before[states[-1]] != n:
        states.append(int(before[states[-1]]))
    return states[::-1]


def towards(graph: Matrix, targets: NDArray[Any]) -> Ints:
    """Return the next state (n,) of a shortest path to the nearest of several states.

    -1 at the targets and where there is no path.

    Examples
    --------
    >>> towards(sparse.csr_array([[0, 1, 0], [0, 0, 1], [1, 0, 0]]), np.array([2]))
    array([ 1,  2, -1], dtype=int32)
    """
    n = graph.shape[0]
    _, before = _breadth_first(sparse.csr_array(graph.T), targets)
    ahead = before[:n].astype(np.int32)
    ahead[(ahead < 0) | (ahead == n)] = -1
    return ahead


def components(graph: Matrix) -> tuple[int, Ints]:
    """Return the number of strongly connected components and the component of each state (n,)."""
    count, label = csgraph.connected_components(graph, directed=True, connection="strong")
    return int(count), np.asarray(label, np.int32)


def closed_classes(graph: Matrix) -> list[Ints]:
    """Return the closed strongly connected components (recurrent classes), states increasing.

    The classes come in the order of their first states.

    Examples
    --------
    >>> closed_classes(sparse.csr_array([[0, 1, 1], [0, 0, 0], [0, 0, 0]]))
    [array([1], dtype=int32), array([2], dtype=int32)]
    """
    count, label = components(graph)
    edges = graph.tocoo()
    closed = np.ones(count, np.bool_)
    closed[label[edges.row[label[edges.row] != label[edges.col]]]] = False
    states = np.flatnonzero(closed[label]).astype(np.int32)
    return _split(states, label[states])


def _split(states: Ints, label: Ints) -> list[Ints]:
    """Group increasing states by label, in the order of the labels' first states."""
    if states.size == 0:
        return []
    order = np.argsort(label, kind="stable")
    cuts = np.flatnonzero(np.diff(label[order])) + 1
    return sorted(np.split(states[order], cuts), key=lambda part: int(part[0]))


def period(graph: Matrix, states: Ints, stay: Bools) -> int:
    """Return the period of a recurrent class of a chain in discrete time.

    Parameters
    ----------
    graph : (n, n) sparse matrix
        Positive entries are moves.
    states : (m,) array
        The class.
    stay : (n,) bool array
        Whether the chain can stay in a state.

    Notes
    -----
    The greatest common divisor of level(x) + 1 - level(y) over the moves x to y, a level being the
    distance from the first state (Denardo, Periods of connected networks, 1977).
    """
    if stay[states].any():
        return 1
    inner = graph[states][:, states].tocoo()
    if inner.nnz == 0:
        return 1
    level = csgraph.shortest_path(sparse.csr_array(inner), unweighted=True, indices=0)
    difference = (level[inner.row] + 1 - level[inner.col]).astype(np.int64)
    return int(np.gcd.reduce(np.abs(difference)))


@dataclass(frozen=True, eq=False)
class EndComponents:
    """The maximal end components of a problem.

    Parameters
    ----------
    count : int
        Their number, at least 1.
    label : (n,) int32 array
        Component of each state, -1 for states in none; numbered by their first states.
    inside : (L,) bool array
        Which rows stay in the component of their state.
    """

    count: int
    label: Ints
    inside: Bools

    def states(self, component: int) -> NDArray[np.int64]:
        """Return the states of a component, increasing."""
        return np.flatnonzero(self.label == component)


def end_components(rows: Rows) -> EndComponents:
    """Split a problem into its maximal end components.

    Repeats: strongly connected components of the rows left; rows that leave their component are
    removed, and with them every state that has a term without a row and all rows into such states.
    Only components that lost something are looked at again. Linear in the moves per repetition.
    """
    removal = _Removal(rows)
    label = np.full(rows.n, -1, np.int32)
    active = np.ones(rows.n, np.bool_)
    found = 0
    while active.any():
        states = np.flatnonzero(active)
        count, local = components(removal.graph(states))
        touched = removal.remove_leaving(states, local, count)
        done = removal.state_alive[states] & ~touched[local]
        _, numbers = np.unique(local[done], return_inverse=True)
        label[states[done]] = found + numbers
        found += int(numbers.max(initial=-1)) + 1
        active[states] = removal.state_alive[states] & touched[local]
    label = _by_first_state(label)
    return EndComponents(found, label, removal.row_alive & (label[rows.state] >= 0))


def _by_first_state(label: Ints) -> Ints:
    """Renumber labels >= 0 in the order in which they appear."""
    inside = np.flatnonzero(label >= 0)
    _, first, numbers = np.unique(label[inside], return_index=True, return_inverse=True)
    rank = np.empty(first.size, np.int32)
    rank[np.argsort(first)] = np.arange(first.size, dtype=np.int32)
    renumbered = np.full(label.size, -1, np.int32)
    renumbered[inside] = rank[numbers]
    return renumbered


class _Removal:
    """Which rows and states are left while end components are searched."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.row_alive = np.ones(rows.state.size, np.bool_)
        self.state_alive = np.ones(rows.n, np.bool_)
        self.left = np.diff(np.append(rows.groups, rows.state.size)).astype(np.int32)
        back = rows.transitions.T.tocsr()
        self.back = back.indptr.astype(np.int64), back.indices.astype(np.int32, copy=False)
        self.number = np.full(rows.n, -1, np.int32)

    def live_rows(self, states: NDArray[Any]) -> NDArray[np.int64]:
        """Return the rows left of these states, increasing."""
        if states.size == self.rows.n:
            return np.flatnonzero(self.row_alive)
        rows = self.rows.of(states)
        alive: NDArray[np.int64] = rows[self.row_alive[rows]]
        return alive

    def graph(self, states: NDArray[Any]) -> Matrix:
        """Return the graph of the rows left of these states; none of them leaves the states."""
        self.number[states] = np.arange(states.size, dtype=np.int32)
        part = self.rows.transitions[self.live_rows(states)]
        origin = self.number[self.rows.state[self.live_rows(states)]]
        ends = np.repeat(origin, np.diff(part.indptr)), self.number[part.indices]
        return sparse.csr_array((np.ones(part.nnz), ends), shape=(states.size, states.size))

    def remove_leaving(self, states: NDArray[Any], local: Ints, count: int) -> Bools:
        """Remove rows that leave their component and what follows; which components lost some."""
        rows, chosen = self.rows, self.live_rows(states)
        part = rows.transitions[chosen]
        lengths = np.diff(part.indptr)
        home = local[self.number[rows.state[chosen]]]
        leaves = np.repeat(home, lengths) != local[self.number[part.indices]]
        leaving = chosen[np.unique(np.repeat(np.arange(chosen.size), lengths)[leaves])]
        self.row_alive[leaving] = False
        np.subtract.at(self.left, rows.group[leaving], 1)
        empty = np.unique(rows.group[leaving][self.left[rows.group[leaving]] == 0])
        self._kill(np.unique(rows.state[rows.groups[empty]]))
        touched = np.zeros(count, np.bool_)
        touched[home[~self.row_alive[chosen]]] = True
        return touched

    def _kill(self, dead: NDArray[Any]) -> None:
        rows = self.rows
        stack = np.empty(rows.n, np.int32)
        stack[: dead.size] = dead
        self.state_alive[dead] = False
        prune(
            rows.group,
            self.left,
            *self.back,
            rows.state,
            self.row_alive,
            self.state_alive,
            stack,
            dead.size,
        )
