"""How often two saturated centres are full, by the stationary law of the walk in a box.

The walk of the free servers (m, n), see `mdpcloud.limits.offloading.boundary_value`, is cut off at
a box 0 <= m <= M, 0 <= n <= N, beyond which no server becomes free, and its stationary law is
computed by `mdpcloud.solve.stationary`. The longer tail is doubled until the change of the
probabilities and the mass at the two edges are together below the tolerance; their sum is the
estimated error. It is the independent check of the integral, and much slower where the tails are
heavy.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdpcloud.errors import SolveError
from mdpcloud.limits.offloading.boundary_value import FullCentres, Pair, check_recurrent
from mdpcloud.solve.stationary.irreducible import law_of

__all__ = ["full_centres_in_box", "walk_law"]

Array: TypeAlias = NDArray[np.float64]

FIRST = 32  # free servers of each centre in the first box
MOST = 400_000  # states of the last box
BALANCED = 1e-12  # relative residual of the balance equations


def full_centres_in_box(
    arrivals: Pair, capacities: Pair, probabilities: Pair, tolerance: float = 1e-10
) -> FullCentres:
    """How often each of two saturated centres is full, and both; as `full_centres` has it.

    Parameters
    ----------
    arrivals, capacities, probabilities : pair of float
        As in `mdpcloud.limits.offloading.boundary_value.full_centres`.
    tolerance : float
        Largest estimated error of the probabilities.

    Raises
    ------
    NoLimitError
        When the walk is not positive recurrent.
    SolveError
        When the largest box is too small; it carries the result.

    Examples
    --------
    >>> found = full_centres_in_box((2.0, 3.0), (1.0, 2.0), (0.5, 0.4))
    >>> round(found.both, 10)
    0.2865167839
    """
    check_recurrent(arrivals, capacities, probabilities)
    caps = [FIRST, FIRST]
    before, result = None, None
    while (caps[0] + 1) * (caps[1] + 1) <= MOST:
        law = walk_law(arrivals, capacities, probabilities, (caps[0], caps[1]))
        now = np.array([law[0].sum(), law[:, 0].sum(), law[0, 0]])
        edges = float(law[-1].sum()), float(law[:, -1].sum())
        if before is not None:
            error = float(np.abs(now - before).max()) + sum(edges) + BALANCED
            result = FullCentres((float(now[0]), float(now[1])), float(now[2]), error)
            if error <= tolerance:
                return result
        before = now
        for k in (0, 1):
            if edges[k] >= 0.1 * max(edges):
                caps[k] *= 2
    assert result is not None
    raise SolveError(
        f"the walk of the free servers has an estimated error of {result.error:.2g} on the largest "
        f"box of at most {MOST} states, above the tolerance {tolerance:.2g}: its tail is heavy",
        partial=result,
    )


def walk_law(arrivals: Pair, capacities: Pair, probabilities: Pair, caps: tuple[int, int]) -> Array:
    """Stationary law (M + 1, N + 1) of the walk in a box, by the numbers of free servers."""
    (l1, l2), (a1, a2), (p1, p2) = arrivals, capacities, probabilities
    shape = caps[0] + 1, caps[1] + 1
    m, n = np.indices(shape)
    moves = (
        ((+1, 0), np.full(shape, a1)),
        ((0, +1), np.full(shape, a2)),
        ((-1, 0), l1 + p2 * l2 * (n == 0)),
        ((0, -1), l2 + p1 * l1 * (m == 0)),
    )
    origins, targets, rates = [], [], []
    for (dm, dn), rate in moves:
        inside = (m + dm >= 0) & (m + dm < shape[0]) & (n + dn >= 0) & (n + dn < shape[1])
        origins.append((m * shape[1] + n)[inside])
        targets.append(((m + dm) * shape[1] + n + dn)[inside])
        rates.append(rate[inside])
    size = shape[0] * shape[1]
    entries = np.concatenate(rates), (np.concatenate(targets), np.concatenate(origins))
    inflows = sparse.csr_array(entries, shape=(size, size))
    inflows.indices = inflows.indices.astype(np.int32)
    inflows.indptr = inflows.indptr.astype(np.int32)
    return law_of(inflows, BALANCED).reshape(shape)
