"""Whether a policy redirects jobs by a threshold, and where it does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mdpcloud.errors import InputError
from mdpcloud.model.policy import Policy

__all__ = ["RedirectThreshold", "redirect_threshold"]


@dataclass(frozen=True)
class RedirectThreshold:
    """The threshold of a policy that redirects jobs which find their centre full.

    Attributes
    ----------
    reserved : int or None
        Servers of the other centre that stay free; None where there is no threshold, or something
        else is decided than whether to redirect.
    nearest : int
        The threshold from which the policy differs in the fewest states.
    exceptions : tuple of (state, decision, action)
        Where it differs from trunk reservation with ``nearest``.
    """

    reserved: int | None
    nearest: int
    exceptions: tuple[tuple[tuple[int, int], str, str], ...]


def redirect_threshold(policy: Any, servers: tuple[int, int]) -> RedirectThreshold:
    """Compare a policy of two centres with trunk reservation.

    Parameters
    ----------
    policy : Policy, Solution or Evaluation
        Of a model with the busy servers of both centres as its state, and the decisions
        "arrival 0" and "arrival 1".
    servers : (C_0, C_1)

    Raises
    ------
    InputError
        When the policy is randomised, or of another model.
    """
    found = policy if isinstance(policy, Policy) else getattr(policy, "policy", None)
    if not isinstance(found, Policy) or found.randomised:
        raise InputError(f"give a deterministic policy of the model, not {policy!r}")
    shape = servers[0] + 1, servers[1] + 1
    if found.shape != shape:
        raise InputError(f"the policy has states of the shape {found.shape}, the model {shape}")
    taken = {name: np.array(found.names[name])[found.table(name)] for name in found.actions}
    nearest = _nearest(taken["arrival 0"][-1, :-1] == "redirect") if "arrival 0" in taken else 0
    exceptions = tuple(
        ((int(n), int(m)), name, str(actions[n, m]))
        for name, actions in taken.items()
        for n, m in np.argwhere(actions != _rule(name, shape, nearest))
    )
    return RedirectThreshold(None if exceptions else nearest, nearest, exceptions)


def _nearest(redirects: Any) -> int:
    """The threshold from which a row of decisions differs in the fewest places.

    Examples
    --------
    >>> _nearest(np.array([True, True, False, False])), _nearest(np.array([True, False, True]))
    (2, 0)
    """
    size = redirects.size
    places = np.arange(size)
    wrong = [int(np.sum(redirects != (size - places > a))) for a in range(size + 1)]
    return int(np.argmin(wrong))


def _rule(name: str, shape: tuple[int, int], reserved: int) -> Any:
    """What trunk reservation does with the jobs of a class."""
    n, m = np.indices(shape)
    first, second = shape[0] - 1, shape[1] - 1
    if name == "arrival 1":
        return np.where(m < second, "local", "reject")
    away = np.where(second - m > reserved, "redirect", "reject")
    return np.where(n < first, "local", away)
