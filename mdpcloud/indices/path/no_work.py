"""States in which activity takes no work at all, whatever it does to the states after it.

No rounding error tells a marginal work of 0 from a small one, at which a state would still change
at a high price. It is 0 exactly where both actions do the same work and

- both move alike, or
- the policy does the same work in all states, so that work does not depend on the state;

and for the average cost where the other action leads into a recurrent class of its own, and the
policy does one and the same work in all recurrent states.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mdpcloud.indices.path.equations import Bools, Equations
from mdpcloud.indices.path.start import MultichainPolicy, check_chain

__all__ = ["all_at_no_work"]

MOST_CHAINS = 50  # policies whose recurrent classes are looked for


def all_at_no_work(equations: Equations, policy: Bools, states: NDArray[np.intp]) -> bool:
    """Whether marginal work under a policy is provably 0 in some free states.

    Parameters
    ----------
    equations : Equations
    policy : (n,) bool array
    states : integer array
    """
    rest = states[~_same_work(equations, policy, states)]
    return rest.size <= MOST_CHAINS and all(_leads_apart(equations, policy, i) for i in rest)


def _same_work(equations: Equations, policy: Bools, states: NDArray[np.intp]) -> Bools:
    """Where both actions do the same work now, and later."""
    arm = equations.arm
    same: Bools = arm.work[0, states] == arm.work[1, states]
    work = equations.chosen(policy)[:, 1]
    if not same.any() or (work == work[0]).all():
        return same
    passive, active = (moves[states] for moves in arm.moves)
    differ = passive != active
    alike: Bools = np.diff(differ.indptr) == 0 if arm.is_sparse else ~differ.any(axis=1)
    return same & alike


def _leads_apart(equations: Equations, policy: Bools, state: int) -> bool:
    """Whether the other action makes another recurrent class, in which the work is the same."""
    other = policy.copy()
    other[state] ^= True
    try:
        check_chain(equations, other)
    except MultichainPolicy as found:
        work = equations.chosen(other)[np.concatenate(found.classes), 1]
        return bool((work == work[0]).all())
    return False
