"""Fresh differences along a path of policies, and estimates of their errors.

From the differences delta carried along, x = A_0^-1 (c_0 + changes) by the factors of some earlier
policy; its residual under the policy now is computed from the moves themselves, and

    r = c_S - A_S x,        delta = (c_0 - c_1) - D x - M r

is a step of iterative refinement. How far it moves is the error made since the last one (relative
to the size of the terms of each row), and steps are repeated while they shrink. What no step can
see is rounding in r and in D x: it is estimated by sending random signs times the rounding unit
times the size of the terms through M.

Source: Higham, Accuracy and Stability of Numerical Algorithms (2nd ed., SIAM 2002), section 12.1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mdpcloud.indices.path.equations import Basis, Bools, Equations
from mdpcloud.model.matrices import Floats

__all__ = ["Fresh", "price_errors", "refreshed"]


EPSILON = float(np.finfo(np.float64).eps)
PROBES = 4  # random signs for the cost, and as many for the work
SAFETY = 4.0  # times the estimates
STEPS = 4  # of refinement
SETTLED = 1e-13  # relative move after which another step is not worth its time


@dataclass(frozen=True, eq=False)
class Fresh:
    """Differences after refinement.

    Attributes
    ----------
    differences : (f+1, 2) array
        Cost and work (with minus sign) of passivity minus those of activity; last the average.
    scale : (f+1, 2) array
        Size of the terms they are made of.
    moved : float
        How far the first step went from the differences carried along, relative to the scale.
    shaken : float
        How far the last step went.
    noise : (f+1, 2) array
        Estimate of the rounding errors no step can see.
    """

    differences: Floats
    scale: Floats
    moved: float
    shaken: float
    noise: Floats

    @property
    def errors(self) -> Floats:
        """Estimate of the errors of the differences (f+1, 2)."""
        return SAFETY * (self.noise + self.shaken * self.scale)


def refreshed(equations: Equations, basis: Basis, policy: Bools, carried: Floats) -> Fresh:
    """Differences of a policy from those carried along; M must be the policy's."""
    differences, scale, terms = _step(equations, basis, policy, carried)
    moved = shaken = _distance(differences, carried, scale)
    for _ in range(STEPS):
        if shaken <= SETTLED:
            break
        again, scale, terms = _step(equations, basis, policy, differences)
        step = _distance(again, differences, scale)
        if step >= shaken:
            break
        differences, shaken = again, step
    return Fresh(differences, scale, moved, shaken, _noise(basis, scale, terms))


def _step(
    equations: Equations, basis: Basis, policy: Bools, carried: Floats
) -> tuple[Floats, Floats, Floats]:
    """Refined differences, the size of their terms, and that of the terms of the residuals."""
    right = equations.chosen(basis.policy)
    free = equations.free
    sign = np.where(basis.policy[free], 1.0, -1.0) * (basis.policy[free] != policy[free])
    right[free] += sign[:, None] * carried[:-1]
    x = basis.solve(right)
    images = equations.images(x)
    residual = equations.chosen(policy) - np.where(policy[:, None], images[1], images[0])
    fresh = equations.differences(images, x) - basis.product(residual)
    terms = equations.sizes(x)
    average = np.abs(equations.weights) @ (np.abs(x) + equations.typical)
    return fresh, np.concatenate([terms[free], average[None]]), terms


def _distance(one: Floats, other: Floats, scale: Floats) -> float:
    """Largest relative difference in any free state."""
    apart = np.abs(one - other)
    np.divide(apart, scale, out=apart, where=scale > 0.0)
    return float(np.max(apart[:-1], initial=0.0))


def _noise(basis: Basis, scale: Floats, terms: Floats) -> Floats:
    """Root mean square effect of rounding in the residuals, and in the differences."""
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (terms.shape[0], 2 * PROBES))
    effect = basis.product(np.repeat(EPSILON * terms, PROBES, axis=1) * signs)
    effect = np.abs(effect.reshape(-1, 2, PROBES))
    top = effect.max(axis=2, keepdims=True)  # squares alone might overflow
    np.divide(effect, top, out=effect, where=top > 0.0)
    noise: Floats = top[..., 0] * np.sqrt((effect**2).mean(axis=2)) + EPSILON * scale
    return noise


def price_errors(
    fresh: Fresh, before: Fresh, places: NDArray[np.intp], marginal: Floats, growth: Floats
) -> Floats:
    """Errors of the prices of changes between two refinements.

    Parameters
    ----------
    fresh, before : Fresh
        After and before the changes.
    places : (k,) array
        Free states that changed.
    marginal : (k, 2) array
        Their marginal cost and work.
    growth : (k,) array
        By how much rounding may weigh more than at the refinement before, at policies between.
    """
    size = np.abs(marginal)
    noise = np.maximum(fresh.noise[places], before.noise[places] * growth[:, None])
    scale = np.maximum(np.maximum(fresh.scale, before.scale)[places], size)
    drift = max(fresh.moved, before.shaken) * scale
    cost, work = SAFETY * (noise + drift + EPSILON * size).T
    rest = size[:, 1] - work
    with np.errstate(divide="ignore"):
        errors: Floats = np.where(
            rest > 0.0, (cost + size[:, 0] / size[:, 1] * work) / rest, np.inf
        )
    return errors
