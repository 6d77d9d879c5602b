"""Calls of a user's function of the state; a failure inside is told with its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mdpcloud.errors import InputError
from mdpcloud.plugins import did_you_mean

__all__ = ["call", "unknown_axis"]


def call(function: Callable[[Any], Any], x: Any, owner: str) -> Any:
    """Return ``function(x)``, numpy's floating-point warnings off.

    Parameters
    ----------
    function : function of x
    x : named tuple of coordinate arrays
    owner : str
        What the function belongs to, for messages.

    Raises
    ------
    InputError
        When it asks for an axis that does not exist, or does not work on arrays.
    """
    try:
        with np.errstate(all="ignore"):
            return function(x)
    except AttributeError as error:
        raise unknown_axis(error, x, owner) from error
    except (ValueError, TypeError, IndexError) as error:
        raise InputError(
            f"{owner}: the function does not work on arrays of states ({error}); "
            "write np.where for if, np.minimum for min, & for and"
        ) from error


def unknown_axis(error: AttributeError, x: Any, owner: str) -> Exception:
    """What to raise: the axis that ``x`` lacks by name, or the error itself where it is another."""
    if error.obj is not x or not isinstance(x, tuple):
        return error
    fields = x._fields  # type: ignore[attr-defined]
    hint = did_you_mean(str(error.name), fields) or f"; there are {list(fields)}"
    return InputError(f"{owner}: x has no axis {error.name!r}{hint}")
