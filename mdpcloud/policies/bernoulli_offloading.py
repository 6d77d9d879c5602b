"""Bernoulli offloading: a job that finds its centre full is sent away with a probability."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mdpcloud.policies.family import Family, Parameter, Rules, Stream

__all__ = ["bernoulli_offloading"]


def bernoulli_offloading(
    streams: Sequence[Stream],
    parameters: Sequence[Parameter],
    name: str = "bernoulli_offloading",
    notes: tuple[str, ...] = (),
) -> Family:
    """Rules that take the first option where it fits, else each of the others with a probability.

    Parameters
    ----------
    streams : sequence of Stream
    parameters : sequence of Parameter
        One for each stream: the probability of each of its further options, at most 1 over their
        number. A job for which the chosen option does not fit is not sent on.
    name : str
    notes : tuple of str

    Examples
    --------
    >>> from mdpcloud.policies.family import Option
    >>> local, away = Option("local", lambda x: x < 2), Option("offload", lambda x: x < 3)
    >>> arrival = Stream("arrival", (local, away))
    >>> rules = bernoulli_offloading([arrival], [Parameter("p", (0.5, 1.0))]).member(0.5)
    >>> [float(rules["arrival"]["offload"](x)) for x in range(4)]
    [0.0, 0.0, 0.5, 0.0]
    """

    def member(*probabilities: float) -> Rules:
        return {
            stream.decision: _chances(stream, probability)
            for stream, probability in zip(streams, probabilities, strict=True)
        }

    return Family(name, tuple(parameters), member, notes=notes)


def _chances(stream: Stream, probability: float) -> dict[str, Callable[[Any], Any]]:
    first, *others = stream.options

    def offload(fits: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda x: probability * (~_holds(first.fits(x)) & _holds(fits(x)))

    away = {option.action: offload(option.fits) for option in others}

    def rejected(x: Any) -> Any:
        sent = sum(chance(x) for chance in away.values())
        return np.maximum(~_holds(first.fits(x)) - sent, 0.0)  # where rounding makes sent exceed 1

    return {first.action: lambda x: 1.0 * _holds(first.fits(x)), **away, stream.otherwise: rejected}


def _holds(condition: Any) -> Any:
    """As an array of bool, whose complement `~` is that of logic."""
    return np.asarray(condition, bool)
