"""The walk of free servers under trunk reservation in a box: the check of the matrix solution.

See `mdpcloud.limits.trunk_reservation.regimes` for the walk. Beyond a box 0 <= n_0 <= M_0, 0 <= n_1
<= M_1 no server becomes free; its balance equations are solved by sparse LU with the state (0, 0)
pinned. M_0 is where the law of n_0 falls below 1e-17; M_1 is doubled until the estimated effect of
the cut (see `mdpcloud.limits.trunk_reservation.levels.cut_error`) is below the tolerance. Heavy
tails of n_1 need boxes that are too large.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdpcloud.engine.rows import Matrix
from mdpcloud.errors import SolveError
from mdpcloud.limits.trunk_reservation.levels import (
    Rates,
    WalkLaw,
    check_balance,
    cut_error,
)
from mdpcloud.model.matrices import row_sums
from mdpcloud.solve.stationary.irreducible import factor

__all__ = ["walk_in_box", "walk_law_in_box"]

Array: TypeAlias = NDArray[np.float64]

FIRST = 64  # free servers of centre 1 in the first box, beyond the threshold
MOST = 400_000  # states of the last box
ROUNDING = 1e-12  # of the factors


def walk_in_box(rates: Rates, reserved: int, tolerance: float = 1e-10) -> WalkLaw:
    """What is needed of the law of the walk, where both centres are saturated.

    Parameters
    ----------
    rates : Rates
    reserved : int
    tolerance : float
        Largest estimated error of the probabilities.

    Raises
    ------
    SolveError
        When the largest box is too small; it carries the result.

    Examples
    --------
    >>> found = walk_in_box(Rates((2.0, 3.0), (1.0, 2.0)), 2)
    >>> [round(b, 10) for b in found.blocking]
    [0.421361651, 0.3857588993]
    """
    phases, beyond, found = int(rates.phases(0)), FIRST, None
    while phases * (reserved + beyond + 1) <= MOST:
        law = walk_law_in_box(rates, reserved, (phases, reserved + beyond + 1))
        time = (reserved + beyond) / rates.excess
        edge = cut_error(rates.capacities[1] * float(law[:, -1].sum()), time)
        found = WalkLaw(
            (float(law[0, : reserved + 1].sum()), float(law[:, 0].sum())),
            float(law[0].sum()),
            edge + ROUNDING,
            phases,
        )
        if found.error <= tolerance:
            check_balance(rates, found)
            return found
        beyond *= 2
    raise SolveError(
        f"the walk needs a box of more than {MOST} states: {phases} numbers of free servers of "
        f"centre 0, and more than {beyond // 2} beyond {reserved} of centre 1",
        partial=found,
    )


def walk_law_in_box(rates: Rates, reserved: int, shape: tuple[int, int]) -> Array:
    """Stationary law of the walk in a box, by n_0 (rows) and n_1 (columns)."""
    first, second = (
        sparse.diags_array(
            (rates.capacities[k], rates.arrivals[k]), offsets=(1, -1), shape=(size, size)
        )
        for k, size in enumerate(shape)
    )
    helping = np.where(np.arange(1, shape[1]) > reserved, rates.arrivals[0], 0.0)
    helped = sparse.diags_array(helping, offsets=-1)
    full = sparse.csr_array(([1.0], ([0], [0])), shape=(shape[0], shape[0]))
    chain: Matrix = sparse.csr_array(sparse.kronsum(second, first) + sparse.kron(full, helped))
    balance: Matrix = (sparse.diags_array(row_sums(chain)) - chain).T.tocsr()
    law = np.ones(chain.shape[0])
    law[1:] = factor(balance[1:, 1:])(-balance[1:, [0]].toarray().ravel())
    normalised: Array = (law / law.sum()).reshape(shape)
    return normalised
