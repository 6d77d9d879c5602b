"""The optimal policies of a single arm, from price -inf to inf.

`mdpcloud.indices.path_walk` has the equations; dense arms of n states take 14/3 n^3 operations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mdpcloud.indices.arm import Arm
from mdpcloud.indices.path_equations import equations_of
from mdpcloud.indices.path_start import MultichainPolicy, first_policy
from mdpcloud.indices.path_walk import Walk
from mdpcloud.indices.result import PricePath

__all__ = ["MultichainPolicy", "price_path"]

Progress = Callable[[int, int], object]


def price_path(
    arm: Arm, alpha: float, *, start: Any = None, progress: Progress | None = None
) -> PricePath:
    """Follow the optimal policies of the single-arm problem from price -inf to inf.

    Parameters
    ----------
    arm : Arm
    alpha : float
        Discount rate (in discrete time (1 - b) / b of a factor b); 0 for the average cost.
    start : (n,) array or int, optional
        Probabilities of the first state, or its number, for discounted costs and work; uniform by
        default.
    progress : function of (changes done, changes expected), optional

    Returns
    -------
    PricePath

    Raises
    ------
    MultichainPolicy
        If the average is asked and a policy on the way has several recurrent classes.
    SolveError
        If rounding errors hide the policies.

    Examples
    --------
    >>> from mdpcloud.indices.arm import arm
    >>> stay, move = [[0.9, 0.1], [0.3, 0.7]], [[0.5, 0.5], [0.8, 0.2]]
    >>> price_path(arm(stay, move, rewards1=[1.0, 3.0]), 0.0).states
    array([0, 1])
    """
    equations = equations_of(arm, alpha, start)
    policy, basis = first_policy(equations)
    walk = Walk(equations, policy, basis)
    expected = equations.free.size
    while walk.step():
        if progress is not None:
            progress(min(len(walk.prices), expected), expected)
    return walk.result()
