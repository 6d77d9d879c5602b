"""Which rows of results are as a table or figure wants them."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["is_among"]

CLOSE = 1e-9  # relative difference of numbers that are taken for the same


def is_among(value: Any, wanted: Any) -> bool:
    """Whether a value is the wanted one, or one of several.

    Examples
    --------
    >>> is_among("a", ["a", "b"]), is_among(0.1 + 0.2, 0.3), is_among(None, 0.3)
    (True, True, False)
    >>> is_among(1.0, True), is_among(True, [1, True]), is_among(2, 2.0)
    (False, True, True)
    """
    several = wanted if isinstance(wanted, list | tuple) else [wanted]
    if isinstance(value, bool):
        return any(one is value for one in several)
    if isinstance(value, int | float):
        numbers = (
            one for one in several if isinstance(one, int | float) and not isinstance(one, bool)
        )
        return any(math.isclose(value, one, rel_tol=CLOSE) for one in numbers)
    return value in several
