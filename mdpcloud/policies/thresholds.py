"""Thresholds: an option is taken only while less than a level is in use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mdpcloud.policies.family import Condition, Family, Option, Parameter, Rules, Stream, first_fit

__all__ = ["thresholds"]


def thresholds(
    streams: Sequence[Stream],
    parameters: Sequence[Parameter],
    name: str = "thresholds",
    *,
    common: bool = False,
    unimodal: bool = False,
) -> Family:
    """Rules that take an option with ``used`` only where less than a level is in use.

    Parameters
    ----------
    streams : sequence of Stream
    parameters : sequence of Parameter
        One for each option with ``used``, in the order of streams and options; a single one where
        the level is ``common`` to all of them.
    name : str
    common : bool
    unimodal : bool
        See `Family`.

    Examples
    --------
    >>> import numpy as np
    >>> option = Option("full", lambda used: used < 3, used=lambda used: used)
    >>> family = thresholds([Stream("arrival", (option,))], [Parameter("threshold", (0, 1, 2, 3))])
    >>> [str(action) for action in family.member(2)["arrival"](np.arange(4))]
    ['full', 'full', 'reject', 'reject']
    """

    def member(*levels: float) -> Rules:
        each = iter(levels * sum(map(_count, streams)) if common else levels)
        return {
            stream.decision: first_fit(
                [(option.action, _below(option, each)) for option in stream.options],
                stream.otherwise,
            )
            for stream in streams
        }

    return Family(name, tuple(parameters), member, unimodal)


def _count(stream: Stream) -> int:
    return sum(option.used is not None for option in stream.options)


def _below(option: Option, levels: Iterator[float]) -> Condition:
    used, fits = option.used, option.fits
    if used is None:
        return fits
    level = next(levels)
    return lambda x: fits(x) & (used(x) < level)
