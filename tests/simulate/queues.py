"""Queue lengths of M/M/1 without a simulator: reflected random walks, many at once."""

import numpy as np

from mdpcloud.simulate.protocol import Floats

__all__ = ["queue_lengths", "variance_constant"]


def queue_lengths(
    load: float, steps: int, segments: int, shape: tuple[int, ...], seed: int
) -> Floats:
    """Average numbers in M/M/1 from empty, over segments of equal numbers of steps.

    The queue is looked at at the points of a Poisson process of rate lam + mu (uniformisation), so
    a step is 1 / (1 + load) of time in services. With u_j the sum of the first j steps ±1,
    x_k = u_k - min(0, u_1, .., u_k) (Lindley 1952).

    Returns
    -------
    (*shape, segments) array
    """
    generator = np.random.default_rng(seed)
    found = np.empty((int(np.prod(shape)), segments))
    for series in found:
        up = generator.random(steps, dtype=np.float32) < load / (1 + load)
        walk = np.cumsum(2 * up.astype(np.int32) - 1, dtype=np.int32)
        walk -= np.minimum(np.minimum.accumulate(walk), 0)
        series[:] = walk.reshape(segments, -1).mean(axis=1)
    return found.reshape(*shape, segments)


def variance_constant(load: float) -> float:
    """n times the variance of the mean of n steps, for large n.

    That of the time average is 2 load (1 + load) / (1 - load)^4 per unit of time in services
    (Whitt 1989, section 2.2). With Q = (1 + load) (P - I), 2 <f, (-Q)^-1 f> for time and
    2 <f, (I - P)^-1 f> - <f, f> for steps differ by the factor and by the variance of f.
    """
    time = 2 * load * (1 + load) / (1 - load) ** 4
    return (1 + load) * time - load / (1 - load) ** 2
