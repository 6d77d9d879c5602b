"""Anderson extrapolation of sweeps (Anderson 1965; Walker and Ni 2011, the method they call II).

With g = T^s h, s sweeps from h, and the residual f = g - h, the next h is

    g - sum_i w_i dg_i,    w minimising | f - sum_i w_i df_i |,

df_i and dg_i being the differences of successive residuals and images, constants left out, as
values are relative. That removes the few slow modes that are left after s sweeps; the next sweeps
damp what it stirs up elsewhere.
"""

from __future__ import annotations

import numpy as np

from mdpcloud.engine.problem import Floats
from mdpcloud.solve.extrapolation_kernels import extrapolate, products, remember

__all__ = ["Extrapolation"]

RIDGE = 1e-10  # added to the scaled normal equations, as differences may depend on each other


class Extrapolation:
    """The last differences of residuals and images.

    Parameters
    ----------
    start : array
        The first iterate, a work array.
    states : int
        Entries of it that vary.
    depth : int
        Differences kept; it takes 2 depth + 3 arrays.
    """

    def __init__(self, start: Floats, states: int, depth: int) -> None:
        self.states, self.depth = states, depth
        self.start = start.copy()
        self.image, self.residual = np.empty_like(start), np.empty_like(start)
        self.images = np.empty((depth, start.size))
        self.residuals = np.empty((depth, start.size))
        self.products = np.zeros((depth, depth))
        self.steps = 0

    def take_back(self, h: Floats) -> None:
        """Put the image before the last step into h, forget the rest, and begin there."""
        h[:] = self.image
        self.start[:] = h
        self.steps = 0

    def step(self, h: Floats) -> None:
        """Replace h, the image of the iterate, by the next iterate."""
        row = (self.steps - 1) % self.depth
        vectors = self.start, h, self.image, self.residual
        remember(*vectors, self.images[row], self.residuals[row], self.steps > 0)
        count = min(self.steps, self.depth)
        if count:
            new, right = products(self.residuals, row, self.residual, count, self.states)
            self.products[row, :count] = self.products[:count, row] = new
            extrapolate(h, self.images, self._weights(right))
        self.start[:] = h
        self.steps += 1

    def _weights(self, right: Floats) -> Floats:
        """Solve the normal equations, scaled; no step where rounding leaves nothing of them."""
        matrix = self.products[: right.size, : right.size]
        size = np.diag(matrix)
        with np.errstate(all="ignore"):
            scale = np.where(size > 0.0, np.sqrt(size), np.inf)
            scaled = matrix / scale / scale[:, None] + RIDGE * np.eye(right.size)
            try:
                found = np.linalg.solve(scaled, right / scale) / scale
            except np.linalg.LinAlgError:
                found = np.full(right.size, np.nan)
        return found if np.isfinite(found).all() else np.zeros(right.size)
