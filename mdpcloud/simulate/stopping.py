"""How much longer to run until an interval is as narrow as asked.

The half width falls as the inverse square root of the length, so a run whose half width is w has to
be (w / target)^2 times as long (Chow and Robbins 1965). It is met when w <= target and nothing
speaks against the interval. Each look at the interval is a chance to stop because it is too narrow
by accident, so that there should be few: a run is prolonged by more than is needed by half as much
again at least, and at most fourfold, as early widths are rough.

Measured on M/M/1 at load 0.8, from empty, 400 runs each: intervals of 8 replications that are
stopped at a half width of 0.3 cover in 93 % of them, at 0.15 in 95 %; those of one replication that
is stopped at 0.4, in 89 %. So there should be several.
"""

from __future__ import annotations

import numpy as np

from mdpcloud.simulate.result import Estimate

__all__ = ["longer"]

LEAST = 1.5
MOST = 4.0
SAFETY = 1.3


def longer(found: Estimate, target: float, doubtful: bool) -> float:
    """Length that a run should have in all, in units of its present length.

    Parameters
    ----------
    found : Estimate
    target : float
        Half width asked for.
    doubtful : bool
        Whether something speaks against the interval (`mdpcloud.simulate.diagnostics.doubts`).

    Returns
    -------
    float
        1 when the interval is as asked, else between 1.5 and 4.

    Examples
    --------
    >>> longer(Estimate(5.0, 4.0, 6.0, 0.5, 100.0), target=1.0, doubtful=False)
    1.0
    >>> longer(Estimate(5.0, 4.0, 6.0, 0.5, 100.0), target=0.7, doubtful=False)
    2.653...
    """
    if found.half_width <= target and not doubtful:
        return 1.0
    needed = SAFETY * (min(found.half_width / target, MOST)) ** 2
    return float(np.clip(needed, LEAST, MOST))
